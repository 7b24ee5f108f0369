/* SPDX-License-Identifier: BSD-3-Clause */
/* One request to a list of ranks. */
#include <errno.h>
#include <tern/tern.h>

#include "lib/local.h"

enum { ASK, UNKNOWN, RANKS = 4 };

static unsigned got[RANKS];
static uint64_t sum[RANKS];

static void on_ask(tern *t, const tern_msg *m)
{
	got[tern_rank(t)]++;
	for (unsigned i = 0; i < tern_msg_count(m); i++)
		sum[tern_rank(t)] += tern_msg_word(m, i);
}

static void ranks_open(void)
{
	local_open(RANKS);
	for (uint32_t r = 0; r < RANKS; r++) {
		CHECK_IS(tern_on(local[r], ASK, on_ask), 0);
		got[r] = 0;
		sum[r] = 0;
	}
}

static void check_got(unsigned a, unsigned b, unsigned c, unsigned d)
{
	const unsigned expected[RANKS] = { a, b, c, d };
	local_settle();
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(got[r], expected[r]);
}

TEST(every_rank_of_a_list_gets_the_request)
{
	const uint32_t ranks[] = { 3, 1, 0, 1 };
	const uint64_t words[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	ranks_open();
	CHECK_IS(tern_request_list(local[0], ranks, 4, ASK, 5, 7), 0);
	check_got(1, 2, 0, 1);
	CHECK_IS(sum[3], 12);
	CHECK_IS(sum[1], 24);
	CHECK_IS(tern_request_list_array(local[0], ranks, 1, ASK, 8, words), 0);
	CHECK_IS(tern_request_list(local[0], ranks, 0, ASK), 0);
	check_got(1, 2, 0, 2);
	CHECK_IS(sum[3], 48);
	local_close();
}

TEST(what_is_wrong_with_one_of_a_list_is_found_before_the_first_is_sent)
{
	const uint32_t ranks[] = { 1, 2, RANKS };
	const uint64_t words[9] = { 0 };
	ranks_open();
	CHECK_IS(tern_request_list(local[0], ranks, 3, ASK), -ERANGE);
	CHECK_IS(tern_request_list(local[0], ranks, 2, UNKNOWN), -ENXIO);
	CHECK_IS(tern_request_list_array(local[0], ranks, 2, ASK, 9, words), -E2BIG);
	tern_hold(local[0]);
	CHECK_IS(tern_request_list(local[0], ranks, 2, ASK), -EDEADLK);
	tern_release(local[0]);
	check_got(0, 0, 0, 0);
	local_close();
}

TEST(a_rank_of_a_list_that_has_left_is_passed_over)
{
	const uint32_t ranks[] = { 1, 2, 3 };
	ranks_open();
	CHECK_IS(tern_close(local[2]), 0);
	local[2] = NULL;
	int rc = tern_request_list(local[0], ranks, 3, ASK);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(sentence_has(rc, "rank 2"));
	check_got(0, 1, 0, 1);
	local_close();
}
