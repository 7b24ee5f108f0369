/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pages.h"

#include "../../tests/check.h"

TEST(pages_are_zero_aligned_and_apart)
{
	enum { MANY = 50 };
	unsigned char *p[MANY];
	size_t bytes[MANY];
	for (size_t i = 0; i < MANY; i++) {
		bytes[i] = i * 700 + 1;
		size_t align = i % 3 ? (size_t)4096 << i % 5 : 0;
		p[i] = pages_take(bytes[i], align);
		REQUIRE(p[i] != NULL);
		CHECK_IS((uintptr_t)p[i] % (align ? align : 4096), 0);
		for (size_t k = 0; k < bytes[i]; k++)
			CHECK_IS(p[i][k], 0);
		memset(p[i], (int)i + 1, bytes[i]);
	}
	for (size_t i = 0; i < MANY; i++) {
		CHECK_IS(p[i][0], i + 1);
		CHECK_IS(p[i][bytes[i] - 1], i + 1);
		pages_give(p[i], bytes[i]);
	}
	pages_give(NULL, 100);
}

TEST(what_is_too_much_is_refused)
{
	CHECK(pages_take((size_t)1 << 60, 0) == NULL);
}
