/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Breadth-first search of a Kronecker graph (Graph500). Vertices are spread over the ranks in
 * blocks. A visit is a message to the owner of a vertex: its depth and the vertex it came from. A
 * visit that is less deep than those before is passed on to all neighbours, whenever it comes;
 * nobody waits for a level. The search has ended when nothing is under way (tern_team_quiet).
 */
#include "frame/app.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tern/post.h>

enum { MESSAGE, GATHERED, LEVELS };
enum { ON_VISIT };

static uint64_t scale = 10, factor = 16, root = 1;

static const struct app_option options[] = {
	{ "scale", "the graph has 2 to that power vertices", &scale, 1, 26, NULL },
	{ "factor", "edges for each vertex", &factor, 1, 64, NULL },
	{ "root", "where the search begins, modulo the vertices", &root, 0, UINT64_MAX / 2, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "message", "a message for each edge, whenever its vertex is found" },
	{ "gathered", "the same, gathered by tern_post()" },
	{ "levels", "gathered, and a barrier after each level" },
	{ 0 },
};

enum { NOWHERE = UINT32_MAX };

/* Neighbours of vertex v are to[from[v]] to to[from[v + 1] - 1]. */
struct graph {
	uint64_t *from;
	uint32_t *to;
};

static uint64_t vertices, first, mine;
static struct graph own, all; /* of this rank's vertices; and of all, for the serial search */
static uint32_t *depth, *parent, *expected;
static uint32_t *found; /* a queue of vertices whose neighbours are still to be visited */
static uint64_t found_first, found_end, found_room; /* it goes around */
static char *queued;
static int searching, deferred; /* one deferred search is enough for all that is found before it */
static struct app_job *job;

/* -- The search ------------------------------------------------------------------------ */

/* A vertex may be found again, less deep, while it is in the queue. */
static void found_put(uint32_t v)
{
	if (queued[v - first])
		return;
	queued[v - first] = 1;
	found[found_end++ % found_room] = v;
}

static void visit_send(struct app_job *j, uint32_t v, uint32_t from, uint32_t deep)
{
	uint32_t to = app_owner(j, vertices, v);
	app_must(j, j->variant == MESSAGE ? tern_request(j->t, to, ON_VISIT, v, from, deep)
					  : tern_post(j->t, to, ON_VISIT, v, from, deep));
}

/* Sends on from vertices that were found before `end`; handlers may find more meanwhile. */
static void search(struct app_job *j, uint64_t end)
{
	for (; found_first < end; found_first++) {
		uint32_t v = found[found_first % found_room];
		uint64_t l = v - first;
		queued[l] = 0;
		for (uint64_t e = own.from[l]; e < own.from[l + 1]; e++)
			visit_send(j, own.to[e], v, depth[l] + 1);
		app_work(j, 4 * (own.from[l + 1] - own.from[l]), 0, own.from[l + 1] - own.from[l]);
	}
}

/* Deferred by a handler, which may not send requests itself. */
static void search_deferred(tern *t, void *arg)
{
	(void)t, (void)arg;
	deferred = 0;
	if (searching)
		return;
	searching = 1;
	while (found_first < found_end)
		search(job, found_end);
	searching = 0;
}

static void on_visit(tern *t, const tern_msg *m)
{
	uint64_t l = tern_msg_word(m, 0) - first;
	uint32_t deep = (uint32_t)tern_msg_word(m, 2);
	if (deep >= depth[l])
		return;
	depth[l] = deep;
	parent[l] = (uint32_t)tern_msg_word(m, 1);
	found_put((uint32_t)tern_msg_word(m, 0));
	if (job->variant == LEVELS || searching || deferred)
		return;
	deferred = 1;
	if (tern_defer(t, search_deferred, NULL))
		tern_abort(t, "a search cannot be deferred");
}

static void run_levels(struct app_job *j)
{
	for (uint64_t more = 1; more;) {
		search(j, found_end);
		app_must(j, tern_barrier(j->t)); /* all visits of this level have been handled */
		more = found_end - found_first;
		app_must(j, tern_team_allreduce(j->team, &more, &more, 1, TERN_TYPE_UINT64,
						TERN_REDUCE_SUM));
	}
}

static void run(struct app_job *j)
{
	uint32_t start = (uint32_t)(root % vertices);
	if (app_owner(j, vertices, start) == j->rank)
		visit_send(j, start, start, 0);
	if (j->variant == LEVELS) {
		app_must(j, tern_barrier(j->t));
		run_levels(j);
	} else {
		app_must(j, tern_team_quiet(j->team));
	}
}

/* -- The graph ------------------------------------------------------------------------ */

