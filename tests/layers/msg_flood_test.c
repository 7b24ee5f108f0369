/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Floods of messages that nobody receives yet: the receiver's memory stays within its bounds, what
 * others want of it is not delayed, and later all of them are received, in order.
 */
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/ranks.h"
#include "lib/rows.h"
#include "msg/msg.h"
#include "net/talk.h"

enum {
	RANKS = 5,
	FLOOD = 0xf100d,
	PING = 1,
	PONG = 2,
	EACH = 4000,
	ROUNDS = 100,
	LARGE = 20000,
	AT_ONCE = 50
};

/* Of an endpoint, without its address: what it holds for others. */
struct burden {
	uint32_t arrivals, cells;
	uint64_t committed;
};

struct board {
	_Atomic uint64_t flooding, ponged;
};

static struct board *board;
static size_t flood_len;
static unsigned flood_flags;

static struct burden burden_of(tern *t)
{
	struct msg *m = msg_of(t);
	return (struct burden){ m->arrivals.used, m->cells.made,
				atomic_load(&m->e->group->job.head->committed) };
}

/* What a rank may have to hold for `from` others of a job of `size`. */
static void check_bounds(tern *t, uint32_t from, const struct burden *before)
{
	struct msg *m = msg_of(t);
	struct burden b = burden_of(t);
	uint32_t places = RTS_ALL / tern_size(t);
	CHECK(b.arrivals <= from * (m->window + (places > RTS_LEAST ? places : RTS_LEAST)));
	CHECK(b.arrivals <= RTS_ALL + CELLS + CELLS_HELD);
	CHECK(b.cells <= CELLS + CELLS_HELD && b.cells <= from * m->window + CELLS_HELD);
	/* Rings grow once, and so do the spare blocks for replies. */
	const struct job *j = &m->e->group->job;
	size_t pairs = (size_t)tern_size(t) * (tern_size(t) - 1);
	CHECK(b.committed - before->committed <=
	      tern_size(t) * j->spare.bytes + pairs * sizeof(struct large_talk));
}

/* -- Processes ----------------------------------------------------------------------------- */

static unsigned char out[EACH][8], large[LARGE];

/* Ranks 2 and up but the last flood rank 0. */
static void flood(tern *t)
{
	static tern_part part[EACH][2]; /* its number, and something besides */
	tern_op op = TERN_OP;
	for (uint64_t i = 0; i < EACH; i++) {
		memcpy(out[i], &i, 8);
		part[i][0] = (tern_part){ .base = out[i], .run = 8 };
		part[i][1] = (tern_part){ .base = large, .run = flood_len - 8 };
		CHECK_IS(tern_send_parts_start(t, 0, FLOOD, part[i], 2, flood_flags, &op), 0);
	}
	atomic_fetch_add(&board->flooding, 1);
	CHECK_IS(tern_op_wait(t, &op), 0);
}

