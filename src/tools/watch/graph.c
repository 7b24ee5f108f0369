/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for whom, and the circle in it. */
#include "tools/watch/graph.h"

#include <stdlib.h>
#include <string.h>

enum mark { UNSEEN, ON_PATH, DONE };

bool graph_in_barrier(const struct graph *g, uint32_t rank)
{
	return g->view[rank].waits && strcmp(g->view[rank].wait.text, "tern_barrier") == 0;
}

/* Whether a worker of `rank` waits for `other`. */
static bool graph_worker_waits(const struct graph *g, uint32_t rank, uint32_t other)
{
	for (uint32_t m = g->size; m < g->most; m++) {
		const struct rank_view *s = &g->view[m];
		if (s->rank == rank && s->waits && s->wait.known && s->wait.whom == other)
			return true;
	}
	return false;
}

/* Where the words of a call on a team name team and call; NULL in any other wait. */
static const char *team_words(const struct rank_view *s)
{
	return s->waits ? strstr(s->wait.text, " of team ") : NULL;
}

bool graph_lacks(const struct graph *g, uint32_t waiter, uint32_t other)
{
	if (graph_in_barrier(g, waiter))
		return graph_waits(g, waiter, other);
	const char *mine = team_words(&g->view[waiter]), *theirs = team_words(&g->view[other]);
	return mine && graph_waits(g, waiter, other) && (!theirs || strcmp(mine, theirs) != 0);
}

bool graph_waits(const struct graph *g, uint32_t waiter, uint32_t other)
{
	const struct rank_view *s = &g->view[waiter];
	if (!s->waits || waiter == other)
		return false;
	if (graph_in_barrier(g, waiter))
		return !graph_in_barrier(g, other) && g->view[other].state <= RANK_OPEN;
	return (s->wait.known && s->wait.whom == other) ||
	       (s->wait.awaited[other / 64] >> other % 64 & 1) ||
	       graph_worker_waits(g, waiter, other);
}

/*
 * A search in depth; where it has come from `length` ranks, they are what g->cycle begins with.
 * True when a cycle is found, which then is what stands there.
 */
static bool graph_search(struct graph *g, enum mark *mark, uint32_t rank, uint32_t length)
{
	mark[rank] = ON_PATH;
	g->cycle[length++] = rank;
	for (uint32_t to = 0; to < g->size; to++) {
		if (mark[to] == DONE || !graph_waits(g, rank, to))
			continue;
		if (mark[to] == UNSEEN && graph_search(g, mark, to, length))
			return true;
		if (mark[to] != ON_PATH)
			continue;
		uint32_t first = 0;
		while (g->cycle[first] != to)
			first++;
		g->cycle_length = length - first;
		memmove(g->cycle, g->cycle + first, g->cycle_length * sizeof *g->cycle);
		return true;
	}
	mark[rank] = DONE;
	return false;
}

bool graph_open(struct graph *g, const struct rank_view *view, uint32_t size, uint32_t most)
{
	*g = (struct graph){
		.size = size, .most = most, .view = view, .cycle = calloc(size, sizeof *g->cycle)
	};
	enum mark *mark = calloc(size, sizeof *mark);
	bool good = g->cycle && mark;
	for (uint32_t r = 0; good && r < size; r++)
		if (mark[r] == UNSEEN && graph_search(g, mark, r, 0))
			break;
	free(mark);
	return good;
}

void graph_close(struct graph *g)
{
	free(g->cycle);
}
