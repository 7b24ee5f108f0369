/* SPDX-License-Identifier: BSD-3-Clause */
/* What litmus tests work on, and each step of litmus.h as a function. */
#ifndef TERN_TESTS_LITMUS_STEPS_H
#define TERN_TESTS_LITMUS_STEPS_H

#include <sched.h>
#include <semaphore.h>

#include <tern/coll.h>
#include <tern/lock.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/ranks.h"
#include "litmus.h"

enum {
	PLACES = 3,
	REGISTERS = 4,
	CELLS = 128,
	FAR_CELLS = 16, /* where a get is a round trip over a network */
	FEW_CELLS = 8,  /* of rows with barriers or long puts, which take longer */
	STEPS = 8,
	APART = 64,
	LONG = 96 << 10, /* more than a split-phase put moves before it returns */
	MEET_SPINS = 3000,
	ROW_NS = 15000000,
};
enum { REQUEST, REPLY };
#define UNSET (UINT64_MAX - 1)

enum { ROWS = sizeof rows / sizeof *rows };

struct turn;
struct step {
	void (*act)(const struct turn *u);
	unsigned place[2], reg;
	uint64_t value;
};

/* A step at work. */
struct turn {
	tern *t;
	const struct step *step;
	unsigned cell;
	const tern_msg *msg; /* in its handler */
};

/* In the heap of each rank, and registered; results are put into the heap of rank 0. */
struct board {
	_Atomic uint64_t word[PLACES][CELLS][APART / 8];
	char wide[FEW_CELLS][LONG]; /* what `lay` and `many` write: x is the last word */
	uint64_t result[ROLES][CELLS][REGISTERS];
	tern_lock lock[CELLS];
	tern_addr region;
	_Atomic uint64_t met; /* rank 0: how often ranks have come to a cell */
	uint64_t more;        /* rank 0: whether the row goes on */
};

static struct board *board, *private;
static tern_addr board_at, private_at[ROLES];
static bool with_file; /* `private` is registered with what it is mapped from */
static bool mapped;    /* every rank can touch the heap of every other */
static _Atomic uint64_t *meeting;

/* The row under way, as this rank sees it. */
static const struct row *row;
static unsigned roles, cells;
static uint32_t rank_of[ROLES];
static struct step program[STEPS], handler[STEPS];
static tern_addr at[PLACES];
static size_t apart[PLACES]; /* bytes from one cell to the next */
static _Atomic uint64_t reg[CELLS][REGISTERS], heard[CELLS], answered[CELLS];
static uint64_t source[CELLS][PLACES];
static char wide_source[LONG];
static tern_op op = TERN_OP;
static tern_team *team;

/* A field of the board of rank 0. */
static tern_addr at_first(size_t offset)
{
	return handed_at(board_at, 0) + offset;
}

static tern_addr place(const struct turn *u, unsigned i)
{
	unsigned k = u->step->place[i];
	return at[k] + u->cell * apart[k];
}

static void set(const struct turn *u, uint64_t value)
{
	if (u->step->reg < REGISTERS)
		atomic_store(&reg[u->cell][u->step->reg], value);
}

static void rest(tern *t, unsigned *turns)
{
	CHECK(tern_poll(t) >= 0);
	if (++*turns % 64 == 0)
		sched_yield();
}

/* -- Steps ----------------------------------------------------------------- */

static void do_put(const struct turn *u)
{
	CHECK_IS(tern_put(u->t, place(u, 0), &u->step->value, sizeof u->step->value), 0);
}

static void do_get(const struct turn *u)
{
	uint64_t value = UNSET;
	CHECK_IS(tern_get(u->t, &value, place(u, 0), sizeof value), 0);
	set(u, value);
}

static void do_start(const struct turn *u)
{
	uint64_t *from = &source[u->cell][u->step->place[0]];
	*from = u->step->value;
	CHECK_IS(tern_put_start(u->t, place(u, 0), from, sizeof *from, &op), 0);
}

static tern_addr wide(const struct turn *u)
{
	size_t before = LONG - sizeof u->step->value;
	memcpy(wide_source + before, &u->step->value, sizeof u->step->value);
	return place(u, 0) - before;
}

static void do_lay(const struct turn *u)
{
	CHECK_IS(tern_put(u->t, wide(u), wide_source, LONG), 0);
}

static void do_many(const struct turn *u)
{
	CHECK_IS(tern_put_start(u->t, wide(u), wide_source, LONG, &op), 0);
}

static void do_wait(const struct turn *u)
{
	CHECK_IS(tern_op_wait(u->t, &op), 0);
}

