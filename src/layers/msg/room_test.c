/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits: full tables, full rings, holds, and what a rank that floods another may not take from a
 * third.
 */
#include <errno.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/local.h"
#include "msg/msg.h"

enum { ID = 5, LARGE = 100000 };

static unsigned char out[LARGE], in[LARGE];

static void begin(uint32_t ranks)
{
	chance_fill(out, LARGE, 3);
	memset(in, 0xee, LARGE);
	local_open(ranks);
}

static void ignore(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
}

/* Fills the ring from one rank to another, under a hold, where nothing is served. */
static void fill_ring(uint32_t from, uint32_t to)
{
	int rc;
	while ((rc = tern_request(local[from], to, 1, 0, 0, 0, 0)) == 0)
		;
	CHECK_IS(rc, -EAGAIN);
}

/* -- Full tables ------------------------------------------------------------------------------- */

TEST(a_full_table_of_receives_takes_no_more_and_loses_none)
{
	tern_op ro = TERN_OP;
	uint64_t word;
	static uint64_t words[TERN_RECVS_MAX];
	begin(2);
	for (tern_id id = 0; id < TERN_RECVS_MAX; id++)
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = id }, &words[id],
					 8, NULL, &ro),
			 0);
	int rc = tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, &word, 8, NULL,
				 &ro);
	CHECK_IS(rc, -EAGAIN);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK_IS(tern_recv_start(
			 local[1],
			 &(tern_match){ .rank = TERN_RANK_ANY, .id = ID, .any = TERN_ID_ANY },
			 &word, 8, NULL, &ro),
		 -EAGAIN);
	CHECK_IS(tern_recv(local[1], 0, ID, &word, 8, NULL), -EAGAIN);
	CHECK_IS(ro.pending, TERN_RECVS_MAX);
	CHECK_IS(tern_send(local[0], 1, 17, &(uint64_t){ 1017 }, sizeof(uint64_t)), 0);
	local_settle_transfers();
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 17 }, &words[17], 8,
				 NULL, &ro),
		 0); /* room again */
	for (tern_id id = TERN_RECVS_MAX; id--;)
		CHECK_IS(tern_send(local[0], 1, id, &(uint64_t){ id + 1000 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	for (tern_id id = 0; id < TERN_RECVS_MAX; id++)
		CHECK_IS(words[id], id + 1000);
	local_close();
}

TEST(a_full_table_of_sends_takes_no_more_and_loses_none)
{
	tern_op so = TERN_OP;
	const tern_id each_id[] = { 1, 2 };
	const tern_part each[] = { { .base = out, .run = 8 }, { .base = out, .run = 8 } };
	begin(2);
	for (tern_id id = 0; id < TERN_SENDS_MAX - 1; id++)
		CHECK_IS(tern_send_start(local[0], 1, id, out, id % 100, TERN_SEND_RENDEZVOUS, &so),
			 0);
	CHECK_IS(tern_send_each_start(local[0], 1, each_id, each, 2, TERN_SEND_SYNC, &so), -EAGAIN);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, TERN_SEND_SYNC, &so), 0);
	int rc = tern_send_start(local[0], 1, ID, out, 8, TERN_SEND_RENDEZVOUS, &so);
	CHECK_IS(rc, -EAGAIN);
	CHECK(sentence_has(rc, "rank 0"));
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, TERN_SEND_SYNC, &so), -EAGAIN);
	CHECK_IS(tern_send(local[0], 1, ID, out, LARGE), -EAGAIN);
	CHECK_IS(so.pending, TERN_SENDS_MAX);
	for (tern_id id = 0; id < TERN_SENDS_MAX - 1; id++) {
		tern_envelope env;
		CHECK_IS(tern_recv(local[1], 0, id, in, LARGE, &env), 0);
		CHECK_IS(env.len, id % 100);
		CHECK(chance_filled(in, env.len, 3));
	}
	CHECK_IS(tern_recv(local[1], 0, ID, in, LARGE, NULL), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	local_settle_transfers();
	CHECK_IS(msg_of(local[1])->arrivals.used, 0); /* what was refused has not come */
	CHECK_IS(msg_of(local[0])->sends.used, 0);
	local_close();
}

