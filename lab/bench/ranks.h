/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of a test. */
#ifndef TERN_LAB_BENCH_RANKS_H
#define TERN_LAB_BENCH_RANKS_H

#include "lab/bench/series.h"
#include "lab/bench/test.h"

/*
 * What the ranks do in turn: a phase, and what its ranks find as size and count. A phase that
 * has more than one figure leaves the others in the rank; they go to the parts behind
 * it, which then play nothing.
 */
struct part {
	struct phase phase;
	uint32_t size;
	uint64_t count;
	unsigned also; /* further figures */
};

struct ranks_result {
	struct series part[PERF_PARTS_MOST];
	unsigned disturbed; /* figures during which another program took a core */
};

/* The parts of a test that is run by ranks_run(); the limits it does not have stay empty. */
enum { PART_MEASURED, PART_LIMIT };

/*
 * Starts the ranks of `test`, each on a core of its own if there are enough, runs
 * the rounds and returns when the processes have ended. Nobody outlives this
 * process. A negative code has its sentence in tern_strerror().
 */
int ranks_run(const struct test *test, uint32_t size, uint64_t count, unsigned rounds,
	      struct ranks_result *result);

/*
 * The same for any number of parts, up to PERF_PARTS_MOST, all of which a round plays in
 * this order. Of the test, only what concerns the ranks and how they begin is used; its
 * `open` finds `size` in the rank.
 */
int ranks_play(const struct test *test, uint32_t size, const struct part *parts, unsigned n,
	       unsigned rounds, struct ranks_result *result);

/* Where there is a core that no rank has, this rank's progress thread will run there. */
int compute_spare_core(const struct bench_rank *p);

uint32_t test_ranks(const struct test *test, uint32_t size);

#endif
