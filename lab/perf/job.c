/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole jobs: the barrier, and a rank that waits. */
#include <time.h>

#include "base/clock.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

/* -- Barrier -------------------------------------------------------------------- */

static REPEATS(barriers_pass, tern_barrier(p->t));

/* -- A rank that waits ------------------------------------------------------------ */

static uint64_t processor_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

static double idle_measure(struct bench_rank *p)
{
	if (p->rank) {
		struct timespec length = { .tv_sec = (time_t)(p->count / 1000),
					   .tv_nsec = (long)(p->count % 1000 * 1000000) };
		nanosleep(&length, NULL);
		p->rc = words_last(p->t, 0);
		return 0;
	}
	uint64_t began = clock_ns(), used = processor_ns();
	p->rc = words_serve(p->t, 1);
	return 100 * (double)(processor_ns() - used) / (double)(clock_ns() - began);
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test job_tests[] = {
	{ "barrier", "a barrier of all ranks", "us", "ranks", 2, PERF_RANKS_MOST,
	  .sizes = { 2, { 2, 8 } }, .quick = { 1, { 8 } }, .ranks = RANKS_BY_SIZE, .count = 100,
	  .measure = { .time = PHASE_ALL, .act = barriers_pass },
	  .limit = { { .time = PHASE_ALL, .act = raw_laps } }, .limit_name = LAPS_NAME,
	  .bar = { { 8, "at most 0.40" } } },
	{ "idle", "the part of a core that a rank uses while it waits, for --count ms", "%",
	  "ranks", 2, 2, .sizes = { 1, { 2 } }, .cores = TEST_NONE, .count = 1000, .rounds = 3,
	  .warm = TEST_NONE, .measure.figure = idle_measure, .bar = { { 2, "less than 1 %" } } },
	{ .like = NULL },
};