/* -- Under a hold, and with a full ring -------------------------------------------------------- */

TEST(calls_that_would_wait_are_refused_under_a_hold)
{
	tern_op op = TERN_OP, ro = TERN_OP;
	tern_envelope env;
	begin(2);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LARGE, 0, &op), 0);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = ID }, in, LARGE, NULL,
				 &ro),
		 0);
	local_settle_transfers();
	tern_hold(local[0]);
	CHECK_IS(tern_send(local[0], 1, ID, out, 8), 0); /* it need not wait */
	CHECK_IS(tern_send(local[0], 1, ID, out, LARGE), -EDEADLK);
	CHECK_IS(tern_recv(local[0], 1, ID, in, LARGE, NULL), -EDEADLK);
	CHECK_IS(tern_op_wait(local[0], &ro), -EDEADLK);
	CHECK_IS(tern_probe(local[0],
			    &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 1, .id = ID }, &env),
		 -EDEADLK);
	CHECK_IS(tern_op_cancel(local[0], &op), -EDEADLK);
	CHECK_IS(tern_op_wait(local[0], &op), -EDEADLK);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = 0, .stride = 1, .run = 1, .count = 1 }, ID),
		 -EDEADLK);
	CHECK_IS(msg_of(local[0])->recvs.used, 1);
	tern_release(local[0]);
	for (int i = 0; i < 2; i++)
		CHECK_IS(tern_recv(local[1], 0, ID, in, LARGE, NULL), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	local_close();
}

TEST(what_is_started_under_a_hold_goes_on_when_it_is_released)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	begin(2);
	local_on(1, ignore);
	tern_hold(local[0]);
	fill_ring(0, 1);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LARGE, 0, &so), 0);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, 0, &so), 0); /* behind it */
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, TERN_SEND_SYNC, &so), 0);
	CHECK_IS(so.pending, 3);
	tern_release(local[0]);
	for (int i = 0; i < 3; i++) {
		tern_envelope env = { 0 };
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, LARGE,
					 &env, &ro),
			 0);
		CHECK_IS(tern_op_wait(local[1], &ro), 0);
		CHECK_IS(env.len, i ? 8 : LARGE);
		CHECK(chance_filled(in, env.len, 3));
	}
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	local_close();
}

TEST(a_send_that_finds_the_ring_full_under_a_hold_takes_nothing)
{
	tern_op so = TERN_OP;
	begin(2);
	local_on(1, ignore);
	tern_hold(local[0]);
	fill_ring(0, 1);
	uint32_t cells = msg_of(local[0])->peer[1].cells;
	CHECK_IS(tern_send(local[0], 1, ID, out, 8), -EAGAIN);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, 0, &so), -EAGAIN);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, TERN_SEND_SYNC, &so), -EAGAIN);
	CHECK_IS(so.pending, 0);
	CHECK_IS(msg_of(local[0])->peer[1].cells, cells);
	CHECK_IS(msg_of(local[0])->sends.used, 0);
	tern_release(local[0]);
	local_settle_transfers();
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
	local_close();
}

/*
 * A receive that takes what has arrived has to tell the sender: it needs the ring, or nothing is
 * taken.
 */
static void receive_under_hold(size_t len, unsigned flags)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	CHECK_IS(tern_send_start(local[0], 1, ID, out, len, flags, &so), 0);
	local_settle_transfers();
	tern_hold(local[1]);
	fill_ring(1, 0);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, LARGE, NULL,
				 &ro),
		 -EAGAIN);
	CHECK_IS(ro.pending, 0);
	CHECK_IS(msg_of(local[1])->recvs.used, 0);
	CHECK_IS(msg_of(local[1])->arrivals.used, 1);
	tern_release(local[1]);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, LARGE, NULL,
				 &ro),
		 0);
	local_settle_transfers();
	CHECK_IS(ro.pending, 0);
	CHECK_IS(so.pending, 0);
}

