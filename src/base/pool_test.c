/* SPDX-License-Identifier: BSD-3-Clause */
/* Records, their names, and the memory that they are made of. */
#include "base/pool.h"

#include "base/memory.h"
#include "lib/check.h"

enum { MOST = 3 * POOL_BATCH };

struct thing {
	struct record record;
	uint64_t value[3];
};

static struct pool_of pool = { .bytes = sizeof(struct thing), .most = MOST };
static struct thing *thing[MOST];

static void take_all(void)
{
	for (uint32_t i = 0; i < MOST; i++) {
		REQUIRE((thing[i] = record_take(&pool)) != NULL);
		CHECK(thing[i]->value[0] == 0 && thing[i]->value[2] == 0);
		thing[i]->value[0] = thing[i]->value[2] = i + 1;
		CHECK_IS(pool.used, i + 1);
	}
}

TEST(records_are_made_in_order_and_no_more_than_the_most)
{
	take_all();
	CHECK(record_take(&pool) == NULL);
	CHECK_IS(pool.made, MOST);
	for (uint32_t i = 0; i < MOST; i++) {
		CHECK_IS(record_name(thing[i]) & 0xffff, i);
		CHECK(record_at(&pool, i) == thing[i]);
		CHECK(thing[i]->value[0] == i + 1 && thing[i]->value[2] == i + 1);
	}
	CHECK(record_at(&pool, MOST) == NULL);
	CHECK(record_named(&pool, 1 << 16 | MOST) == NULL);
	pool_free(&pool);
}

TEST(a_name_is_of_one_use)
{
	take_all();
	uint32_t name = record_name(thing[70]);
	CHECK(name >> 16 != 0);
	CHECK(record_named(&pool, name) == thing[70]);
	CHECK(record_named(&pool, name + (1 << 16)) == NULL);
	record_give(&pool, thing[70]);
	CHECK_IS(pool.used, MOST - 1);
	CHECK(record_named(&pool, name) == NULL);
	CHECK(record_at(&pool, 70) == NULL);
	CHECK(record_take(&pool) == thing[70]); /* the only free one */
	CHECK_IS(thing[70]->value[0], 0);
	CHECK(record_named(&pool, name) == NULL);
	CHECK_IS(record_name(thing[70]), name + (1 << 16));
	CHECK(record_take(&pool) == NULL);
	for (int i = 0; i < 1 << 16; i++) { /* however often it is used, no name is 0 */
		record_give(&pool, thing[70]);
		CHECK(record_take(&pool) == thing[70]);
		if (!CHECK(record_name(thing[70]) >> 16 != 0))
			break;
	}
	pool_free(&pool);
}

TEST(what_is_given_back_is_taken_again_and_the_others_stay)
{
	take_all();
	for (uint32_t i = 0; i < MOST; i += 3)
		record_give(&pool, thing[i]);
	CHECK_IS(pool.used, MOST - MOST / 3);
	for (uint32_t i = MOST - 3; i < MOST; i -= 3) /* the last given first */
		CHECK(record_take(&pool) == thing[i]);
	CHECK(record_take(&pool) == NULL);
	for (uint32_t i = 0; i < MOST; i++)
		CHECK_IS(thing[i]->value[0], i % 3 ? i + 1 : 0);
	pool_free(&pool);
}

TEST(memory_is_aligned_zero_and_of_any_length)
{
	for (size_t align = 16; align <= 65536; align *= 4)
		for (size_t bytes = 1; bytes < 300000; bytes = bytes * 7 + 1) {
			unsigned char *p = memory_aligned(align, bytes);
			REQUIRE(p != NULL);
			CHECK_IS((uintptr_t)p % align, 0);
			CHECK(p[0] == 0 && p[bytes / 2] == 0 && p[bytes - 1] == 0);
			memset(p, 1, bytes);
			memory_free(p);
		}
	memory_free(NULL);
	CHECK(memory_new(SIZE_MAX / 2, 3) == NULL);
	CHECK(memory_new(1, SIZE_MAX - 70) == NULL);
	CHECK(memory_aligned(64, SIZE_MAX - 32) == NULL);
}

static long mapped_pages(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	REQUIRE(f != NULL && fscanf(f, "%ld", &pages) == 1);
	fclose(f);
	return pages;
}

TEST(memory_that_is_freed_is_given_back)
{
	enum { TIMES = 100, BYTES = 1 << 20 };
	memory_free(memory_new(1, BYTES));
	long before = mapped_pages();
	for (int i = 0; i < TIMES; i++) {
		void *p = memory_new(1, BYTES);
		REQUIRE(p != NULL);
		memory_free(p);
	}
	CHECK(mapped_pages() < before + TIMES); /* less than a page of each */
}
