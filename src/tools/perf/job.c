/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole jobs: the barrier, a rank that waits, memory. */
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "job/job.h"
#include "tools/bench/words.h"
#include "tools/perf/perf.h"

/* -- Barrier -------------------------------------------------------------------- */

static double barrier_measure(struct player *p)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_barrier(p->t);
	return (double)(clock_ns() - began) / (double)p->count / 1000;
}

static double barrier_laps(struct player *p)
{
	uint64_t began = clock_ns();
	raw_laps(&p->raw, p->rank, p->ranks, p->count);
	return (double)(clock_ns() - began) / (double)p->count / 1000;
}

const struct test test_barrier = {
	.name = "barrier",
	.purpose = "a barrier of all ranks",
	.size_name = "ranks",
	.size_least = 2,
	.size_most = PERF_RANKS_MOST,
	.sizes = { 2, { 2, 8 } },
	.quick = { 1, { 8 } },
	.unit = "us",
	.count = 100,
	.rounds = 51,
	.warm = 2,
	.measure = barrier_measure,
	.limit = { barrier_laps },
	.limit_name =
		"a raw token once around the same processes, which yield if they are more than the cores",
	.bar = { { 8, "at most 0.40" } },
};

/* -- A rank that waits ------------------------------------------------------------ */

static int idle_open(struct player *p)
{
	return words_register(p->t);
}

static uint64_t processor_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

static double idle_measure(struct player *p)
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

const struct test test_idle = {
	.name = "idle",
	.purpose = "the part of a core that a rank uses while it waits, for --count ms",
	.size_name = "ranks",
	.size_least = 2,
	.size_most = 2,
	.sizes = { 1, { 2 } },
	.unit = "%",
	.ranks = 2,
	.count = 1000,
	.rounds = 3,
	.open = idle_open,
	.measure = idle_measure,
	.bar = { { 2, "less than 1 %" } },
};

/* -- Memory --------------------------------------------------------------------- */

static double memory_measure(struct player *p)
{
	struct job_needs needs;
	job_needs(p->size, &needs);
	return (double)needs.neighbours / (1 << 20);
}

const struct test test_memory = {
	.name = "memory",
	.purpose = "shared memory of a job whose ranks talk with their neighbours only",
	.size_name = "ranks",
	.size_least = 1,
	.size_most = TERN_RANKS_MAX,
	.sizes = { 2, { 64, 256 } },
	.unit = "MiB",
	.ranks = 1,
	.rounds = 1,
	.measure = memory_measure,
	.bar = { { 64, "at most 16 MiB" }, { 256, "at most 256 MiB" } },
	.note = "computed, not measured",
};
