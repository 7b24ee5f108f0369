/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the runtime layer adds to Tern's own calls: each row is the time of one operation between
 * ranks 0 and 1, through the layer and without it, in short rounds that take turns. The medians of
 * the rounds are compared. runtime_bench [--json] [--rounds=N], on at least 2 ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

enum { ROUNDS = 101, ROUNDS_MOST = 1001, PINGS = 50, MANY = 500, RUNS = 64, PEER = 1 };
enum { ECHO, DONE, NOTE, HANDLERS = 4 };

enum mode { BLOCK, EVENT, IMPLICIT };

static tern_flag done;
static char data[64];
static uint64_t word;

static char *peer(void)
{
	return rt.segment[PEER].base;
}

static tern_op *op_of(unsigned mode, enum rt_kind kind, tern_op *own)
{
	return mode == BLOCK ? NULL : mode == EVENT ? own : rt_implicit(kind);
}

static void wait_done(void)
{
	rt_must(tern_wait(rt_here.t, &done, 1));
}

/* -- Handlers, of the layer and of Tern ---------------------------------------------------- */

static void layer_echo(rt_token *token, const uint32_t *args, unsigned n, void *p, size_t len)
{
	rt_reply(token, DONE, p, len, n, args);
}

static void layer_done(rt_token *token, const uint32_t *args, unsigned n, void *p, size_t len)
{
	(void)token, (void)args, (void)n, (void)p, (void)len;
	tern_signal(rt_here.t, &done, 1);
}

static void layer_note(rt_token *token, const uint32_t *args, unsigned n, void *p, size_t len)
{
	(void)token, (void)n, (void)p, (void)len;
	word += args[0];
}

static void tern_echo(tern *t, const tern_msg *m)
{
	size_t len;
	const void *p = tern_msg_data(m, &len);
	uint64_t words[TERN_WORDS_MAX];
	unsigned n = tern_msg_count(m);
	for (unsigned i = 0; i < n; i++)
		words[i] = tern_msg_word(m, i);
	rt_must(p ? tern_reply_data_array(t, m, DONE, p, len, n, words)
		  : tern_reply_array(t, m, DONE, n, words));
}

static void tern_done(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &done, 1);
}

static void tern_note(tern *t, const tern_msg *m)
{
	(void)t;
	word += tern_msg_word(m, 0);
}

/* -- Rows: both do the same, and return how many operations that were ----------------------- */

static unsigned layer_ping(unsigned n, size_t len)
{
	uint32_t args[RT_ARGS_MAX] = { 0 };
	for (int i = 0; i < PINGS; i++) {
		rt_request(PEER, ECHO, len ? data : NULL, len, n, args);
		wait_done();
	}
	return PINGS;
}

static unsigned tern_ping(unsigned n, size_t len)
{
	uint64_t words[TERN_WORDS_MAX] = { 0 };
	for (int i = 0; i < PINGS; i++) {
		rt_must(len ? tern_request_data_array(rt_here.t, PEER, ECHO, data, len, n / 2,
						      words)
			    : tern_request_array(rt_here.t, PEER, ECHO, n / 2, words));
		wait_done();
	}
	return PINGS;
}

static unsigned layer_flood(unsigned n, size_t len)
{
	uint32_t args[RT_ARGS_MAX] = { 1 };
	for (int i = 0; i < MANY; i++)
		rt_request(PEER, NOTE, NULL, len, n, args);
	rt_request(PEER, ECHO, NULL, 0, 0, NULL);
	wait_done();
	return MANY;
}

static unsigned tern_flood(unsigned n, size_t len)
{
	(void)n, (void)len;
	for (uint64_t i = 0; i < MANY; i++)
		rt_must(tern_request(rt_here.t, PEER, NOTE, i, 0));
	rt_must(tern_request(rt_here.t, PEER, ECHO));
	wait_done();
	return MANY;
}

static unsigned layer_put(unsigned mode, size_t len)
{
	tern_op own = TERN_OP, *op = op_of(mode, RT_PUTS, &own);
	for (int i = 0; i < MANY; i++) {
		rt_put(PEER, peer(), data, len, op);
		if (mode == EVENT)
			rt_wait(op);
	}
	rt_sync(RT_PUTS);
	return MANY;
}

