/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting exactly, without hardware counters. A function runs in a child of this process, which
 * is stepped through wherever it lies between two marks; elsewhere it runs at full speed.
 */
#ifndef TERN_LAB_COST_COUNTER_H
#define TERN_LAB_COST_COUNTER_H

#include "lab/cost/decode.h"

/*
 * A mark is one instruction, in line, so that it costs what it encloses nothing: marks come in
 * pairs, and what lies between the two is a passage.
 */
#define COST_MARK() __asm__ volatile("int3" : : : "memory")

/* What the child tells; it is shared with the parent. */
struct cost_board {
	struct cost_shared shared;
	uint32_t
		label; /* of the passages that follow; those with label 0 are not stepped through */
	int failed;    /* a code, and the sentence */
	char sentence[200];
};

struct cost_insn {
	uintptr_t at;
	uint8_t kind;
};

struct cost_passage {
	uint32_t label;
	size_t first, n; /* of the trace */
};

struct cost_trace {
	struct cost_insn *insn;
	size_t n, room;
	struct cost_passage *passage;
	size_t passages, passages_room;
};

/*
 * Runs fn(board, arg) in a child. 0, or a negative code with the reason in `why`: -EPERM when this
 * process may not trace a child, else what the child said or how it ended.
 */
int counter_run(void (*fn)(struct cost_board *board, void *arg), void *arg, struct cost_trace *out,
		char *why, size_t len);
void trace_free(struct cost_trace *t);

#endif
