/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for whom, and the circle in it. */
#include "tools/watch/graph.h"

#include <stdlib.h>
#include <string.h>

enum mark { UNSEEN, ON_PATH, DONE };

/* A search in depth, with a path of its own instead of the stack. */
struct search {
	struct graph *g;
	unsigned char *mark; /* one a rank */
	uint32_t *path;      /* from where the search began, */
	uint32_t *next;      /* and the rank to try next from each of those */
	uint32_t length;
};

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

static void search_enter(struct search *s, uint32_t rank)
{
	s->mark[rank] = ON_PATH;
	s->path[s->length] = rank;
	s->next[s->length++] = 0;
}

/* The path from `rank` on is a cycle. */
static void search_found(struct search *s, uint32_t rank)
{
	uint32_t first = 0;
	while (s->path[first] != rank)
		first++;
	s->g->cycle_length = s->length - first;
	memcpy(s->g->cycle, s->path + first, s->g->cycle_length * sizeof *s->path);
	s->length = 0;
}

/* One step on from the end of the path, or back. */
static void search_step(struct search *s)
{
	uint32_t rank = s->path[s->length - 1], to = s->next[s->length - 1]++;
	if (to == s->g->size) {
		s->mark[rank] = DONE;
		s->length--;
	} else if (graph_waits(s->g, rank, to)) {
		if (s->mark[to] == ON_PATH)
			search_found(s, to);
		else if (s->mark[to] == UNSEEN)
			search_enter(s, to);
	}
}

static void search_cycle(struct search *s)
{
	for (uint32_t r = 0; r < s->g->size && !s->g->cycle_length; r++) {
		if (s->mark[r] != UNSEEN)
			continue;
		search_enter(s, r);
		while (s->length)
			search_step(s);
	}
}

bool graph_open(struct graph *g, const struct rank_view *view, uint32_t size, uint32_t most)
{
	*g = (struct graph){
		.size = size, .most = most, .view = view, .cycle = calloc(size, sizeof *g->cycle)
	};
	struct search s = { .g = g,
			    .mark = calloc(size, 1),
			    .path = calloc(size, sizeof *s.path),
			    .next = calloc(size, sizeof *s.next) };
	bool good = g->cycle && s.mark && s.path && s.next;
	if (good)
		search_cycle(&s);
	free(s.mark);
	free(s.path);
	free(s.next);
	return good;
}

void graph_close(struct graph *g)
{
	free(g->cycle);
}