static unsigned tern_puts(unsigned mode, size_t len)
{
	tern_addr to = rt_addr(PEER, peer());
	tern_op op = TERN_OP;
	for (int i = 0; i < MANY; i++) {
		rt_must(tern_put_start(rt_here.t, to, data, len, mode == BLOCK ? NULL : &op));
		if (mode == EVENT)
			rt_must(tern_op_wait(rt_here.t, &op));
	}
	rt_must(tern_op_wait(rt_here.t, &op));
	return MANY;
}

static unsigned layer_get(unsigned mode, size_t len)
{
	tern_op own = TERN_OP, *op = op_of(mode, RT_GETS, &own);
	for (int i = 0; i < MANY; i++) {
		rt_get(data, PEER, peer(), len, op);
		if (mode == EVENT)
			rt_wait(op);
	}
	rt_sync(RT_GETS);
	return MANY;
}

static unsigned tern_gets(unsigned mode, size_t len)
{
	tern_addr from = rt_addr(PEER, peer());
	tern_op op = TERN_OP;
	for (int i = 0; i < MANY; i++) {
		rt_must(tern_get_start(rt_here.t, data, from, len, mode == BLOCK ? NULL : &op));
		if (mode == EVENT)
			rt_must(tern_op_wait(rt_here.t, &op));
	}
	rt_must(tern_op_wait(rt_here.t, &op));
	return MANY;
}

static uint64_t column[RUNS][2];
static const size_t runs[] = { RUNS };
static const ptrdiff_t stride[] = { sizeof column[0] };

static unsigned layer_strided(unsigned mode, size_t len)
{
	tern_op own = TERN_OP, *op = op_of(mode, RT_PUTS, &own);
	for (int i = 0; i < PINGS; i++) {
		tern_part to = { { peer() }, len, 1, runs, stride };
		tern_part from = { { column }, len, 1, runs, stride };
		rt_put_parts(&(tern_parts){ rt_at(PEER, &to, 1), &from, 1, 1 }, op);
		rt_wait(&own);
	}
	return PINGS;
}

static unsigned tern_strided(unsigned mode, size_t len)
{
	tern_part to = { .addr = rt_addr(PEER, peer()), .run = len, .dims = 1 };
	tern_part from = { .base = column, .run = len, .dims = 1, .count = runs, .stride = stride };
	tern_op op = TERN_OP;
	to.count = runs;
	to.stride = stride;
	for (int i = 0; i < PINGS; i++) {
		rt_must(tern_put_parts_start(rt_here.t, &to, 1, &from, 1, mode ? &op : NULL));
		rt_must(mode ? tern_op_wait(rt_here.t, &op) : 0);
	}
	return PINGS;
}

static unsigned layer_add(unsigned mode, size_t len)
{
	tern_op own = TERN_OP, *op = op_of(mode, RT_ATOMICS, &own);
	uint64_t old;
	for (int i = 0; i < MANY; i++) {
		rt_atomic(PEER, peer(), TERN_AMO_ADD, len, &old, op);
		rt_wait(&own);
	}
	return MANY;
}

static unsigned tern_add(unsigned mode, size_t len)
{
	tern_addr at = rt_addr(PEER, peer());
	tern_op op = TERN_OP;
	uint64_t old;
	for (int i = 0; i < MANY; i++) {
		rt_must(tern_amo_start(rt_here.t, at, TERN_AMO_ADD, len, &old, mode ? &op : NULL));
		rt_must(mode ? tern_op_wait(rt_here.t, &op) : 0);
	}
	return MANY;
}

static unsigned layer_barrier(unsigned mode, size_t len)
{
	(void)mode, (void)len;
	for (int i = 0; i < PINGS; i++)
		rt_barrier(rt.world, NULL);
	return PINGS;
}

static unsigned tern_barriers(unsigned mode, size_t len)
{
	(void)mode, (void)len;
	for (int i = 0; i < PINGS; i++)
		rt_must(tern_team_barrier(rt.world));
	return PINGS;
}

