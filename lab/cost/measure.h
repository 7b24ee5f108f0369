/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation, counted and attributed. */
#ifndef TERN_LAB_COST_MEASURE_H
#define TERN_LAB_COST_MEASURE_H

#include "lab/cost/counter.h"
#include "lab/cost/operation.h"
#include "lab/cost/site.h"

/* Instructions in the order in which they are executed, at one side. */
struct cost_strand {
	enum cost_side side;
	size_t first, n;         /* of the trace */
	enum cost_feature whole; /* what a message of it is for, COST_UNKNOWN: as its lines say */
};

enum { STRANDS_MOST = 512 };

struct cost_result {
	const struct operation *op;
	struct cost_tally steady; /* one more among others of its like */
	struct cost_tally alone;  /* one for which everything is called that it needs */
	bool same;                /* repeated, each instruction was the same */
	struct cost_trace trace;
	struct cost_strand strand[STRANDS_MOST]; /* of `steady` */
	unsigned strands;
};

/* 0, or a negative code with the reason in `why`. */
int measure(struct cost_map *map, const struct operation *o, struct cost_result *r, char *why,
	    size_t len);
void result_free(struct cost_result *r);

/*
 * What an instruction is for, given the one executed before it: what has no line, as a library's
 * code, is for the same. In a step of a protocol (`whole`) the lines of the protocol tell buffers,
 * order and fault tolerance apart, and so do those that call what is in line; the rest, a message
 * with all that it takes, is for what the message is for.
 */
struct cost_site attribute(struct cost_map *map, uintptr_t at, const struct cost_site *before,
			   enum cost_feature whole);

#endif
