/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that is handed over: how much of it is hidden behind a computation. */
#include <tern/async.h>

#include "lab/bench/place.h"
#include "lab/perf/perf.h"

/* Rank 1, whose heap is read, need not take part. The computation takes longer than a read. */
static int reads_overlap(struct bench_rank *p)
{
	tern_op op = TERN_OP;
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		p->rc = tern_async_get_start(p->t, place.own, place.addr, p->size, &op);
		compute(p->size);
		if (!p->rc)
			p->rc = tern_op_wait(p->t, &op);
	}
	return p->rc;
}

static REPEATS(compute_alone, (compute(p->size), 0));

/* -- The rows --------------------------------------------------------------------------------- */

const struct test async_tests[] = {
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
