/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unbalanced tree search. The tree is known only as it is searched: a node has children or none, as
 * its random state says, so nobody can deal it out evenly. A rank without nodes asks others for
 * some of theirs. One that has none to give remembers who asked, and gives when it has. The search
 * has ended when nothing is under way (tern_team_quiet).
 */
#include "frame/app.h"

#include <math.h>
#include <string.h>
#include <tern/tern.h>

enum { STATIC, ONE, HALF };
enum { ON_ASK, ON_NODES };
enum { NODES_MOST = TERN_PAYLOAD_MAX / 16, ASKS = 2, BETWEEN_POLLS = 8 };

static uint64_t children = 4, odds = 240, branches = 200, seed = 1, work = 50;

static const struct app_option options[] = {
	{ "root", "children of the root", &branches, 1, 1 << 20, NULL },
	{ "children", "of another node, if it has any", &children, 1, 64, NULL },
	{ "odds", "of 1000 nodes have children; children times odds is below 1000", &odds, 0, 999,
	  NULL },
	{ "work", "rounds of computation for a node", &work, 0, 1 << 20, NULL },
	{ "seed", "of the tree", &seed, 0, UINT64_MAX / 2, NULL },
	{ 0 },
};

static const struct app_variant variants[] = {
	{ "static", "children of the root are dealt out, and stay where they are" },
	{ "steal-one", "a rank without nodes asks for one" },
	{ "steal-half", "it asks for half of what another has" },
	{ 0 },
};

struct node {
	uint64_t state, depth;
};

struct sums {
	uint64_t nodes, leaves, depths;
};

static struct node *stack;
static uint64_t first, count, room; /* nodes are taken at the end, and given from the beginning */
static uint32_t *asker;             /* a queue of ranks that wait for nodes, each once */
static char *asks;
static uint32_t asker_first, asker_count;
static struct sums here, expected;
static int searching;
static uint64_t turn, given;
static struct app_job *job;
static volatile uint64_t sink;

static unsigned children_of(const struct node *n)
{
	if (n->depth == 0)
		return (unsigned)branches;
	return n->state % 1000 < odds ? (unsigned)children : 0;
}

static struct node child_of(const struct node *n, unsigned i)
{
	return (struct node){ app_hash(n->state + i * UINT64_C(0x100000001b3)), n->depth + 1 };
}

static void push(struct app_job *j, const struct node *n)
{
	if (first + count == room) {
		memmove(stack, stack + first, count * sizeof *stack);
		first = 0;
	}
	if (count == room)
		app_must(j, tern_abort(j->t, "the stack of nodes is full"));
	stack[first + count++] = *n;
}

static void visit(struct app_job *j, const struct node *n)
{
	unsigned many = children_of(n);
	uint64_t x = n->state;
	for (uint64_t i = 0; i < work; i++)
		x = app_hash(x);
	sink = x;
	app_work(j, 8 * work + 8, 0, 4);
	here.nodes++;
	here.leaves += many == 0;
	here.depths += n->depth;
	for (unsigned i = 0; i < many; i++) {
		struct node child = child_of(n, i);
		push(j, &child);
	}
}

/* -- Communication -------------------------------------------------------------------- */

/* How many nodes an asker gets of those that are here; the oldest, which have the largest trees. */
static uint64_t share(struct app_job *j)
{
	uint64_t n = j->variant == ONE ? 1 : count / 2;
	if (count < 2)
		return 0;
	return n < NODES_MOST ? n : NODES_MOST;
}

/* At a rank that is asked: nodes, or a promise. */
static void on_ask(tern *t, const tern_msg *m)
{
	uint64_t n = share(job);
	uint32_t src = tern_msg_src(m);
	if (n) {
		if (tern_reply_data(t, m, ON_NODES, stack + first, n * sizeof *stack))
			tern_abort(t, "nodes cannot be sent");
		first += n;
		count -= n;
		given += n;
	} else if (!asks[src]) {
		asks[src] = 1;
		asker[(asker_first + asker_count++) % job->size] = src;
	}
}

static void give(struct app_job *j)
{
	uint64_t n;
	while (asker_count && (n = share(j))) {
		uint32_t to = asker[asker_first];
		struct node copy[NODES_MOST]; /* the call may serve messages, whose handlers take
						 nodes */
		memcpy(copy, stack + first, n * sizeof *stack);
		asker_first = (asker_first + 1) % j->size;
		asker_count--;
		asks[to] = 0;
		first += n;
		count -= n;
		given += n;
		app_must(j, tern_request_data(j->t, to, ON_NODES, copy, n * sizeof *stack));
	}
}