static void do_write(const struct turn *u)
{
	_Atomic uint64_t *p = handed_local(u->t, place(u, 0), sizeof *p);
	if (p)
		atomic_store_explicit(p, u->step->value, memory_order_release);
	else
		do_put(u);
}

static void do_read(const struct turn *u)
{
	_Atomic uint64_t *p = handed_local(u->t, place(u, 0), sizeof *p);
	if (p)
		set(u, atomic_load_explicit(p, memory_order_acquire));
	else
		do_get(u);
}

static void operate(const struct turn *u, enum tern_amo what)
{
	uint64_t old = UNSET;
	CHECK_IS(tern_amo(u->t, place(u, 0), what, u->step->value, &old), 0);
	set(u, old);
}

static void do_swap(const struct turn *u)
{
	operate(u, TERN_AMO_SWAP);
}

static void do_add(const struct turn *u)
{
	operate(u, TERN_AMO_ADD);
}

static void do_bump(const struct turn *u)
{
	_Atomic uint64_t *p = handed_local(u->t, place(u, 0), sizeof *p);
	if (p)
		atomic_fetch_add(p, u->step->value);
	else
		do_add(u);
}

static void do_store(const struct turn *u)
{
	CHECK_IS(tern_store(u->t, place(u, 0), &u->step->value, sizeof u->step->value), 0);
}

static void do_sync(const struct turn *u)
{
	CHECK_IS(tern_store_sync(u->t, sizeof(uint64_t)), 0);
}

static void do_signal(const struct turn *u)
{
	uint64_t value = u->step->value;
	CHECK_IS(tern_put_signal(u->t, place(u, 0), &value, sizeof value,
				 &(tern_change){ .word = place(u, 1),
						 .what = TERN_AMO_STORE,
						 .value = value }),
		 0);
}

static void do_word(const struct turn *u)
{
	const uint64_t *word = handed_local(u->t, place(u, 0), sizeof *word);
	CHECK_IS(tern_wait_word(u->t, word, TERN_WORD_NE, 0), 0);
}

static void do_take(const struct turn *u)
{
	CHECK_IS(tern_lock_take(u->t, &board->lock[u->cell]), 0);
}

static void do_give(const struct turn *u)
{
	CHECK_IS(tern_lock_release(u->t, &board->lock[u->cell]), 0);
}

static void do_copy(const struct turn *u)
{
	CHECK_IS(tern_copy_start(u->t, place(u, 0), place(u, 1), 8, NULL), 0);
}

static void do_long(const struct turn *u)
{
	CHECK_IS(tern_put_request(u->t, place(u, 0), REQUEST, &u->step->value, 8, u->cell), 0);
}

static void do_after(const struct turn *u)
{
	uint64_t *from = &source[u->cell][u->step->place[0]];
	*from = u->step->value;
	CHECK_IS(tern_put_request_start(u->t, place(u, 0), REQUEST, from, sizeof *from, NULL, &op,
					u->cell),
		 0);
}

static void do_trail(const struct turn *u)
{
	CHECK_IS(tern_put_request_start(u->t, wide(u), REQUEST, wide_source, LONG, NULL, &op,
					u->cell),
		 0);
}

static void do_parts(const struct turn *u)
{
	uint64_t *from = source[u->cell], word = u->cell;
	tern_part dst[] = { { .addr = place(u, 0), .run = 8 }, { .addr = place(u, 1), .run = 8 } };
	tern_part src = { .base = from, .run = 16 };
	from[0] = from[1] = u->step->value;
	CHECK_IS(tern_put_request_start_array(
			 u->t, &(tern_long){ .id = REQUEST,
					     .n = 1,
					     .op = &op,
					     .words = &word,
					     .parts = &(tern_parts){ dst, &src, 2, 1 } }),
		 0);
}

static void do_trade(const struct turn *u)
{
	uint64_t mine = u->cell, got = UNSET, with = u->step->value;
	uint32_t rank = with < ROLES ? rank_of[with] : TERN_RANK_NONE;
	tern_neighbor side = { .to = rank, .from = rank };
	side.in = (tern_part){ .base = &mine, .run = sizeof mine };
	side.out = (tern_part){ .base = &got, .run = sizeof got };
	CHECK_IS(tern_team_exchange(team, &side, 1), 0);
	CHECK(got == mine || rank == TERN_RANK_NONE);
}

static void do_when(const struct turn *u)
{
	uint64_t value = UNSET;
	tern_addr flag = place(u, 1);
	CHECK_IS(tern_get_when_start(u->t, &value, place(u, 0), sizeof value,
				     &(tern_when){ .flag = flag, .least = 1 }, NULL),
		 0);
	set(u, value);
}

