/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation takes over a network of packets, beside shared memory. Both ends are in one
 * process and are polled in turn, the destination first, until the operation is over; every call of
 * either side is counted. So acknowledgements, credits and looks at the network are in it, as far
 * as they fall to one operation of many: `times` of them are played one after another, and their
 * sum is divided.
 *
 * Time is even here: each look at the clock finds the same time later. What is done because time
 * has passed is therefore done at the same place each time, and counts over UDP repeat. A provider
 * of libfabric has clocks and queues of its own, so there is a least and a most.
 */
#include "lab/cost/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/world.h"
#include "lab/cost/operation.h"
#include "tools/common/table.h"

enum {
	TAKE = 1, /* handlers */
	ANSWER,
	ANSWERED,
	BYTES_MOST = 4096,
	PLAYS = 2,           /* of each, that count */
	ROUND = 32,          /* packets of a stream before the destination polls */
	POLLS_MOST = 200000, /* for one operation */
	STEP_NS = 100,       /* between two looks at the clock */
	PATIENCE_S = 300,
};

/* An operation of the table, as it is done here. */
struct crossing {
	const char *name;
	unsigned times; /* in a play */
	void (*go)(struct bench *b);
};

static char from[BYTES_MOST];
static uint64_t taken, answered;    /* by the program's handlers, */
static int64_t handled[COST_SIDES]; /* by polls, all together, */
static int64_t wanted[COST_SIDES];  /* and how many that shall be */

static void on_take(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	taken++;
}

static void on_answer(tern *t, const tern_msg *m)
{
	tern_reply(t, m, ANSWERED, tern_msg_word(m, 0), 2, 3, 4); /* cost: base call */
}

static void on_answered(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	answered++;
}

/* -- Polls ------------------------------------------------------------------------------------ */

static void side_begin(struct bench *b, enum cost_side side)
{
	*b->label = b->play ? b->play + side : 0;
}

static void side_poll(struct bench *b, enum cost_side side)
{
	tern *t = b->t[side];
	side_begin(b, side);
	COST_MARK();
	int n = tern_poll(t); /* cost: base call */
	COST_MARK();
	if (n < 0)
		b->rc = n;
	else
		handled[side] += n;
}

static bool over_handled(const struct bench *b)
{
	(void)b;
	return handled[COST_SOURCE] >= wanted[COST_SOURCE] &&
	       handled[COST_DESTINATION] >= wanted[COST_DESTINATION];
}

static bool over_taken(const struct bench *b)
{
	return taken >= b->taken;
}

static bool over_answered(const struct bench *b)
{
	return answered >= b->taken;
}

static bool over_handle(const struct bench *b)
{
	return tern_op_ready(&b->handle);
}

/* Both sides in turn. */
static void poll_until(struct bench *b, bool (*over)(const struct bench *b))
{
	for (unsigned i = 0; !b->rc && !over(b); i++) {
		side_poll(b, i % 2 ? COST_SOURCE : COST_DESTINATION);
		if (i == POLLS_MOST)
			b->rc = -ETIMEDOUT;
	}
}

static void poll_for(struct bench *b, enum cost_side side, unsigned n)
{
	wanted[side] += n;
	poll_until(b, over_handled);
}

/* -- Operations ------------------------------------------------------------------------------- */

/* A call of the source, and polls until it is over; `count` is what a handler has counted. */
#define CROSSES(name, call, over, count)     \
	static void name(struct bench *b)    \
	{                                    \
		tern *t = b->t[COST_SOURCE]; \
		size_t bytes = b->bytes;     \
		(void)bytes;                 \
		b->taken = (count) + 1;      \
		side_begin(b, COST_SOURCE);  \
		COST_MARK();                 \
		call;                        \
		COST_MARK();                 \
		poll_until(b, over);         \
	}                                    \
	struct bench

