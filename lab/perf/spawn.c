/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that messages start: how long one takes from its creation to its end. */
#include <tern/thread.h>

#include "base/clock.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { EMPTY };

static uint64_t empty(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	return word[0];
}

static int spawn_open(struct bench_rank *p)
{
	return tern_thread_on(p->t, EMPTY, empty, NULL);
}

static int fork_and_join(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		tern_thread thread;
		p->rc = tern_thread_start(p->t, 1, EMPTY, &thread, i, 2, 3, 4);
		if (!p->rc)
			p->rc = tern_thread_join(p->t, &thread, NULL);
	}
	return p->rc;
}

/* -- Switching --------------------------------------------------------------------------------- */

static uint64_t yielding;

static uint64_t yield_often(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < word[0]; i++)
		tern_thread_yield(t);
	yielding--;
	return 0;
}

static tern *alone;

static int switch_open(struct bench_rank *p)
{
	(void)p;
	int rc = tern_open_local(1, &alone);
	return rc ? rc : tern_thread_on(alone, EMPTY, yield_often, NULL);
}

/*
 * Two threads that yield to each other and to the program, each of which also looks for messages.
 */
static double switch_measure(struct bench_rank *p)
{
	uint64_t yields = 0, began;
	for (yielding = 0; yielding < 2 && !p->rc; yielding++)
		p->rc = tern_spawn(alone, 0, EMPTY, NULL, NULL, p->count);
	for (began = clock_ns(); yielding && !p->rc; yields++)
		p->rc = tern_thread_yield(alone);
	return (double)(clock_ns() - began) / (double)(yields + 2 * p->count);
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test spawn_tests[] = {
	{ "spawn-trip", "a thread created at the other rank, until its end is known", "ns", "words",
	  4, 4, .sizes = { 1, { 4 } }, .count = 4000, .open = spawn_open,
	  .measure = { fork_and_join, PHASE_ACTED }, .limit = { { words_trips_of, PHASE_ACTED } },
	  .limit_name = "a request of four words and its reply", .bar = { { 4, "at most 3.00" } } },
	{ "yield", "giving the core to another thread of the rank, with a look for messages", "ns",
	  "threads", 2, 2, .sizes = { 1, { 2 } }, .ranks = 1, .count = 100000, .rounds = 21,
	  .open = switch_open, .measure.figure = switch_measure },
	{ .like = NULL },
};