static void do_await(const struct turn *u)
{
	uint64_t value = 0;
	for (unsigned turns = 0; !value; rest(u->t, &turns))
		REQUIRE(tern_get(u->t, &value, place(u, 0), sizeof value) == 0);
}

/* Of the forms of a request one word is the shortest, two take a line, some have a payload. */
static void do_request(const struct turn *u)
{
	static const char payload[APART];
	uint32_t to = rank_of[u->step->value];
	if (u->cell % 4 == 3)
		CHECK_IS(tern_request_data(u->t, to, REQUEST, payload, sizeof payload, u->cell), 0);
	else if (u->cell % 2)
		CHECK_IS(tern_request(u->t, to, REQUEST, u->cell, 0), 0);
	else
		CHECK_IS(tern_request(u->t, to, REQUEST, u->cell), 0);
}

static void do_reply(const struct turn *u)
{
	CHECK_IS(tern_reply(u->t, u->msg, REPLY, u->cell), 0);
}

static void until(tern *t, _Atomic uint64_t *flag)
{
	for (unsigned turns = 0; !atomic_load(flag);)
		rest(t, &turns);
}

static void do_heard(const struct turn *u)
{
	until(u->t, &heard[u->cell]);
}

static void do_answered(const struct turn *u)
{
	until(u->t, &answered[u->cell]);
}

/* -- Another thread, with a worker ------------------------------------------ */

/* What it is to do, with its own endpoint; nothing: to end. */
static struct aside {
	pthread_t thread;
	tern *worker;
	sem_t begin;
	_Atomic uint64_t done;
	void (*act)(const struct turn *u);
	struct turn turn;
} aside;

static void *aside_run(void *arg)
{
	for (;; atomic_store(&aside.done, 1)) {
		while (sem_wait(&aside.begin))
			;
		if (!aside.act)
			break;
		aside.turn.t = aside.worker;
		aside.act(&aside.turn);
	}
	CHECK_IS(tern_close(aside.worker), 0);
	return arg;
}

static void aside_do(const struct turn *u, void (*act)(const struct turn *u))
{
	if (!aside.worker) {
		REQUIRE(tern_worker_open(u->t, &aside.worker) == 0);
		REQUIRE(sem_init(&aside.begin, 0, 0) == 0);
		REQUIRE(pthread_create(&aside.thread, NULL, aside_run, NULL) == 0);
	}
	aside.turn = *u;
	aside.act = act;
	atomic_store(&aside.done, 0);
	REQUIRE(sem_post(&aside.begin) == 0);
	until(u->t, &aside.done);
}

static void aside_end(void)
{
	if (!aside.worker)
		return;
	aside.act = NULL;
	REQUIRE(sem_post(&aside.begin) == 0);
	REQUIRE(pthread_join(aside.thread, NULL) == 0);
	aside.worker = NULL;
}

static void do_aside(const struct turn *u)
{
	aside_do(u, do_put);
}

static void do_ask(const struct turn *u)
{
	aside_do(u, do_request);
}

static void do_from(const struct turn *u)
{
	for (unsigned i = 0; i < roles && !atomic_load(&heard[u->cell]); i++)
		if (rank_of[i] == tern_msg_src(u->msg))
			set(u, i);
}

static void do_flush(const struct turn *u)
{
	CHECK_IS(tern_flush(u->t), 0);
}

static void do_barrier(const struct turn *u)
{
	REQUIRE(tern_barrier(u->t) == 0);
}

static const struct verb {
	const char *name;
	void (*act)(const struct turn *u);
} verbs[] = {
	{ "put", do_put },           { "get", do_get },       { "start", do_start },
	{ "lay", do_lay },           { "many", do_many },     { "wait", do_wait },
	{ "write", do_write },       { "read", do_read },     { "swap", do_swap },
	{ "add", do_add },           { "bump", do_bump },     { "store", do_store },
	{ "sync", do_sync },         { "signal", do_signal }, { "word", do_word },
	{ "take", do_take },         { "give", do_give },     { "copy", do_copy },
	{ "long", do_long },         { "when", do_when },     { "await", do_await },
	{ "request", do_request },   { "reply", do_reply },   { "heard", do_heard },
	{ "answered", do_answered }, { "from", do_from },     { "flush", do_flush },
	{ "barrier", do_barrier },   { "after", do_after },   { "trail", do_trail },
	{ "parts", do_parts },       { "trade", do_trade },   { "aside", do_aside },
	{ "ask", do_ask },
};

#endif
