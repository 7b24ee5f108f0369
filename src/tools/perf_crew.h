/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of a test. */
#ifndef TERN_TOOLS_PERF_CREW_H
#define TERN_TOOLS_PERF_CREW_H

#include "tools/perf.h"
#include "tools/perf_series.h"

struct crew_result {
	struct series measured, limit[PERF_LIMITS];
	unsigned disturbed; /* figures during which another program took a core */
};

/*
 * Starts the ranks of `test`, each on a core of its own if there are enough, runs
 * the rounds and returns when the processes have ended. Nobody outlives this
 * process. A negative code has its sentence in tern_strerror().
 */
int crew_run(const struct test *test, uint32_t size, uint64_t count, unsigned rounds,
	     struct crew_result *result);

uint32_t crew_ranks(const struct test *test, uint32_t size);

#endif