/* Other ranks at random, and the next one, so that nodes reach everybody in the end. */
static void ask(struct app_job *j)
{
	for (unsigned i = 0; i <= ASKS && j->variant != STATIC; i++) {
		uint32_t to = i ? (uint32_t)(app_hash(turn++ << 20 | j->rank) % j->size)
				: (j->rank + 1) % j->size;
		if (to != j->rank && !count)
			app_must(j, tern_request(j->t, to, ON_ASK));
	}
}

static void search(tern *t, void *arg)
{
	(void)arg;
	if (searching)
		return;
	searching = 1;
	while (count) {
		for (unsigned i = 0; i < BETWEEN_POLLS && count; i++) {
			struct node n = stack[first + --count];
			visit(job, &n);
		}
		app_must(job, tern_poll(t));
		give(job);
		if (!count)
			ask(job);
	}
	searching = 0;
}

static void on_nodes(tern *t, const tern_msg *m)
{
	size_t len;
	const struct node *n = tern_msg_data(m, &len);
	for (size_t i = 0; i < len / sizeof *n; i++)
		push(job, &n[i]);
	if (!searching && tern_defer(t, search, NULL))
		tern_abort(t, "a search cannot be deferred");
}

static void run(struct app_job *j)
{
	struct node top = { app_hash(seed), 0 };
	if (j->variant != STATIC) {
		if (j->rank == 0)
			push(j, &top);
	} else {
		for (unsigned i = j->rank; i < branches; i += j->size) {
			struct node child = child_of(&top, i);
			push(j, &child);
		}
		here = (struct sums){ j->rank == 0, 0, 0 };
	}
	if (count)
		search(j->t, NULL);
	else
		ask(j);
	app_must(j, tern_team_quiet(j->team));
	double most = (double)here.nodes;
	app_must(j,
		 tern_team_allreduce(j->team, &most, &most, 1, TERN_TYPE_DOUBLE, TERN_REDUCE_MAX));
	app_figure(j, "most over mean", most * j->size / (double)expected.nodes);
}

/* -- Around it ------------------------------------------------------------------------ */

/* By recursion, without a stack of our own. */
static void serial(const struct node *n, struct sums *s)
{
	unsigned many = children_of(n);
	s->nodes++;
	s->leaves += many == 0;
	s->depths += n->depth;
	for (unsigned i = 0; i < many; i++) {
		struct node child = child_of(n, i);
		serial(&child, s);
	}
}

static void open(struct app_job *j)
{
	struct node top = { app_hash(seed), 0 };
	if (children * odds >= 1000)
		app_refuse(
			j,
			"--children %llu times --odds %llu is 1000 or more: such a tree has no end",
			(unsigned long long)children, (unsigned long long)odds);
	job = j;
	expected = (struct sums){ 0 };
	serial(&top, &expected);
	room = expected.nodes + 1;
	stack = app_memory(j, (double)room * sizeof *stack);
	asker = app_memory(j, (double)j->size * sizeof *asker);
	asks = app_memory(j, j->size);
	app_must(j, tern_on(j->t, ON_ASK, on_ask));
	app_must(j, tern_on(j->t, ON_NODES, on_nodes));
	app_must(j, tern_barrier(j->t));
	j->amount = 1e-6 * (double)expected.nodes;
}

static void reset(struct app_job *j)
{
	first = count = 0;
	asker_first = asker_count = 0;
	memset(asks, 0, j->size);
	here = (struct sums){ 0 };
	turn = given = 0;
}

/* The sums of all ranks are those of the serial search; rank 0 says so. */
static uint64_t wrong(struct app_job *j)
{
	struct sums s = here;
	app_must(j, tern_team_allreduce(j->team, &s, &s, 3, TERN_TYPE_UINT64, TERN_REDUCE_SUM));
	if (j->rank)
		return 0;
	return app_differs_word("nodes", 0, s.nodes, expected.nodes) +
	       app_differs_word("leaves", 0, s.leaves, expected.leaves) +
	       app_differs_word("depths", 0, s.depths, expected.depths);
}

static void close(struct app_job *j)
{
	app_memory_free(j, stack);
	app_memory_free(j, asker);
	app_memory_free(j, asks);
}

const struct app app = {
	.name = "uts",
	.what = "Searches a tree that is known only as it is searched, with work stealing:\n"
		"ranks without nodes ask others for some. Nodes, leaves and depths are\n"
		"those of a serial search. `most over mean` says how unevenly the ranks\n"
		"were busy.",
	.unit = "Mnode",
	APP_FUNCTIONS,
};