TEST(a_receive_that_cannot_tell_its_sender_under_a_hold_takes_nothing)
{
	begin(2);
	local_on(1, ignore);
	receive_under_hold(LARGE, 0);
	receive_under_hold(8, TERN_SEND_SYNC);
	local_close();
}

static tern_op later;

static void send_later(tern *t, void *arg)
{
	CHECK_IS(tern_send_start(t, 1, ID, arg, 8, 0, &later), 0);
}

static void send_later_blocking(tern *t, void *arg)
{
	CHECK_IS(tern_send(t, 1, ID, arg, 8), 0);
}

/*
 * A send waits for the ring, and while a poll waits too, to announce it, a deferred function sends.
 */
static void send_while_announcing(void (*deferred)(tern *t, void *arg))
{
	static uint64_t first = 1, second = 2;
	uint64_t got[2] = { 0 };
	tern_op so = TERN_OP, ro = TERN_OP;
	begin(2);
	local_on(1, ignore);
	for (int i = 0; i < 2; i++)
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, &got[i], 8,
					 NULL, &ro),
			 0);
	tern_hold(local[0]);
	fill_ring(0, 1);
	CHECK_IS(tern_send_start(local[0], 1, ID, &first, 8, TERN_SEND_RENDEZVOUS, &so), 0);
	CHECK_IS(tern_defer(local[0], deferred, &second), 0);
	tern_release(local[0]);
	tern_poll(local[0]);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK_IS(tern_op_wait(local[0], &later), 0);
	CHECK(got[0] == 1 && got[1] == 2);
	local_close();
}

TEST(what_a_deferred_function_sends_does_not_overtake_what_waits_for_the_ring)
{
	send_while_announcing(send_later);
}

TEST(a_deferred_function_may_block_in_a_send_behind_one_that_waits_for_the_ring)
{
	send_while_announcing(send_later_blocking);
}

/* -- Ready messages that are kept take no room from others ------------------------------------- */

static void busy_receive(uint32_t from)
{
	static const tern_part halves[2] = { { .base = in, .run = 50000 },
					     { .base = in + 50000, .run = 50000 } };
	static tern_op so, ro;
	so = ro = (tern_op)TERN_OP;
	CHECK_IS(tern_recv_parts_start(local[0], &(tern_match){ .rank = TERN_RANK_ANY, .id = ID },
				       halves, 2, NULL, &ro),
		 0);
	CHECK_IS(tern_send_start(local[from], 0, ID, out, LARGE, TERN_SEND_RENDEZVOUS, &so), 0);
	CHECK(tern_poll(local[0]) >= 0);
	CHECK_IS(tern_op_state(local[0], &ro), TERN_STATE_IN_PROGRESS);
}

TEST(small_ready_messages_for_a_busy_receive_do_not_take_the_cells_of_others)
{
	tern_op so = TERN_OP;
	begin(3);
	busy_receive(1);
	CHECK(freopen("/dev/null", "w", stderr) != NULL); /* it warns of each */
	for (int i = 0; i < CELLS + 2 * CELLS_HELD; i++) {
		CHECK_IS(tern_send_start(local[1], 0, ID, out, 8, TERN_SEND_READY, &so), 0);
		while (tern_poll(local[0]))
			;
	}
	while (tern_poll(local[0]) < 0)
		;
	CHECK_IS(tern_send_start(local[2], 0, 9, out, 200, 0, &so), 0);
	CHECK_IS(so.pending, 0);
	CHECK(tern_poll(local[0]) >= 0); /* and not -ENOBUFS */
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 2, .id = 9 }, NULL), 1);
	local_close();
}

TEST(large_ready_messages_for_a_busy_receive_do_not_take_the_places_of_others)
{
	tern_op so[3] = { TERN_OP, TERN_OP, TERN_OP };
	begin(3);
	busy_receive(1);
	CHECK(freopen("/dev/null", "w", stderr) != NULL);
	for (int i = 0; i < RTS_ALL - 10; i++)
		for (uint32_t r = 1; r < 3; r++) {
			CHECK_IS(tern_send_start(local[r], 0, ID, out, LARGE, TERN_SEND_READY,
						 &so[r]),
				 0);
			tern_poll(local[0]);
		}
	while (tern_poll(local[0]) || tern_poll(local[2])) /* says of each that it was discarded */
		;
	CHECK_IS(tern_send_start(local[2], 0, 9, out, 200, TERN_SEND_RENDEZVOUS, &so[0]), 0);
	local_settle_transfers();
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 2, .id = 9 }, NULL), 1);
	CHECK_IS(so[0].pending, 1);
	local_close();
}

