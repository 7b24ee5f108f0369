/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank of a job cannot go on before which other does something. */
#ifndef TERN_TOOLS_WATCH_GRAPH_H
#define TERN_TOOLS_WATCH_GRAPH_H

#include "tools/watch/watch.h"

struct graph {
	uint32_t size;
	uint32_t most;                /* ranks, and workers that there can be */
	const struct rank_view *view; /* one a rank, then one a worker */
	uint32_t *cycle;              /* ranks that wait for each other, each for the next, */
	uint32_t cycle_length;        /* so many; 0 if there is no cycle */
};

/* Finds a cycle if there is one. False if there is no memory to look for it. */
bool graph_open(struct graph *g, const struct rank_view *view, uint32_t size, uint32_t most);
void graph_close(struct graph *g);

/*
 * Whether `waiter` cannot go on before `other` does something. What a worker waits for holds its
 * rank up where the rank's own endpoint waits, too.
 */
bool graph_waits(const struct graph *g, uint32_t waiter, uint32_t other);

/* Whether `rank` is in a barrier. */
bool graph_in_barrier(const struct graph *g, uint32_t rank);

/*
 * Whether that is because `other` has not come to the barrier, or to the call on a team, in which
 * `waiter` is.
 */
bool graph_lacks(const struct graph *g, uint32_t waiter, uint32_t other);

#endif