CROSSES(request_go, tern_request(t, COST_DESTINATION, TAKE, 1, 2, 3, 4), over_taken, taken);
CROSSES(answer_go, tern_request(t, COST_DESTINATION, ANSWER, 1, 2, 3, 4), over_answered, answered);
CROSSES(data_go, tern_request_data(t, COST_DESTINATION, TAKE, from, bytes), over_taken, taken);
CROSSES(put_go, tern_put_start(t, b->there, from, bytes, &b->handle), over_handle, 0);

/* The study's figure 3, as block_steps() has it. */
static void block_go(struct bench *b)
{
	struct shipment *s = &b->shipment;
	uint32_t packets = b->op->packets;
	shipment_number(s);
	side_begin(b, COST_SOURCE);
	COST_MARK();
	shipment_ask(s);
	COST_MARK();
	poll_for(b, COST_DESTINATION, 1);
	poll_for(b, COST_SOURCE, 1);
	side_begin(b, COST_SOURCE);
	COST_MARK();
	shipment_packets(s, packets);
	COST_MARK();
	poll_for(b, COST_DESTINATION, packets);
	poll_for(b, COST_SOURCE, 1);
}

/* Figure 4, each packet acknowledged; the network keeps their order. */
static void stream_go(struct bench *b)
{
	const uint64_t words[] = { 1, 2 };
	tern_stream *s = b->stream;
	for (unsigned left = b->op->packets, round; left && !b->rc; left -= round) {
		round = left < ROUND ? left : ROUND;
		side_begin(b, COST_SOURCE);
		for (unsigned i = 0; i < round; i++) {
			COST_MARK();
			tern_stream_put(s, 2, words);
			COST_MARK();
		}
		poll_for(b, COST_DESTINATION, round);
		poll_for(b, COST_SOURCE, round);
	}
}

static const struct crossing crossings[] = {
	{ "request-4", 16, request_go },
	{ "round-trip", 16, answer_go },
	{ "put-8", 8, put_go },
	{ "finite-16-data", 8, data_go },
	{ "finite-1024-data", 8, data_go },
	{ "block-16-by-4", 4, block_go },
	{ "block-1024-by-4", 1, block_go },
	{ "ordered-16-by-4", 4, stream_go },
	{ "ordered-1024-by-4", 1, stream_go },
};

enum { CROSSINGS = sizeof crossings / sizeof *crossings };

/* -- In the child ----------------------------------------------------------------------------- */

static const struct world *real;
static uint64_t even_time = UINT64_C(1000000000);

static uint64_t even_now(void)
{
	return even_time += STEP_NS;
}

static void even_nap(uint64_t ns)
{
	even_time += ns;
	real->nap(ns);
}

static void world_make_even(void)
{
	static struct world even;
	real = world_used();
	even = *real;
	even.now = even_now;
	even.nap = even_nap;
	even.ticks = false;
	world_use(&even);
}

struct journey {
	const struct crossing *crossing;
	const char *net;
};

static int journey_open(struct bench *b, const struct operation *o)
{
	*b = (struct bench){ .op = o, .bytes = (size_t)o->words * 4 };
	int rc = tern_open_local(COST_SIDES, b->t);
	for (int side = 0; !rc && side < COST_SIDES; side++) {
		rc = tern_on(b->t[side], TAKE, on_take);
		rc = rc ? rc : tern_on(b->t[side], ANSWER, on_answer);
		rc = rc ? rc : tern_on(b->t[side], ANSWERED, on_answered);
	}
	if (!rc)
		o->setup(b);
	return rc ? rc : b->rc;
}

static void play(struct bench *b, const struct crossing *c, uint32_t label)
{
	b->play = label;
	for (unsigned i = 0; !b->rc && i < c->times; i++) {
		for (int side = 0; side < COST_SIDES; side++)
			wanted[side] = handled[side];
		c->go(b);
	}
}

static void journey_play(struct cost_board *board, void *arg)
{
	static struct bench b;
	const struct journey *j = arg;
	alarm(PATIENCE_S);
	setenv("TERN_NET", j->net, 1);
	world_make_even();
	int rc = journey_open(&b, operation_named(j->crossing->name));
	b.label = &board->label;
	if (!rc) {
		play(&b, &crossings[0], 0); /* both ends know each other */
		play(&b, j->crossing, 0);
		for (uint32_t i = 0; i < PLAYS; i++)
			play(&b, j->crossing, 1 + i * COST_SIDES);
		rc = b.rc;
	}
	board->label = 0;
	board->failed = rc;
	if (rc)
		snprintf(board->sentence, sizeof board->sentence, "%s", tern_strerror(rc));
}