static const struct row {
	const char *name;
	unsigned (*layer)(unsigned how, size_t len), (*bare)(unsigned how, size_t len);
	unsigned how; /* a mode, or a number of arguments */
	size_t len;
} rows[] = {
	{ "round trip", layer_ping, tern_ping, 0, 0 },
	{ "round trip, 8 arguments", layer_ping, tern_ping, 8, 0 },
	{ "round trip, 16 arguments", layer_ping, tern_ping, 16, 0 },
	{ "round trip, 64 bytes", layer_ping, tern_ping, 0, 64 },
	{ "flood, 4 arguments", layer_flood, tern_flood, 4, 0 },
	{ "put of 8 bytes", layer_put, tern_puts, BLOCK, 8 },
	{ "put of 8 bytes, event", layer_put, tern_puts, EVENT, 8 },
	{ "put of 8 bytes, implicit", layer_put, tern_puts, IMPLICIT, 8 },
	{ "get of 8 bytes", layer_get, tern_gets, BLOCK, 8 },
	{ "get of 8 bytes, event", layer_get, tern_gets, EVENT, 8 },
	{ "get of 8 bytes, implicit", layer_get, tern_gets, IMPLICIT, 8 },
	{ "strided put of 64 x 8 bytes", layer_strided, tern_strided, BLOCK, 8 },
	{ "the same, event", layer_strided, tern_strided, EVENT, 8 },
	{ "fetch-and-add", layer_add, tern_add, BLOCK, 1 },
	{ "fetch-and-add, event", layer_add, tern_add, EVENT, 1 },
	{ "barrier", layer_barrier, tern_barriers, BLOCK, 0 },
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* One round: nanoseconds of an operation. The ranks meet, and serve messages, around it. */
static double round_of(const struct row *row, int bare)
{
	double ns = 0;
	rt_must(tern_barrier(rt_here.t));
	if (rt.rank == 0 || row->layer == layer_barrier) {
		uint64_t from = tern_time(rt_here.t);
		unsigned n = (bare ? row->bare : row->layer)(row->how, row->len);
		ns = (double)(tern_time(rt_here.t) - from) / n;
	}
	rt_must(tern_barrier(rt_here.t));
	return ns;
}

static void row_run(const struct row *row, int rounds, int json)
{
	static double ns[2][ROUNDS_MOST];
	for (int i = 0; i < rounds; i++)
		for (int bare = 0; bare < 2; bare++)
			ns[bare][i] = round_of(row, bare);
	for (int bare = 0; bare < 2; bare++)
		qsort(ns[bare], (size_t)rounds, sizeof ns[0][0], compare);
	if (rt.rank)
		return;
	double layer = ns[0][rounds / 2], own = ns[1][rounds / 2];
	printf(json ? "%s{\"name\":\"%s\",\"layer_ns\":%.1f,\"tern_ns\":%.1f,\"ratio\":%.3f}\n"
		    : "%s%-28s %10.1f %10.1f %7.2f\n",
	       json && row != rows ? "," : "", row->name, layer, own, layer / own);
}

int main(int argc, char **argv)
{
	static tern_handler *const own[HANDLERS] = { tern_echo, tern_done, tern_note };
	int rounds = ROUNDS, json = 0;
	for (int i = 1; i < argc; i++) {
		json |= !strcmp(argv[i], "--json");
		if (!strncmp(argv[i], "--rounds=", 9))
			rounds = atoi(argv[i] + 9);
	}
	rounds = rounds < 1 ? 1 : rounds > ROUNDS_MOST ? ROUNDS_MOST : rounds;
	rt_open();
	rt_on(ECHO, layer_echo);
	rt_on(DONE, layer_done);
	rt_on(NOTE, layer_note);
	for (unsigned i = 0; own[i]; i++)
		rt_must(tern_on_with(rt_here.t, i, own[i], NULL, NULL));
	if (rt.size < 2)
		rt_must(tern_abort(rt_here.t, "the benchmark needs two ranks"));
	rt_attach(NULL, 1 << 16, -1);
	if (rt.rank == 0)
		printf(json ? "{\"rows\":[\n" : "%-28s %10s %10s %7s\n", "", "layer ns", "Tern ns",
		       "ratio");
	for (const struct row *row = rows; row < rows + sizeof rows / sizeof rows[0]; row++)
		row_run(row, rounds, json);
	if (rt.rank == 0 && json)
		printf("]}\n");
	rt_close();
	return 0;
}
