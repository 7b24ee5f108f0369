/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thousands of regions, compared with a model. Between processes: tests/layers/mem_region_test.c.
 */
#include <errno.h>
#include <sys/mman.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "lib/mem_model.h"
#include "mem/mem.h"

enum { MANY = 10000, MOST = 300, OLD = 4096 };

/* Each has its own part of `pool`, `MOST` bytes. */
static struct {
	tern_addr at; /* TERN_ADDR_NONE: it is not registered */
	size_t len;
} region[MANY];
static unsigned char pool[MANY * MOST], image[MANY * MOST];
static tern_addr old[OLD]; /* the last that were unregistered */
static unsigned olds;

static void region_begin(unsigned i, struct chance *c)
{
	region[i].len = 1 + chance_below(c, MOST);
	CHECK_IS(tern_register(local[1], pool + i * MOST, region[i].len, &region[i].at), 0);
}

static void region_end(unsigned i)
{
	CHECK_IS(tern_unregister(local[1], region[i].at), 0);
	old[olds++ % OLD] = region[i].at;
	region[i].at = TERN_ADDR_NONE;
}

static void region_use(unsigned i, struct chance *c)
{
	unsigned char bytes[MOST];
	size_t from = chance_below(c, (uint32_t)region[i].len);
	size_t len = chance_below(c, (uint32_t)(region[i].len - from)) + 1;
	tern_addr a = region[i].at + from;
	model_scatter(bytes, len, c);
	CHECK_IS(tern_put(local[0], a, bytes, len), 0);
	memcpy(image + i * MOST + from, bytes, len);
	CHECK_IS(tern_get(local[0], bytes, region[i].at, region[i].len), 0);
	CHECK(model_same(bytes, image + i * MOST, region[i].len));
	CHECK_IS(tern_put(local[0], a, bytes, region[i].len - from + 1), -EFAULT);
	CHECK_IS(tern_put(local[0], region[i].at - 1, bytes, 1), -EFAULT);
}

static bool old_is_refused(tern_addr a)
{
	char byte;
	return tern_get(local[0], &byte, a, 1) == -EFAULT &&
	       tern_unregister(local[1], a) == -EINVAL;
}

TEST(ten_thousand_regions_come_and_go_and_none_is_taken_for_another)
{
	struct chance c = { check_seed() };
	local_open(2);
	for (unsigned i = 0; i < MANY; i++)
		region_begin(i, &c);
	for (unsigned n = check_scaled(40000); n; n--) {
		unsigned i = chance_below(&c, MANY);
		if (region[i].at == TERN_ADDR_NONE)
			region_begin(i, &c);
		else if (chance_one_in(&c, 3))
			region_end(i);
		else
			region_use(i, &c);
	}
	for (unsigned i = 0; i < olds && i < OLD; i++)
		if (!CHECK(old_is_refused(old[i])))
			break;
	for (unsigned i = 0; i < MANY; i++)
		if (region[i].at != TERN_ADDR_NONE)
			region_end(i);
	CHECK(model_same(pool, image, sizeof pool));
	local_close();
}

/* As long as two of one class are; it is never touched. */
TEST(long_regions_have_addresses_that_stay_refused_for_long)
{
	static const struct {
		size_t len;
		unsigned turns;
	} kind[] = { { (size_t)1 << 20, 30000 },
		     { ((size_t)1 << 31) - 4096, 16000 },
		     { (size_t)3 << 30, 1000 },
		     { ((size_t)1 << 40) - 4096, 30 } };
	static char byte;
	local_open(2);
	for (unsigned k = 0; k < sizeof kind / sizeof *kind; k++) {
		tern_addr first, a;
		REQUIRE(tern_register(local[1], &byte, kind[k].len, &first) == 0);
		CHECK_IS(tern_unregister(local[1], first), 0);
		for (unsigned i = kind[k].turns; i; i--) {
			REQUIRE(tern_register(local[1], &byte, kind[k].len, &a) == 0);
			if (!CHECK_IS(tern_put(local[0], first, "x", 1), -EFAULT) ||
			    !CHECK_IS(tern_put(local[0], a, "x", 1), 0))
				break;
			CHECK_IS(tern_unregister(local[1], a), 0);
		}
	}
	local_close();
}

TEST(regions_of_every_length_are_used_again_when_none_is_left)
{
	enum { LONGEST = 32, TURNS = 200 };
	const size_t len = ((size_t)1 << 40) - 4096;
	static char byte;
	tern_addr a[LONGEST + 1];
	local_open(2);
	for (int i = 0; i < LONGEST; i++)
		REQUIRE(tern_register(local[1], &byte, len, &a[i]) == 0);
	int rc = tern_register(local[1], &byte, len, &a[LONGEST]);
	CHECK_IS(rc, -ENOBUFS);
	CHECK(strstr(tern_strerror(rc), "length"));
	CHECK_IS(tern_register(local[1], &byte, 1, &a[LONGEST]), 0);
	for (int i = 0; i < TURNS; i++) {
		CHECK_IS(tern_unregister(local[1], a[i % LONGEST]), 0);
		CHECK_IS(tern_put(local[0], a[i % LONGEST], "x", 1), -EFAULT);
		REQUIRE(tern_register(local[1], &byte, len, &a[i % LONGEST]) == 0);
		CHECK_IS(tern_put(local[0], a[i % LONGEST] + len - 1, "x", 0), 0);
		CHECK_IS(tern_put(local[0], a[i % LONGEST], "x", 1), 0);
	}
	local_close();
}

/* Lent memory has addresses of the same kind, and is not the program's. */
TEST(memory_that_a_layer_lends_is_not_of_the_program)
{
	static char bytes[100];
	tern_addr a;
	local_open(2);
	tern_addr lent = region_lend(mem_of(local[1]), bytes, sizeof bytes);
	REQUIRE(lent != TERN_ADDR_NONE);
	CHECK_IS(tern_put(local[0], lent, "x", 1), 0);
	CHECK_IS(tern_addr_of(local[1], bytes, &a), -EFAULT);
	CHECK_IS(tern_unregister(local[1], lent), -EINVAL);
	region_unlend(mem_of(local[1]), lent);
	CHECK_IS(tern_put(local[0], lent, "x", 1), -EFAULT);
	local_close();
}

/* Also a worker, which is not the one that registers. */
TEST(a_worker_finds_what_its_rank_has_registered_and_nothing_else)
{
	static char few[3][100], none[100];
	tern_addr of[3], lent, found;
	tern *w;
	local_open(2);
	REQUIRE(tern_worker_open(local[1], &w) == 0);
	CHECK_IS(tern_addr_of(w, none, &found), -EFAULT);
	for (unsigned i = 0; i < 3; i++)
		CHECK_IS(tern_register(local[1], few[i], sizeof few[i], &of[i]), 0);
	CHECK_IS(tern_unregister(local[1], of[1]), 0);
	lent = region_lend(mem_of(local[1]), none, sizeof none);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_IS(tern_addr_of(w, few[i] + 99, &found), i == 1 ? -EFAULT : 0);
		if (i != 1)
			CHECK_IS(found, of[i] + 99);
	}
	CHECK_IS(tern_addr_of(w, none, &found), -EFAULT);
	region_unlend(mem_of(local[1]), lent);
	CHECK_IS(tern_close(w), 0);
	local_close();
}