/* Edge e: each bit of its ends falls into one of four quarters, with the odds of Graph500. */
static void edge_make(uint64_t e, uint32_t end[2])
{
	end[0] = end[1] = 0;
	for (uint64_t bit = 0; bit < scale; bit++) {
		uint64_t odds = app_hash(e * 64 + bit) % 100;
		end[0] = end[0] * 2 + (odds >= 76);
		end[1] = end[1] * 2 + ((odds >= 57 && odds < 76) || odds >= 95);
	}
	/* Names are mixed, so that the vertices of many edges do not all belong to rank 0. */
	for (int i = 0; i < 2; i++)
		end[i] = (uint32_t)((end[i] * UINT64_C(0x9e3779b1) + 12345) % vertices);
}

/* The neighbours of vertices begin to begin + n - 1, in both directions. */
static struct graph graph_make(struct app_job *j, uint64_t begin, uint64_t n)
{
	struct graph g = { app_memory(j, (double)(n + 2) * sizeof *g.from), NULL };
	uint32_t end[2];
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t e = 0; e < vertices * factor; e++) {
			edge_make(e, end);
			for (int i = 0; i < 2; i++) {
				uint64_t l = end[i] - begin;
				if (end[i] < begin || l >= n || end[0] == end[1])
					continue;
				if (pass)
					g.to[g.from[l + 1]++] = end[!i];
				else
					g.from[l + 2]++;
			}
		}
		if (pass)
			break;
		for (uint64_t l = 0; l < n; l++)
			g.from[l + 2] += g.from[l + 1];
		g.to = app_memory(j, (double)g.from[n + 1] * sizeof *g.to);
	}
	return g;
}

/* -- Around it ------------------------------------------------------------------------ */

/* A search by one rank, with a queue; and how many edges it sees, in millions. */
static double expect(struct app_job *j)
{
	uint32_t *queue = app_memory(j, (double)vertices * sizeof *queue);
	uint64_t head = 0, tail = 0, edges = 0;
	memset(expected, 0xff, vertices * sizeof *expected);
	queue[tail++] = (uint32_t)(root % vertices);
	expected[queue[0]] = 0;
	for (; head < tail; head++) {
		uint32_t v = queue[head];
		edges += all.from[v + 1] - all.from[v];
		for (uint64_t e = all.from[v]; e < all.from[v + 1]; e++)
			if (expected[all.to[e]] == NOWHERE) {
				expected[all.to[e]] = expected[v] + 1;
				queue[tail++] = all.to[e];
			}
	}
	app_memory_free(j, queue);
	return 0.5e-6 * (double)edges;
}

static void open(struct app_job *j)
{
	job = j;
	vertices = UINT64_C(1) << scale;
	first = app_first(j, vertices, j->rank);
	mine = app_first(j, vertices, j->rank + 1) - first;
	found_room = mine + 1; /* one more: that which is being searched from */
	expected = app_memory(j, (double)vertices * sizeof *expected);
	found = app_memory(j, (double)found_room * sizeof *found);
	queued = app_memory(j, (double)mine);
	depth = app_memory(j, (double)mine * sizeof *depth);
	parent = app_memory(j, (double)mine * sizeof *parent);
	own = graph_make(j, first, mine);
	all = graph_make(j, 0, vertices);
	j->amount = expect(j);
	app_must(j, tern_on(j->t, ON_VISIT, on_visit));
	app_must(j, tern_barrier(j->t));
}

static void reset(struct app_job *j)
{
	(void)j;
	memset(depth, 0xff, mine * sizeof *depth);
	memset(parent, 0xff, mine * sizeof *parent);
	found_first = found_end = 0;
}

static int has_neighbour(uint64_t l, uint32_t v)
{
	for (uint64_t e = own.from[l]; e < own.from[l + 1]; e++)
		if (own.to[e] == v)
			return 1;
	return 0;
}

/* Depths are those of the serial search; parents are neighbours, one less deep. */
static uint64_t wrong(struct app_job *j)
{
	uint64_t n = 0;
	(void)j;
	for (uint64_t l = 0; l < mine; l++) {
		uint64_t v = first + l;
		if (app_differs_word("depth", v, depth[l], expected[v]))
			n++;
		else if (depth[l] == 0)
			n += app_differs_word("parent", v, parent[l], v);
		else if (depth[l] != NOWHERE &&
			 (!has_neighbour(l, parent[l]) || expected[parent[l]] + 1 != depth[l]))
			n += app_wrong("parent[%llu] is %u, which is no neighbour of depth %u",
				       (unsigned long long)v, parent[l], depth[l] - 1);
	}
	return n;
}

static void close(struct app_job *j)
{
	app_memory_free(j, expected);
	app_memory_free(j, found);
	app_memory_free(j, queued);
	app_memory_free(j, depth);
	app_memory_free(j, parent);
	app_memory_free(j, own.from);
	app_memory_free(j, own.to);
	app_memory_free(j, all.from);
	app_memory_free(j, all.to);
}

const struct app app = {
	.name = "bfs",
	.what = "Searches a Kronecker graph breadth first, asynchronously: a vertex that is\n"
		"found sends visits to its neighbours at once. The tree is checked as\n"
		"Graph500 does, and depths are compared with a serial search; the rate is\n"
		"TEPS.",
	.unit = "Medge",
	APP_FUNCTIONS,
};
