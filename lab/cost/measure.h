/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation, counted and attributed. */
#ifndef TERN_LAB_COST_MEASURE_H
#define TERN_LAB_COST_MEASURE_H

#include "lab/cost/counter.h"
#include "lab/cost/operation.h"
#include "lab/cost/site.h"

struct cost_result {
	const struct operation *op;
	struct cost_tally steady; /* one more among others of its like */
	struct cost_tally alone;  /* one for which everything is called that it needs */
	bool same;                /* repeated, each instruction was the same */
	struct cost_trace trace;
};

/* 0, or a negative code with the reason in `why`. */
int measure(struct cost_map *map, const struct operation *o, struct cost_result *r, char *why,
	    size_t len);
void result_free(struct cost_result *r);

/* One instruction that was executed, and what it is for. */
typedef void cost_visit(const struct cost_insn *insn, enum cost_side side,
			const struct cost_site *site, void *arg);
/* Visits those of one operation alone, in the order of execution. */
void result_each(struct cost_map *map, const struct cost_result *r, cost_visit *visit, void *arg);

#endif
