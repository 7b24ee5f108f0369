/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that messages start: how long one takes from its creation to its end. */
#include <tern/thread.h>

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

/* -- The rows --------------------------------------------------------------------------------- */

const struct test spawn_tests[] = {
	{ "spawn-trip", "a thread created at the other rank, until its end is known", "ns", "words",
	  4, 4, .sizes = { 1, { 4 } }, .count = 4000, .open = spawn_open,
	  .measure = { fork_and_join, PHASE_ACTED }, .limit = { { words_trips_of, PHASE_ACTED } },
	  .limit_name = "a request of four words and its reply", .bar = { { 4, "at most 3.00" } } },
	{ .like = NULL },
};
