/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What TERN_TRACE costs: the same batches between two endpoints that are traced and two that
 * are not. A message is three events (it is sent, its handler begins, its handler returns), so the
 * difference is shared by three. That sends leave the inline path is in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "lab/bench/pair.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { BATCH = PAIR_BATCH, EVENTS = 3 };

static tern *plain[2], *traced[2];

/* Files that are gone when this process is: nobody wants to read them. */
static int traced_open(void)
{
	const char *folder = getenv("TMPDIR");
	char prefix[256], path[300];
	snprintf(prefix, sizeof prefix, "%s/tern-perf-%d", folder ? folder : "/tmp", (int)getpid());
	if (setenv("TERN_TRACE", prefix, 1) != 0)
		return error_system("setting TERN_TRACE");
	int rc = pair_open_at(traced);
	unsetenv("TERN_TRACE");
	for (int r = 0; r < 2; r++) {
		snprintf(path, sizeof path, "%s.%d", prefix, r);
		unlink(path);
	}
	return rc;
}

static int trace_pairs_open(struct bench_rank *p)
{
	(void)p;
	unsetenv("TERN_TRACE");
	int rc = pair_open_at(plain);
	return rc ? rc : traced_open();
}

static int batch(tern **ends, unsigned words)
{
	int handled = 0, rc = words_send(ends[0], 1, words, BATCH);
	while (!rc && handled < BATCH) {
		int some = tern_poll(ends[1]);
		if (some < 0)
			return some;
		handled += some;
	}
	return rc;
}

static uint64_t batches_time(struct bench_rank *p, tern **ends, uint64_t batches)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < batches && !p->rc; i++)
		p->rc = batch(ends, p->size);
	return clock_ns() - began;
}

static double trace_measure(struct bench_rank *p)
{
	uint64_t batches = (p->count + BATCH - 1) / BATCH;
	uint64_t without = batches_time(p, plain, batches), with = batches_time(p, traced, batches);
	return ((double)with - (double)without) / (double)(batches * BATCH * EVENTS);
}

static REPEATS(clock_raw, (raw_sink += clock_ns(), 0));

static const struct test test_trace = {
	{ "trace", "what TERN_TRACE adds to a message, for each of its three events", "ns" },
	{ "words", 0, TERN_WORDS_MAX, { 1, { 4 } }, { 0 } },
	.amount = { .ranks = 1, .count = 40 * BATCH },
	.play = { .open = trace_pairs_open,
		  .measure.figure = trace_measure,
		  .limit = { { .time = PHASE_ALL, .act = clock_raw } } },
	.limit_name = "one look at the clock, which every event takes",
	.bar = { { 4, "at most 60 ns" } },
	.note = "two endpoints of one thread; writing the file is in it",
};

const struct test *const trace_tests[] = { &test_trace, NULL };