/* -- Adding up -------------------------------------------------------------------------------- */

static const struct {
	unsigned number;
	const char *name;
} call_names[] = {
	{ SYS_sendmsg, "sendmsg" },
	{ SYS_sendto, "sendto" },
	{ SYS_sendmmsg, "sendmmsg" },
	{ SYS_recvmsg, "recvmsg" },
	{ SYS_recvfrom, "recvfrom" },
	{ SYS_recvmmsg, "recvmmsg" },
	{ SYS_read, "read" },
	{ SYS_write, "write" },
	{ SYS_readv, "readv" },
	{ SYS_writev, "writev" },
	{ SYS_poll, "poll" },
	{ SYS_ppoll, "ppoll" },
	{ SYS_epoll_wait, "epoll_wait" },
	{ SYS_epoll_pwait, "epoll_pwait" },
	{ SYS_epoll_ctl, "epoll_ctl" },
	{ SYS_futex, "futex" },
	{ SYS_sched_yield, "sched_yield" },
};

enum { CALLS = sizeof call_names / sizeof *call_names + 1 }; /* the last: any other */

struct counts {
	int64_t own[COST_SIDES], other; /* Tern's instructions; those of libraries below it */
	int64_t call[CALLS];
};

static unsigned call_place(unsigned number)
{
	unsigned i = 0;
	while (i < CALLS - 1 && call_names[i].number != number)
		i++;
	return i;
}

static void counts_add(struct counts *c, struct cost_map *map, const struct cost_trace *t,
		       const struct cost_passage *p)
{
	for (size_t i = p->first; i < p->first + p->n; i++) {
		const struct cost_site *s = map_site(map, t->insn[i].at);
		if (t->insn[i].call)
			c->call[call_place(t->insn[i].call - 1u)]++;
		if (s->library)
			c->other++;
		else if (s->feature != COST_PROGRAM)
			c->own[(p->label - 1) % COST_SIDES]++;
	}
}

static int journey_count(struct cost_map *map, const struct journey *j, struct counts counts[PLAYS],
			 char *why, size_t len)
{
	struct cost_trace t;
	char reason[300];
	memset(counts, 0, PLAYS * sizeof *counts);
	int rc = counter_run(journey_play, (void *)(uintptr_t)j, &t, reason, sizeof reason);
	if (rc) {
		snprintf(why, len, "%s over %s: %s", j->crossing->name, j->net, reason);
		return rc;
	}
	for (size_t i = 0; i < t.passages; i++)
		counts_add(&counts[(t.passage[i].label - 1) / COST_SIDES], map, &t, &t.passage[i]);
	trace_free(&t);
	return 0;
}

/* -- The table -------------------------------------------------------------------------------- */

struct figure {
	int64_t least, most; /* of one operation */
};

/* Of the figure that lies `at` bytes into the counts. */
static struct figure figure_of(const struct counts counts[PLAYS], size_t at, unsigned times)
{
	struct figure f = { INT64_MAX, 0 };
	for (int i = 0; i < PLAYS; i++) {
		int64_t n;
		memcpy(&n, (const char *)&counts[i] + at, sizeof n);
		n = (n + times / 2) / times;
		f.least = n < f.least ? n : f.least;
		f.most = n > f.most ? n : f.most;
	}
	return f;
}

static void figure_print(struct figure f, int width)
{
	char text[48];
	if (f.least == f.most)
		snprintf(text, sizeof text, "%lld", (long long)f.most);
	else
		snprintf(text, sizeof text, "%lld-%lld", (long long)f.least, (long long)f.most);
	printf("%*s", width, text);
}

