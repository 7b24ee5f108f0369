/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of a pool: who may take which buffer, and what comes back. */
#include "typed/bufpool.h"

#include <pthread.h>

#include "../../tests/chance.h"
#include "../../tests/check.h"

enum { MOST = 4096, BYTES = 40 };

static _Alignas(64) char words[64 + 512 + MOST * 8];
static _Alignas(64) char buffers[MOST * 64];

static struct bufpool bufpool_made(uint32_t count, uint32_t generation)
{
	struct bufpool k = { .generation = generation, .count = count, .bytes = BYTES };
	size_t all;
	REQUIRE(bufpool_sizes(BYTES, count, &k.stride, &all) && all <= sizeof buffers);
	REQUIRE(bufpool_words_bytes(count) <= sizeof words);
	bufpool_see(&k, words, buffers);
	bufpool_fresh(&k);
	return k;
}

static uint32_t take(struct bufpool *k, uint32_t rank)
{
	uint32_t i = UINT32_MAX;
	return bufpool_take(k, BUFPOOL_CLAIMED, rank, &i) ? i : UINT32_MAX;
}

static uint32_t take_all(struct bufpool *k, uint32_t rank)
{
	uint32_t n = 0;
	while (take(k, rank) != UINT32_MAX)
		n++;
	return n;
}

TEST(sizes_are_whole_lines_and_too_large_ones_are_known)
{
	size_t stride, all;
	CHECK(bufpool_sizes(0, 3, &stride, &all) && stride == 64 && all == 192);
	CHECK(bufpool_sizes(64, 3, &stride, &all) && stride == 64);
	CHECK(bufpool_sizes(65, 3, &stride, &all) && stride == 128 && all == 384);
	CHECK(!bufpool_sizes(SIZE_MAX, 1, &stride, &all));
	CHECK(!bufpool_sizes(SIZE_MAX / 4, 4096, &stride, &all));
	CHECK_IS(bufpool_room(1), 64);
	CHECK_IS(bufpool_room(64), 64);
	CHECK_IS(bufpool_room(65), 128);
	CHECK_IS(bufpool_room(4096), 4096);
}

TEST(every_buffer_is_taken_once_and_again_when_it_is_given_back)
{
	static const uint32_t counts[] = { 1, 2, 63, 64, 65, 100, 4095, 4096 };
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		static bool seen[MOST];
		struct bufpool k = bufpool_made(counts[c], 5);
		memset(seen, 0, sizeof seen);
		for (uint32_t n = 0; n < counts[c]; n++) {
			uint32_t i = take(&k, 3);
			REQUIRE(i < counts[c]);
			CHECK(!seen[i]);
			CHECK(bufpool_is(&k, i, BUFPOOL_CLAIMED, 3));
			seen[i] = true;
		}
		CHECK_IS(take(&k, 3), UINT32_MAX);
		bufpool_give(&k, counts[c] / 2);
		CHECK_IS(take(&k, 4), counts[c] / 2);
		CHECK_IS(take(&k, 4), UINT32_MAX);
	}
}

TEST(whoever_believes_in_an_earlier_turn_takes_nothing)
{
	struct bufpool old = bufpool_made(70, 5);
	struct bufpool k = bufpool_made(70, 6);
	CHECK_IS(take(&old, 1), UINT32_MAX);
	CHECK_IS(take_all(&k, 1), 70);
}

TEST(nothing_beyond_the_last_buffer_is_taken_whatever_the_words_say)
{
	struct bufpool k = bufpool_made(10, 1);
	CHECK_IS(take_all(&k, 1), 10);
	atomic_store(&k.state[10], bufpool_word(&k, BUFPOOL_FREE, 0));
	atomic_store(&k.free[0], UINT64_MAX);
	CHECK_IS(take(&k, 1), UINT32_MAX);
}

TEST(what_a_rank_had_claimed_comes_back_and_nothing_else)
{
	struct bufpool k = bufpool_made(100, 1);
	for (uint32_t n = 0; n < 100; n++)
		take(&k, n % 4);
	bufpool_set(&k, 8, BUFPOOL_FULL, 2);
	bufpool_set(&k, 13, BUFPOOL_HELD, 2);
	uint32_t claimed = 0;
	for (uint32_t i = 0; i < 100; i++)
		claimed += bufpool_is(&k, i, BUFPOOL_CLAIMED, 2);
	bufpool_reclaim(&k, 2);
	CHECK(bufpool_is(&k, 8, BUFPOOL_FULL, 2) && bufpool_is(&k, 13, BUFPOOL_HELD, 2));
	CHECK_IS(take_all(&k, 1), claimed);
}

TEST(a_bit_that_a_dying_rank_did_not_set_is_set_for_it)
{
	struct bufpool k = bufpool_made(10, 1);
	CHECK_IS(take_all(&k, 2), 10);
	atomic_store(&k.state[3], bufpool_word(&k, BUFPOOL_FREE, 0)); /* half of bufpool_give() */
	CHECK_IS(take(&k, 1), UINT32_MAX);
	bufpool_reclaim(&k, 5);
	CHECK_IS(take(&k, 1), 3);
}

TEST(a_pool_with_a_claim_is_not_shut_and_stays_as_it_was)
{
	struct bufpool k = bufpool_made(100, 1);
	uint32_t i = 0;
	while (i != 77)
		i = take(&k, 2);
	for (uint32_t n = 0; n < 77; n++)
		bufpool_give(&k, n);
	bufpool_set(&k, 5, BUFPOOL_FULL, 1);
	CHECK(!bufpool_shut(&k));
	CHECK_IS(atomic_load(k.now), 1);
	CHECK(bufpool_is(&k, 5, BUFPOOL_FULL, 1));
	CHECK_IS(take_all(&k, 2), 98);
}

TEST(in_a_pool_that_is_shut_nothing_can_be_taken)
{
	struct bufpool k = bufpool_made(100, 1);
	CHECK(bufpool_shut(&k));
	CHECK_IS(atomic_load(k.now), 0);
	CHECK_IS(take(&k, 1), UINT32_MAX);
}

/* -- Many at once ------------------------------------------------------------------------------ */

enum { THREADS = 4, HAVE = 70 };
static _Atomic int32_t users[HAVE];
static struct bufpool shared;

static void *take_and_give(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	struct bufpool k = shared;
	struct chance c = { me };
	uint32_t mine[HAVE], n = 0;
	k.next = me;
	for (unsigned round = check_scaled(200000); round || n;) {
		if (round && chance_one_in(&c, 2)) {
			round--;
			uint32_t i = take(&k, me);
			if (i == UINT32_MAX)
				continue;
			CHECK_IS(atomic_fetch_add(&users[i], 1), 0);
			memset(bufpool_buffer(&k, i), (int)me,
			       BYTES); /* plain: what orders it is the pool */
			mine[n++] = i;
		} else if (n) {
			uint32_t i = mine[--n];
			for (int b = 0; b < BYTES; b++)
				CHECK(bufpool_buffer(&k, i)[b] == (char)me);
			atomic_fetch_sub(&users[i], 1);
			bufpool_give(&k, i);
		}
	}
	return NULL;
}

TEST(no_buffer_is_ever_taken_by_two_and_none_is_lost)
{
	pthread_t thread[THREADS];
	shared = bufpool_made(HAVE, 9);
	for (uintptr_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, take_and_give, (void *)(i + 1)) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK_IS(take_all(&shared, 1), HAVE);
}
