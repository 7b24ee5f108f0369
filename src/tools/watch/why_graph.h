/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for whom. */
#ifndef TERN_TOOLS_WATCH_WHY_GRAPH_H
#define TERN_TOOLS_WATCH_WHY_GRAPH_H

#include "tools/watch/watch.h"

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
