/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 300 */
/*
 * Locks of all ranks, between processes and over each network: one rank has it at a time, in the
 * order in which they asked, and finds what the one before it wrote.
 */
#include <tern/lock.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/net_traffic.h"
#include "lib/ranks.h"

enum { RANKS = 4, ROUNDS = 40 };

static struct area {
	tern_lock lock[2];
	uint64_t count, owner; /* at rank 0 */
} * area;

static uint64_t seed;

static tern *area_open(void)
{
	tern *t = ranks_open();
	area = handed_alloc_all(t, sizeof *area);
	REQUIRE(area);
	memset(area, 0, sizeof *area);
	CHECK_IS(tern_barrier(t), 0);
	return t;
}

static uint64_t word_get(tern *t, const uint64_t *word)
{
	uint64_t value = UINT64_MAX;
	CHECK_IS(tern_get(t, &value, tern_addr_at(t, 0, word), sizeof value), 0);
	return value;
}

static void word_put(tern *t, const uint64_t *word, uint64_t value)
{
	CHECK_IS(tern_put(t, tern_addr_at(t, 0, word), &value, sizeof value), 0);
}

/* What only one rank at a time can do right. */
static void count_once(tern *t)
{
	CHECK_IS(word_get(t, &area->owner), 0);
	word_put(t, &area->owner, tern_rank(t) + 1);
	word_put(t, &area->count, word_get(t, &area->count) + 1);
	CHECK_IS(word_get(t, &area->owner), tern_rank(t) + 1);
	word_put(t, &area->owner, 0);
}

static void count_all(void)
{
	tern *t = area_open();
	struct chance c = { seed + tern_rank(t) };
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (chance_one_in(&c, 10))
			ranks_nap(chance_below(&c, 3000000)); /* the others sleep */
		int rc = chance_one_in(&c, 4) ? tern_lock_try(t, area->lock)
					      : tern_lock_take(t, area->lock);
		if (rc == -EAGAIN)
			rc = tern_lock_take(t, area->lock);
		if (!CHECK_IS(rc, 0))
			break;
		count_once(t);
		CHECK_IS(tern_lock_release(t, area->lock), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(word_get(t, &area->count), ROUNDS * RANKS);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

/* Until rank `n` - 1 was the last to ask; one of the ranks keeps that. */
static void until_last(tern *t, uint64_t n)
{
	uint64_t last = 0;
	for (uint32_t r = 0; last != n; r = (r + 1) % RANKS)
		CHECK_IS(tern_get(t, &last, tern_addr_at(t, r, &area->lock[1].last), sizeof last),
			 0);
}

/* Ranks ask one after another, while rank 0 has it. */
static void in_order(void)
{
	tern *t = area_open();
	uint32_t me = tern_rank(t);
	uint64_t place = 0;
	char words[40];
	if (me == 0) {
		CHECK_IS(tern_lock_take(t, &area->lock[1]), 0);
		until_last(t, RANKS);
		CHECK_IS(tern_lock_release(t, &area->lock[1]), 0);
	} else {
		until_last(t, me);
		CHECK_IS(tern_lock_try(t, &area->lock[1]), -EAGAIN);
		snprintf(words, sizeof words, "rank %u was the last to ask", me - 1);
		CHECK(strstr(tern_strerror(-EAGAIN), words));
		CHECK_IS(tern_lock_take(t, &area->lock[1]), 0);
		CHECK_IS(tern_amo(t, tern_addr_at(t, 0, &area->count), TERN_AMO_ADD, 1, &place), 0);
		CHECK_IS(place, me - 1);
		CHECK_IS(tern_lock_release(t, &area->lock[1]), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void run_over(const char *net, void (*rank_main)(void))
{
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	seed = check_seed();
	ranks_run(RANKS, rank_main);
}

TEST(over_shared_memory_one_rank_at_a_time_has_the_lock)
{
	run_over("shm", count_all);
}

TEST(where_heaps_are_read_only_one_rank_at_a_time_has_the_lock)
{
	setenv("TERN_GRANT", "1", 1);
	run_over("shm", count_all);
	unsetenv("TERN_GRANT");
}

TEST(over_udp_one_rank_at_a_time_has_the_lock)
{
	run_over("udp", count_all);
}

TEST(over_udp_that_loses_packets_one_rank_at_a_time_has_the_lock)
{
	setenv("TERN_FAULT", "drop=0.02,duplicate=0.05,reorder=0.05", 1);
	run_over("udp", count_all);
	unsetenv("TERN_FAULT");
}

TEST(over_libfabric_one_rank_at_a_time_has_the_lock)
{
	run_over("ofi", count_all);
}

TEST(whoever_asks_first_has_it_first)
{
	run_over("shm", in_order);
	run_over("udp", in_order);
}

/* -- What is refused ------------------------------------------------------------------------- */

static void misused(void)
{
	tern *t = area_open();
	tern_lock private = { 0 }, *own = handed_alloc(t, sizeof *own);
	if (tern_rank(t) == 0) {
		CHECK_IS(tern_lock_take(t, &private), -EFAULT);
		CHECK_IS(tern_lock_take(t, own), -EFAULT); /* other ranks have none there */
		CHECK_IS(tern_lock_release(t, area->lock), -EPERM);
		CHECK_IS(tern_lock_take(t, area->lock), 0);
		CHECK_IS(tern_lock_take(t, area->lock), -EDEADLK);
		CHECK_IS(tern_lock_try(t, area->lock), -EDEADLK);
		tern_hold(t);
		CHECK_IS(tern_lock_release(t, area->lock), -EDEADLK);
		tern_release(t);
		CHECK_IS(tern_lock_release(t, area->lock), 0);
		CHECK_IS(tern_lock_release(t, area->lock), -EPERM);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_lock_is_memory_of_all_ranks_and_only_its_owner_releases_it)
{
	run_over("shm", misused);
}
