/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern why`: what each rank waits for, and the circle or the rank that all of it leads to. */
#ifndef TERN_TOOLS_WATCH_WHY_H
#define TERN_TOOLS_WATCH_WHY_H

#include "tools/watch/watch.h"

/*
 * Looks at it for half a second and explains, on standard output; false, with a sentence, if
 * there is no memory.
 */
bool why_explain(const struct watch *watch, bool json);

struct graph {
	uint32_t size;
	const struct sight *sight; /* one a rank */
	uint32_t *cycle;           /* ranks that wait for each other in turn, */
	uint32_t cycle_length;     /* so many; 0 if there is no cycle */
};

/* Whether `rank` is in a barrier. */
bool graph_in_barrier(const struct graph *g, uint32_t rank);

/* Whether `waiter` cannot go on before `other` does something. */
bool graph_waits(const struct graph *g, uint32_t waiter, uint32_t other);

/* Finds a cycle if there is one. False if there is no memory to look for it. */
bool graph_open(struct graph *g, const struct sight *sight, uint32_t size);
void graph_close(struct graph *g);

#endif