/* Rank 1 asks rank 0 and waits for the answer, again and again. */
static void ping(tern *t)
{
	uint64_t word;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		CHECK_IS(tern_send(t, 0, PING, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		CHECK_IS(tern_recv(t, 0, PONG, &word, sizeof word, NULL), 0);
		CHECK_IS(word, i);
	}
	atomic_store(&board->ponged, 1);
}

/* Several at once: one by one, each would wait for its sender to come to run. */
static void drain(tern *t, uint32_t from)
{
	static unsigned char in[AT_ONCE][LARGE];
	static tern_envelope env[AT_ONCE];
	for (uint64_t i = 0; i < EACH; i += AT_ONCE) {
		tern_op op = TERN_OP;
		for (unsigned k = 0; k < AT_ONCE; k++)
			CHECK_IS(tern_recv_start(t,
						 &(tern_match){ .rank = from,
								.id = FLOOD,
								.any = TERN_ID_ANY },
						 in[k], LARGE, &env[k], &op),
				 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
		for (unsigned k = 0; k < AT_ONCE; k++) {
			uint64_t word;
			memcpy(&word, in[k], 8);
			CHECK_IS(env[k].len, flood_len);
			CHECK_IS(word, i + k);
		}
	}
}

static void serve_pings(tern *t)
{
	struct endpoint *e = msg_of(t)->e;
	uint64_t word;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		CHECK_IS(tern_recv(t, 1, PING, &word, sizeof word, NULL), 0);
		CHECK_IS(word, i);
		CHECK_IS(tern_send(t, 1, PONG, &word, sizeof word), 0);
	}
	/*
	 * Whatever the flood is, what was handled is its share, which has a limit, and the pings.
	 */
	struct msg *m = msg_of(t);
	CHECK(endpoint_served(e) <=
	      (RANKS - 2) * (uint64_t)(m->window + RTS_ALL / RANKS) + 3 * ROUNDS + 1000);
}

static void rank_main(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	for (uint32_t r = 0; r < RANKS; r++) { /* everybody has talked to everybody */
		CHECK_IS(tern_send(t, r, 99, large, 1000), 0);
		CHECK_IS(tern_send(t, r, 98, &(uint64_t){ 0 }, sizeof(uint64_t)), 0);
	}
	for (uint32_t r = 0; r < RANKS; r++) {
		uint64_t word;
		CHECK_IS(tern_recv(t, r, 99, large, LARGE, NULL), 0);
		CHECK_IS(tern_recv(t, r, 98, &word, sizeof word, NULL), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	struct burden before = burden_of(t);
	CHECK_IS(tern_barrier(t), 0);
	if (me == 0) {
		serve_pings(t);
		while (atomic_load(&board->flooding) < RANKS - 2)
			tern_poll(t);
		for (int i = 0; i < 1000; i++)
			tern_poll(t);
		check_bounds(t, RANKS, &before);
		CHECK(burden_of(t).arrivals > 100);
		for (uint32_t r = RANKS - 1; r > 1; r--)
			drain(t, r);
		CHECK_IS(burden_of(t).arrivals, 0);
		CHECK_IS(tern_probe(t, &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY },
				    NULL),
			 0);
	} else if (me == 1) {
		ping(t);
	} else {
		flood(t);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void flood_with(size_t len, unsigned flags)
{
	flood_len = len;
	flood_flags = flags;
	board = ranks_shared(sizeof *board);
	ranks_run(RANKS, rank_main);
}

TEST(a_flood_of_small_messages_is_held_within_bounds_and_delays_nobody)
{
	flood_with(8, TERN_SEND_AUTO);
}

TEST(a_flood_of_rendezvous_is_held_within_bounds_and_delays_nobody)
{
	flood_with(8, TERN_SEND_RENDEZVOUS);
}

TEST(a_flood_of_large_messages_is_held_within_bounds_and_delays_nobody)
{
	flood_with(LARGE, TERN_SEND_AUTO);
}

TEST(a_flood_of_synchronous_messages_is_held_within_bounds_and_delays_nobody)
{
	flood_with(8, TERN_SEND_SYNC);
}

/* -- Many ranks ---------------------------------------------------------------------------- */

TEST(a_rank_that_many_others_flood_holds_no_more_than_its_bounds)
{
	enum { MANY = 60, TIMES = 400 };
	static tern *t[MANY];
	static uint64_t word[MANY][TIMES];
	static tern_op op[MANY];
	REQUIRE(tern_open_local(MANY, t) == 0);
	for (uint64_t i = 0; i < TIMES; i++)
		for (uint32_t r = 1; r < MANY; r++) {
			word[r][i] = i;
			CHECK_IS(tern_send_start(t[r], 0, FLOOD, &word[r][i], 8,
						 i % 2 ? TERN_SEND_RENDEZVOUS : 0, &op[r]),
				 0);
			tern_poll(t[0]);
		}
	for (int i = 0; i < 10; i++)
		for (uint32_t r = 0; r < MANY; r++)
			tern_poll(t[r]);
	struct burden now = burden_of(t[0]);
	check_bounds(t[0], MANY, &now);
	for (uint64_t i = 0; i < TIMES; i++)
		for (uint32_t r = 1; r < MANY; r++) {
			uint64_t got = 0;
			CHECK_IS(tern_recv(t[0], r, FLOOD, &got, sizeof got, NULL), 0);
			CHECK_IS(got, i);
		}
	for (uint32_t r = 0; r < MANY; r++)
		CHECK_IS(tern_op_wait(t[r], &op[r]), 0);
	for (uint32_t r = 0; r < MANY; r++)
		CHECK_IS(tern_close(t[r]), 0);
}

/* -- A receiver that does not poll --------------------------------------------------------- */

/*
 * Rank 0 is clear to send a lot to rank 1, which then serves nothing. Rank 0 still gets answers
 * from rank 2, and its polls return.
 */
static void beside_a_deaf_receiver(void)
{
	static unsigned char from[8 << 20],
		to[8 << 20]; /* half of it: more than a network has blocks for */
	tern *t = ranks_open();
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 1) {
		const tern_part odd = ROWS(to, 1, sizeof to / 2, 2); /* goes in messages */
		tern_op op = TERN_OP;
		CHECK_IS(tern_recv_parts_start(t, &(tern_match){ .rank = 0, .id = FLOOD }, &odd, 1,
					       NULL, &op),
			 0);
		CHECK_IS(
			tern_probe(t,
				   &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 0, .id = PING },
				   NULL),
			1); /* sent behind the question */
		while (!atomic_load(&board->ponged))
			ranks_nap(100000);
		CHECK_IS(tern_op_wait(t, &op), 0);
	} else if (tern_rank(t) == 0) {
		tern_op op = TERN_OP;
		CHECK_IS(tern_send_start(t, 1, FLOOD, from, sizeof from / 2, 0, &op), 0);
		CHECK_IS(tern_send(t, 1, PING, &(uint64_t){ 0 }, sizeof(uint64_t)), 0);
		for (uint64_t i = 0; i < ROUNDS; i++) {
			uint64_t word;
			CHECK_IS(tern_send(t, 2, PING, &(uint64_t){ i }, sizeof(uint64_t)), 0);
			CHECK_IS(tern_recv(t, 2, PONG, &word, sizeof word, NULL), 0);
			CHECK(tern_poll(t) >= 0);
		}
		CHECK_IS(op.pending, 1); /* most of it is still to come */
		atomic_store(&board->ponged, 1);
		CHECK_IS(tern_op_wait(t, &op), 0);
	} else {
		for (uint64_t i = 0; i < ROUNDS; i++) {
			uint64_t word;
			CHECK_IS(tern_recv(t, 0, PING, &word, sizeof word, NULL), 0);
			CHECK_IS(tern_send(t, 0, PONG, &word, sizeof word), 0);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_receiver_that_serves_nothing_does_not_stop_its_sender_from_talking_to_others)
{
	board = ranks_shared(sizeof *board);
	ranks_run(3, beside_a_deaf_receiver);
}
