/* SPDX-License-Identifier: BSD-3-Clause */
/* TERN_FAULT is read from the environment: any text is understood, or refused with a sentence. */
#include "fuzz.h"

#include <tern/tern.h>

#include "net/fault/fault.h"

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	char text[200];
	struct plan p;
	len = len < sizeof text - 1 ? len : sizeof text - 1;
	memcpy(text, bytes, len);
	text[len] = '\0';
	int rc = plan_read(&p, text);
	REQUIRE(rc == 0 || strstr(tern_strerror(rc), "TERN_FAULT"));
}

FUZZ_TARGET(plan, 5000)

#ifndef FUZZ

TEST(any_text_is_read_or_refused)
{
	static const char letters[] = "drop=duplicate=reorder,.0123456789e+-xseed=,,==";
	struct chance c = { check_seed() };
	for (unsigned i = 0; i < check_scaled(20000); i++) {
		uint8_t bytes[60];
		size_t len = chance_below(&c, sizeof bytes);
		for (size_t k = 0; k < len; k++)
			bytes[k] = (uint8_t)letters[chance_below(&c, sizeof letters)];
		fuzz_exactly(bytes, len);
	}
}

TEST(a_list_of_faults_is_read)
{
	struct plan p;
	CHECK_IS(plan_read(&p, "drop=0.5,late=20,seed=0x2a,slow=1.5"), 0);
	CHECK_IS(p.drop, 1u << 31);
	CHECK_IS(p.late_ns, 20000);
	CHECK_IS(p.slow_ns, 1500);
	CHECK_IS(p.seed, 42);
	CHECK_IS(plan_read(&p, "drop=1"), 0);
	CHECK_IS(p.drop, UINT32_MAX);
}

#endif
