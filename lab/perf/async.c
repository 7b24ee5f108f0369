/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that is handed over: what it costs, and how much of it is hidden behind a computation. */
#include <tern/async.h>

#include "lab/bench/place.h"
#include "lab/perf/perf.h"

static int turn_one(tern *t, void *arg)
{
	(void)t;
	return --*(uint64_t *)arg ? 1 : 0;
}

static tern *alone;

static int turn_open(struct bench_rank *p)
{
	(void)p;
	return tern_open_local(1, &alone);
}

static int turns_take(struct bench_rank *p)
{
	uint64_t left = p->count;
	return tern_async_start(alone, turn_one, &left, NULL);
}

static int polls_make(struct bench_rank *p)
{
	int rc = 0;
	for (uint64_t i = 0; i < p->count && rc >= 0; i++)
		rc = tern_poll(alone);
	return rc < 0 ? rc : 0;
}

/* Rank 1, whose heap is read, need not take part. The computation takes longer than a read. */
static int reads_overlap(struct bench_rank *p)
{
	tern_op op = TERN_OP;
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		p->rc = tern_async_get_start(p->t, place.own, place.addr, p->size, &op);
		compute(p->size);
		raw_sink += tern_op_ready(&op); /* whether all of it was hidden */
		if (!p->rc)
			p->rc = tern_op_wait(p->t, &op);
	}
	return p->rc;
}

static REPEATS(compute_alone, (compute(p->size), 0));

/* -- The rows --------------------------------------------------------------------------------- */

const struct test async_tests[] = {
	{ "turn", "one turn of something in the queue, with the poll that gives it", "ns", "ranks",
	  1, 1, .sizes = { 1, { 1 } }, .ranks = 1, .count = 20000, .open = turn_open,
	  .measure = { turns_take, PHASE_ALL }, .limit = { { polls_make, PHASE_ALL } },
	  .limit_name = "a poll that finds nothing" },
	{ "overlap",
	  "a computation with a read of remote memory handed over, and a progress thread", "us",
	  "bytes", 1 << 10, 64 << 20, .sizes = { 2, { 1 << 20, 8 << 20 } }, .count = 8,
	  .bytes = 16 << 20, .rounds = 21, .open = place_open,
	  .measure = { reads_overlap, PHASE_FIRST }, .limit = { { compute_alone, PHASE_FIRST } },
	  .limit_name = "the computation alone", .set = { { "TERN_DELIVERY", "thread" } } },
	{ "no-overlap", "the same where nobody polls while the program computes", "us",
	  .like = "overlap", .set = { { "TERN_DELIVERY", "poll" } } },
	{ .like = NULL },
};