/* Of the last play. */
static void calls_print(const struct counts *c, unsigned times, const char *between)
{
	const char *before = "";
	for (unsigned i = 0; i < CALLS; i++)
		if (c->call[i]) {
			printf("%s%s %.2f", before, i < CALLS - 1 ? call_names[i].name : "others",
			       (double)c->call[i] / times);
			before = between;
		}
}

static const size_t figures[] = { offsetof(struct counts, own[COST_SOURCE]),
				  offsetof(struct counts, own[COST_DESTINATION]),
				  offsetof(struct counts, other) };

static void crossing_print(const struct crossing *c, const struct counts near[PLAYS],
			   const struct counts far[PLAYS])
{
	printf("%-18s", c->name);
	figure_print(figure_of(near, figures[0], c->times), 12);
	figure_print(figure_of(near, figures[1], c->times), 13);
	for (int i = 0; i < 3; i++)
		figure_print(figure_of(far, figures[i], c->times), 15);
	printf("  ");
	calls_print(&far[PLAYS - 1], c->times, ", ");
	putchar('\n');
}

static void crossing_json(const struct crossing *c, const char *net,
			  const struct counts near[PLAYS], const struct counts far[PLAYS],
			  bool first)
{
	static const char *const key[] = { "source", "destination", "libraries" };
	printf("%s{\"operation\": \"%s\", \"net\": \"%s\"", first ? "" : ",\n ", c->name, net);
	for (int i = 0; i < 3; i++) {
		struct figure f = figure_of(far, figures[i], c->times);
		printf(", \"%s\": %lld, \"%s_most\": %lld, \"%s_shm\": %lld", key[i],
		       (long long)f.least, key[i], (long long)f.most, key[i],
		       (long long)figure_of(near, figures[i], c->times).least);
	}
	printf(", \"calls\": \"");
	calls_print(&far[PLAYS - 1], c->times, ", ");
	printf("\"}");
}

static bool crossing_named(const struct crossing *c, uint64_t named)
{
	return !named || named >> (operation_named(c->name) - operation_table) & 1;
}

bool network_counts(uint64_t named)
{
	for (int i = 0; i < CROSSINGS; i++)
		if (crossing_named(&crossings[i], named))
			named &= ~(UINT64_C(1)
				   << (operation_named(crossings[i].name) - operation_table));
	return !named;
}

void network_names(FILE *to)
{
	for (int i = 0; i < CROSSINGS; i++)
		fprintf(to, "%s%s", i ? ", " : "", crossings[i].name);
}

static const char table_note[] =
	"\nTern's own instructions at each side, those of the libraries that it calls, and system\n"
	"calls of both sides, for one operation, with acknowledgements and credits. Two figures:\n"
	"the least and the most of two plays. block and ordered are the study's protocols, with\n"
	"handshake and acknowledgements, over a network that retries and orders besides.";

static void table_head(const char *net, bool bold)
{
	table_heading(bold, "Over a network, beside shared memory: one operation, of many");
	printf("%-18s%25s%45s  %s\n", "", "shared memory", net, "system calls");
	printf("%-18s%12s%13s%15s%15s%15s\n", "", "src", "dst", "src", "dst", "libraries");
}

int network_study(const char *net, uint64_t named, bool json, bool bold, char *why, size_t len)
{
	struct cost_map *map = map_open(why, len);
	int rc = map ? 0 : -ENOMEM;
	bool first = true;
	if (map && json)
		printf("[");
	else if (map)
		table_head(net, bold);
	for (int i = 0; !rc && i < CROSSINGS; i++) {
		const struct crossing *c = &crossings[i];
		struct counts near[PLAYS], far[PLAYS];
		if (!crossing_named(c, named))
			continue;
		rc = journey_count(map, &(struct journey){ c, "shm" }, near, why, len);
		if (!rc)
			rc = journey_count(map, &(struct journey){ c, net }, far, why, len);
		if (!rc && json)
			crossing_json(c, net, near, far, first);
		else if (!rc)
			crossing_print(c, near, far);
		first = false;
	}
	if (map && json)
		puts("]");
	else if (!rc)
		puts(table_note);
	map_close(map);
	return rc;
}