/* -- Names come round -------------------------------------------------------------------------- */

TEST(a_message_without_a_name_is_never_taken_for_a_send_that_has_been_renamed_often)
{
	tern_op so = TERN_OP, ready = TERN_OP;
	begin(2);
	for (unsigned i = 0; i < 65535; i++) { /* the first place, until its turns come round */
		CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, TERN_SEND_SYNC, &so), 0);
		CHECK_IS(tern_recv(local[1], 0, ID, in, 8, NULL), 0);
		CHECK_IS(tern_op_wait(local[0], &so), 0);
	}
	CHECK_IS(tern_send_start(local[0], 1, ID, out, 8, TERN_SEND_RENDEZVOUS, &so), 0);
	tern_poll(local[1]);
	CHECK_IS(tern_send_start(local[0], 1, ID + 1, out, 8, TERN_SEND_READY, &ready), 0);
	CHECK_IS(tern_poll(local[1]), -ENOMSG);
	CHECK_IS(tern_poll(local[0]), -ENOMSG);
	REQUIRE(so.pending == 1); /* it is the other one that was discarded */
	CHECK_IS(tern_recv(local[1], 0, ID, in, 8, NULL), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	local_close();
}

/* -- More receives at once than there are regions ---------------------------------------------- */

TEST(any_number_of_rendezvous_flow_at_once_and_the_program_keeps_its_regions)
{
	enum { MANY = 100, EACH = 20000 };
	static unsigned char room[MANY][EACH], own[100];
	tern_op so = TERN_OP, ro = TERN_OP;
	tern_addr a;
	begin(2);
	for (tern_id id = 0; id < MANY; id++)
		CHECK_IS(tern_send_start(local[0], 1, id, out + id, EACH, 0, &so), 0);
	tern_poll(local[1]);
	for (tern_id id = 0; id < MANY; id++)
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = id }, room[id],
					 EACH, NULL, &ro),
			 0);
	CHECK_IS(tern_register(local[1], own, sizeof own, &a), 0);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	for (tern_id id = 0; id < MANY; id++)
		CHECK(memcmp(room[id], out + id, EACH) == 0);
	CHECK_IS(tern_register(local[1], own, sizeof own, &a), 0);
	local_close();
}

/* -- Deferred functions ------------------------------------------------------------------------ */

static tern_op answered = TERN_OP; /* the send of rank 1 */
static bool deferred_ran;

/*
 * Waits for what rank 1 can do only when rank 0 has told it to send; in vain, if that lies below on
 * the stack.
 */
static void wait_for_the_send(tern *t, void *arg)
{
	(void)t, (void)arg;
	for (int i = 0; i < 10000 && answered.pending; i++) {
		(void)!tern_poll(local[0]);
		(void)!tern_poll(local[1]);
	}
	CHECK_IS(answered.pending, 0);
	deferred_ran = true;
}

TEST(a_deferred_function_that_waits_does_not_keep_back_that_a_send_may_begin)
{
	tern_op receive = TERN_OP;
	local_polled();
	begin(2);
	local_on(1, ignore);
	CHECK_IS(tern_send_start(local[1], 0, ID, out, LARGE, TERN_SEND_RENDEZVOUS, &answered), 0);
	local_settle_transfers();
	tern_hold(local[0]);
	fill_ring(0, 1);
	tern_release(local[0]);
	CHECK_IS(tern_defer(local[0], wait_for_the_send, NULL), 0);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = ID }, in, LARGE, NULL,
				 &receive),
		 0);
	CHECK_IS(tern_op_wait(local[0], &receive), 0);
	local_settle_transfers();
	CHECK(deferred_ran);
	CHECK(memcmp(in, out, LARGE) == 0);
	local_close();
}
