/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A barrier or a short allreduce that cannot complete within a moment goes on in a run: because a
 * member is late, or because the member's own cell is not free. One member waits until the others
 * sleep in their calls, so each of these calls was handed over.
 */
#include <errno.h>
#include <string.h>
#include <tern/coll.h>

#include "coll/cell.h"
#include "lib/ranks.h"

enum { ROUNDS = 40, WORDS = CELL_LINE / 8 };

/* Until `n` members sleep. They say so once their calls have become runs. */
static void sleepers_wait(const tern_team *team, uint32_t n)
{
	while (atomic_load(&team->outbox[0]->sleepers) < n)
		ranks_nap(50000);
}

static void sum_one(tern_team *team, uint64_t salt, size_t words)
{
	uint32_t n = tern_team_size(team), me = tern_team_rank(team);
	uint64_t mine[WORDS], sum[WORDS];
	for (size_t i = 0; i < words; i++)
		mine[i] = salt * 100 + me + i;
	CHECK_IS(tern_team_allreduce(team, mine, sum, words, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
	for (size_t i = 0; i < words; i++)
		CHECK_IS(sum[i], n * (salt * 100 + i) + n * (n - 1) / 2);
}

static void late_rank(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	REQUIRE(tern_team_all(t, &all) == 0);
	uint32_t n = tern_size(t), me = tern_rank(t);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t round = all->round, calls = all->calls;
		if (me == i % n)
			sleepers_wait(all, n - 1);
		if (i % 3 == 0)
			CHECK_IS(tern_team_barrier(all), 0);
		else
			sum_one(all, i, i % 3 == 1 ? 1 : WORDS);
		/* One round of the outboxes, and one call, whoever has completed it. */
		CHECK_IS(all->round, round + 1);
		CHECK_IS(all->calls, calls + 1);
		for (uint64_t k = 0; k < 3; k++)
			sum_one(all, i + k, 1);
	}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

/* The root of broadcasts goes ahead of a late member until its cells are used up. */
static void full_rank(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	REQUIRE(tern_team_all(t, &all) == 0);
	for (int again = 0; again < 4; again++) {
		CHECK_IS(tern_team_barrier(all), 0);
		if (tern_rank(t) == 1)
			sleepers_wait(all, 1);
		for (uint64_t i = 0; i < OUTBOX_CELLS; i++) {
			uint64_t word = tern_rank(t) ? 0 : i;
			CHECK_IS(tern_team_broadcast(all, 0, &word, sizeof word), 0);
			CHECK_IS(word, i);
		}
		sum_one(all, (uint64_t)again, 1);
	}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void try_modes(uint32_t n, void (*rank_main)(void))
{
	static const char *const modes[] = { "poll", "thread", "interrupt" };
	setenv("TERN_SIGNAL", "38", 1);
	setenv("TERN_CHECK", "0", 1); /* its calls take other steps */
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
		setenv("TERN_DELIVERY", modes[i], 1);
		ranks_run(n, rank_main);
	}
	unsetenv("TERN_DELIVERY");
}

TEST(a_meeting_with_a_late_member_goes_on_in_a_run)
{
	try_modes(2, late_rank);
	try_modes(3, late_rank);
}

TEST(a_meeting_without_a_free_cell_goes_on_in_a_run)
{
	try_modes(2, full_rank);
}

/* Of two members the one might meet all, and leave, while the other waits for its slice. */
TEST(what_may_be_done_in_a_meeting_is_done_in_no_slices_however_large_the_team)
{
	struct near_step s = { .kind = NEAR_ALLREDUCE, .len = CELL_LINE };
	for (uint32_t n = 2; n <= TERN_RANKS_MAX; n *= 2)
		CHECK(!near_sliced(&(tern_team){ .near = { .n = n } }, &s));
}
