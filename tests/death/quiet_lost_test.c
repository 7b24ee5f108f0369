/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 */
/*
 * A rank dies while the others wait in tern_team_quiet() for the mark of one that computes, whose
 * answer comes after the call has failed. The next tern_team_quiet(), of the survivors, ends.
 */
#include <tern/coll.h>

#include "lib/ranks.h"

enum { RANKS = 5, LATE = RANKS - 2, VICTIM = RANKS - 1, TIMES = 4 };

static _Atomic uint32_t *waiting;

static void on_nothing(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
}

static void die_in_quiet(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all, *left;
	REQUIRE(tern_on(t, 0, on_nothing) == 0 && tern_team_all(t, &all) == 0);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(tern_request(t, r, 0, 1), 0); /* so that marks go to all */
	CHECK_IS(tern_team_quiet(all), 0);
	atomic_fetch_add(waiting, 1);
	if (tern_rank(t) == LATE)
		ranks_nap(300000000);
	CHECK_IS(tern_team_quiet(all), -EOWNERDEAD);
	REQUIRE(tern_team_survivors(all, &left) == 0);
	CHECK_IS(tern_team_size(left), RANKS - 1);
	CHECK_IS(tern_team_quiet(left), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(it_ends_after_a_death_whose_marks_are_answered_late)
{
	waiting = ranks_shared(sizeof *waiting);
	for (int i = 0; i < TIMES; i++) {
		atomic_store(waiting, 0);
		ranks_start(RANKS, 0, die_in_quiet);
		while (atomic_load(waiting) < RANKS)
			ranks_nap(100000);
		ranks_nap(100000000);
		kill(ranks_pid[VICTIM], SIGKILL);
		CHECK_IS(ranks_reap(RANKS, 0), 1);
		ranks_end();
	}
}
