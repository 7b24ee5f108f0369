/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two tables: every state that an entry can be in, what leads from one to the next, and taking
 * back.
 */
#include <errno.h>
#include <tern/msg.h>

#include "../../tests/chance.h"
#define arrival noted /* the layer has another */
#include "../../tests/local.h"
#undef arrival
#include "msg/msg.h"

enum { ID = 7, LEN = 100000, SMALL = 8 };

static unsigned char out[LEN], in[LEN], in2[LEN];

/*
 * A receive in two parts is filled by messages, one for each poll of the sender: there is time to
 * look.
 */
static const tern_part halves[2] = { { in, LEN / 2, 1, 0 }, { in + LEN / 2, LEN / 2, 1, 0 } };

static void begin(uint32_t ranks)
{
	chance_fill(out, LEN, 1);
	memset(in, 0xee, LEN);
	memset(in2, 0xee, LEN);
	local_open(ranks);
}

/* As local_settle(), for transfers too, which a poll carries on without handling anything. */
static void settle(void)
{
	for (int quiet = 0; quiet < 20; quiet++)
		quiet = local_settle() ? 0 : quiet;
}

static int send_listed(tern_id id, size_t len, unsigned flags)
{
	return tern_send_start(local[0], 1, id, out, len, flags, NULL);
}

static int recv_listed(tern_id id, void *to, size_t cap, unsigned flags)
{
	return tern_recv_start(local[1], 0, id, TERN_ID, to, cap, flags, NULL, NULL);
}

static int recv_slowly(tern_id id, tern_op *op)
{
	return tern_recv_parts(local[1], 0, id, TERN_ID, halves, 2, 0, NULL, op);
}

#define SEND_IS(id, state) CHECK_IS(tern_send_poll(local[0], 1, id), state)
#define RECV_IS(id, state) CHECK_IS(tern_recv_poll(local[1], 0, id), state)

/* -- Sends ----------------------------------------------------------------------------------- */

TEST(a_send_that_waits_for_its_receive_is_in_use_then_in_progress_then_complete)
{
	begin(2);
	SEND_IS(ID, TERN_EMPTY);
	CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0);
	SEND_IS(ID, TERN_IN_USE);
	settle();
	SEND_IS(ID, TERN_IN_USE);
	CHECK_IS(recv_slowly(ID, NULL), 0);
	SEND_IS(ID, TERN_IN_PROGRESS);
	SEND_IS(ID, TERN_IN_PROGRESS);
	settle();
	SEND_IS(ID, TERN_COMPLETE);
	SEND_IS(ID, TERN_COMPLETE); /* until it is cleared */
	CHECK_IS(tern_send_wait(local[0], 1, ID), 0);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	SEND_IS(ID, TERN_EMPTY);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

TEST(a_small_send_is_complete_at_once)
{
	begin(2);
	CHECK_IS(send_listed(ID, SMALL, TERN_AUTO), 0);
	CHECK_IS(tern_send_wait(local[0], 1, ID), 0);
	SEND_IS(ID, TERN_COMPLETE);
	CHECK_IS(send_listed(ID + 1, SMALL, TERN_READY), 0);
	SEND_IS(ID + 1, TERN_COMPLETE);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	SEND_IS(ID, TERN_EMPTY);
	SEND_IS(ID + 1, TERN_COMPLETE);
	local_close();
}

TEST(a_synchronous_send_is_in_use_until_a_receive_has_taken_it)
{
	begin(2);
	CHECK_IS(send_listed(ID, SMALL, TERN_SYNC), 0);
	settle();
	SEND_IS(ID, TERN_IN_USE);
	CHECK_IS(tern_send_clear(local[0], 1, ID), -EBUSY);
	CHECK_IS(recv_listed(ID, in, SMALL, 0), 0);
	SEND_IS(ID, TERN_COMPLETE);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	local_close();
}

TEST(an_entry_is_cleared_only_when_it_is_complete)
{
	begin(2);
	int rc = tern_send_clear(local[0], 1, ID);
	CHECK_IS(rc, -ENOENT);
	CHECK(sentence_has(rc, "0x7") && sentence_has(rc, "rank 1"));
	rc = tern_recv_clear(local[1], 0, ID);
	CHECK_IS(rc, -ENOENT);
	CHECK(sentence_has(rc, "0x7") && sentence_has(rc, "rank 0"));
	CHECK_IS(tern_send_wait(local[0], 1, ID), -ENOENT);
	CHECK_IS(tern_recv_wait(local[1], 0, ID), -ENOENT);
	CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0);
	rc = tern_send_clear(local[0], 1, ID);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "0x7") && sentence_has(rc, "rank 1"));
	CHECK_IS(recv_slowly(ID, NULL), 0);
	rc = tern_recv_clear(local[1], 0, ID);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "0x7"));
	settle();
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK_IS(tern_send_clear(local[0], 1, ID), -ENOENT);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), -ENOENT);
	local_close();
}

TEST(an_id_can_be_used_again_when_its_entries_are_cleared)
{
	begin(2);
	for (unsigned i = 0; i < 200; i++) {
		size_t len = i % 2 ? SMALL : LEN;
		chance_fill(out, len, i);
		CHECK_IS(send_listed(ID, len, TERN_REFUSE), 0);
		CHECK_IS(recv_listed(ID, in, LEN, TERN_REFUSE), 0);
		settle();
		CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
		CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
		CHECK(chance_filled(in, len, i));
	}
	CHECK_IS(msg_of(local[0])->sends.made, POOL_BATCH);
	CHECK_IS(msg_of(local[1])->recvs.made, POOL_BATCH);
	local_close();
}

TEST(an_entry_keeps_the_result_until_it_is_cleared)
{
	begin(2);
	CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0);
	CHECK_IS(recv_listed(ID, in, LEN - 1, 0), 0);
	settle();
	SEND_IS(ID, TERN_COMPLETE);
	RECV_IS(ID, TERN_COMPLETE);
	CHECK_IS(tern_send_wait(local[0], 1, ID), -EMSGSIZE);
	CHECK_IS(tern_recv_wait(local[1], 0, ID), -EMSGSIZE);
	CHECK_IS(tern_send_wait(local[0], 1, ID), -EMSGSIZE);
	CHECK_IS(tern_send_clear(local[0], 1, ID), -EMSGSIZE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), -EMSGSIZE);
	SEND_IS(ID, TERN_EMPTY);
	RECV_IS(ID, TERN_EMPTY);
	local_close();
}

/* -- Receives ---------------------------------------------------------------------------------- */

TEST(a_receive_that_is_posted_first_is_in_use_then_in_progress_then_complete)
{
	begin(2);
	RECV_IS(ID, TERN_EMPTY);
	CHECK_IS(recv_slowly(ID, NULL), 0);
	RECV_IS(ID, TERN_IN_USE);
	CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0);
	RECV_IS(ID, TERN_IN_PROGRESS);
	RECV_IS(ID, TERN_IN_PROGRESS);
	CHECK_IS(tern_recv_wait(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_COMPLETE);
	CHECK(memcmp(in, out, LEN) == 0);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_EMPTY);
	local_close();
}

TEST(an_entry_where_a_sender_waits_is_rts_until_the_receive_comes)
{
	begin(2);
	CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0);
	RECV_IS(ID, TERN_RTS);
	CHECK_IS(tern_recv_poll(local[1], TERN_ANY, ID), TERN_RTS);
	RECV_IS(ID + 1, TERN_EMPTY);
	CHECK_IS(tern_recv_poll(local[1], 1, ID), TERN_EMPTY); /* it is not from there */
	CHECK_IS(tern_recv_clear(local[1], 0, ID), -ENOENT);
	CHECK_IS(recv_slowly(ID, NULL), 0);
	RECV_IS(ID, TERN_IN_PROGRESS);
	settle();
	RECV_IS(ID, TERN_COMPLETE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

TEST(an_entry_for_which_a_small_message_is_here_is_rts_too)
{
	begin(2);
	CHECK_IS(send_listed(ID, SMALL, 0), 0);
	RECV_IS(ID, TERN_RTS);
	CHECK_IS(tern_recv_poll(local[1], TERN_ANY, ID), TERN_RTS);
	CHECK_IS(recv_listed(ID, in, LEN, 0), 0);
	RECV_IS(ID, TERN_COMPLETE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_EMPTY);
	local_close();
}

TEST(a_receive_of_a_ready_message_goes_from_in_use_to_complete)
{
	begin(2);
	CHECK_IS(recv_listed(ID, in, SMALL, 0), 0);
	RECV_IS(ID, TERN_IN_USE);
	CHECK_IS(send_listed(ID, SMALL, TERN_READY), 0);
	RECV_IS(ID, TERN_COMPLETE);
	CHECK(memcmp(in, out, SMALL) == 0);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	local_close();
}

TEST(the_question_and_the_receive_may_cross)
{
	begin(2);
	for (int order = 0; order < 3; order++) {
		memset(in, 0xee, LEN);
		if (order == 0)
			CHECK_IS(recv_listed(ID, in, LEN, 0), 0);
		CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0); /* lies in the ring */
		if (order == 2)
			settle();
		if (order)
			CHECK_IS(recv_listed(ID, in, LEN, 0), 0);
		CHECK_IS(tern_send_wait(local[0], 1, ID), 0);
		CHECK_IS(tern_recv_wait(local[1], 0, ID), 0);
		CHECK(memcmp(in, out, LEN) == 0);
		CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
		CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	}
	local_close();
}

static enum tern_state seen_send, seen_recv;

static void look(tern *t, const tern_msg *m)
{
	(void)m;
	seen_send = tern_send_poll(t, 0, ID);
	seen_recv = tern_recv_poll(t, 0, ID);
}

TEST(polls_work_in_a_handler)
{
	begin(2);
	local_on(1, look);
	CHECK_IS(tern_send_start(local[1], 0, ID, out, LEN, 0, NULL), 0);
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0);
	tern_poll(local[1]);
	CHECK_IS(seen_send, TERN_IN_USE);
	CHECK_IS(seen_recv, TERN_EMPTY); /* it lies behind the message that is being handled */
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	tern_poll(local[1]);
	CHECK_IS(seen_recv, TERN_RTS);
	local_close();
}

/* -- With a handle or without ------------------------------------------------------------------ */

TEST(an_operation_with_a_handle_leaves_nothing_in_the_table)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	begin(2);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LEN, 0, &so), 0);
	CHECK_IS(so.pending, 1);
	CHECK_IS(tern_recv_start(local[1], 0, ID, TERN_ID, in, LEN, 0, NULL, &ro), 0);
	CHECK_IS(ro.pending, 1);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	SEND_IS(ID, TERN_EMPTY);
	RECV_IS(ID, TERN_EMPTY);
	CHECK_IS(tern_send_clear(local[0], 1, ID), -ENOENT);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), -ENOENT);
	CHECK_IS(msg_of(local[0])->sends.used, 0);
	CHECK_IS(msg_of(local[1])->recvs.used, 0);
	local_close();
}

TEST(a_listed_send_is_polled_and_cleared_although_an_older_one_with_a_handle_is_under_way)
{
	tern_op so = TERN_OP;
	begin(2);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LEN, 0, &so), 0);
	CHECK_IS(send_listed(ID, SMALL, 0), 0);
	REQUIRE(tern_send_poll(local[0], 1, ID) == TERN_COMPLETE);
	CHECK_IS(tern_send_wait(local[0], 1, ID), 0);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	CHECK_IS(so.pending, 1);
	local_close();
}

TEST(a_handle_counts_every_operation_and_signals_its_flag_for_each)
{
	_Atomic uint64_t flag = 0;
	tern_op op = { .flag = &flag };
	begin(2);
	for (tern_id id = 0; id < 4;
	     id++) /* small and large, sends and receives under one handle */
		CHECK_IS(tern_send_start(local[0], 0, id, out, id % 2 ? SMALL : LEN / 4, 0, &op),
			 0);
	for (tern_id id = 0; id < 4; id++)
		CHECK_IS(tern_recv_start(local[0], 0, id, TERN_ID, in + id * (LEN / 4), LEN / 4, 0,
					 NULL, &op),
			 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(atomic_load(&flag), 8);
	local_close();
}

/* -- Ids that are busy ------------------------------------------------------------------------- */

TEST(a_second_send_on_a_busy_id_waits_its_turn)
{
	begin(2);
	CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0);
	CHECK_IS(send_listed(ID, LEN / 2, TERN_RENDEZVOUS), 0);
	CHECK_IS(recv_listed(ID, in, LEN, 0), 0);
	settle();
	SEND_IS(ID, TERN_COMPLETE); /* the first, */
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	SEND_IS(ID, TERN_IN_USE); /* and now the second */
	RECV_IS(ID, TERN_COMPLETE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_RTS);
	CHECK_IS(recv_listed(ID, in2, LEN, 0), 0);
	settle();
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK(memcmp(in, out, LEN) == 0 && memcmp(in2, out, LEN / 2) == 0 && in2[LEN / 2] == 0xee);
	local_close();
}

TEST(a_second_receive_on_a_busy_id_waits_its_turn)
{
	begin(2);
	CHECK_IS(recv_listed(ID, in, LEN, 0), 0);
	CHECK_IS(recv_listed(ID, in2, LEN, 0), 0);
	CHECK_IS(send_listed(ID, SMALL, 0), 0);
	RECV_IS(ID, TERN_COMPLETE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_IN_USE);
	CHECK(memcmp(in, out, SMALL) == 0 && in2[0] == 0xee);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	CHECK_IS(send_listed(ID, LEN, 0), 0);
	settle();
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK(memcmp(in2, out, LEN) == 0);
	local_close();
}

TEST(questions_on_an_id_that_is_busy_wait_their_turn_whoever_asks)
{
	begin(3);
	CHECK_IS(tern_recv_parts(local[1], TERN_ANY, ID, TERN_ID, halves, 2, 0, NULL, NULL), 0);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LEN, TERN_RENDEZVOUS, NULL), 0);
	tern_poll(local[1]);
	CHECK_IS(tern_recv_poll(local[1], TERN_ANY, ID), TERN_IN_PROGRESS);
	CHECK_IS(tern_send_start(local[2], 1, ID, out, LEN / 2, TERN_RENDEZVOUS, NULL), 0);
	tern_poll(local[1]);
	CHECK_IS(msg_of(local[1])->arrivals.used, 1);
	CHECK_IS(tern_send_poll(local[2], 1, ID), TERN_IN_USE);
	settle();
	CHECK_IS(tern_recv_clear(local[1], TERN_ANY, ID), 0);
	CHECK_IS(tern_recv_poll(local[1], TERN_ANY, ID), TERN_RTS);
	CHECK_IS(tern_recv_poll(local[1], 2, ID), TERN_RTS);
	CHECK_IS(tern_recv_poll(local[1], 0, ID), TERN_EMPTY);
	CHECK_IS(tern_recv(local[1], TERN_ANY, ID, in2, LEN, NULL), 0);
	CHECK(memcmp(in, out, LEN) == 0 && memcmp(in2, out, LEN / 2) == 0);
	local_close();
}

TEST(a_send_that_may_be_refused_finds_its_id_busy)
{
	begin(3);
	CHECK_IS(send_listed(ID, LEN, TERN_REFUSE), 0);
	int rc = send_listed(ID, SMALL, TERN_REFUSE);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "0x7") && sentence_has(rc, "rank 1"));
	CHECK_IS(tern_send_start(local[0], 2, ID, out, SMALL, TERN_REFUSE, NULL),
		 0); /* another rank */
	CHECK_IS(send_listed(ID + 1, SMALL, TERN_REFUSE), 0);
	CHECK_IS(send_listed(ID + 1, SMALL, TERN_REFUSE), -EBUSY); /* complete, and not cleared */
	CHECK_IS(tern_send_clear(local[0], 1, ID + 1), 0);
	CHECK_IS(send_listed(ID + 1, SMALL, TERN_REFUSE), 0);
	const tern_id ids[] = { ID + 2, ID };
	const tern_part parts[] = { { out, 8, 1, 0 }, { out, 8, 1, 0 } };
	CHECK_IS(tern_send_each(local[0], 1, ids, parts, 2, TERN_REFUSE, NULL), -EBUSY);
	SEND_IS(ID + 2, TERN_EMPTY); /* all of them or none */
	CHECK_IS(msg_of(local[0])->sends.used, 3);
	local_close();
}

TEST(a_receive_that_may_be_refused_finds_its_id_busy)
{
	begin(3);
	CHECK_IS(recv_listed(ID, in, LEN, TERN_REFUSE), 0);
	int rc = recv_listed(ID, in2, LEN, TERN_REFUSE);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "0x7"));
	CHECK_IS(tern_recv_start(local[1], 2, ID, TERN_ID, in2, SMALL, TERN_REFUSE, NULL, NULL), 0);
	CHECK_IS(tern_recv_start(local[1], TERN_ANY, ID, TERN_ID, in2, SMALL, TERN_REFUSE, NULL,
				 NULL),
		 0);
	CHECK_IS(tern_recv_start(local[1], TERN_ANY, ID, TERN_ID, in2, SMALL, TERN_REFUSE, NULL,
				 NULL),
		 -EBUSY);
	CHECK_IS(send_listed(ID, SMALL, 0), 0);
	RECV_IS(ID, TERN_COMPLETE);
	CHECK_IS(recv_listed(ID, in2, LEN, TERN_REFUSE), -EBUSY);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK_IS(recv_listed(ID, in2, LEN, TERN_REFUSE), 0);
	local_close();
}

TEST(a_receive_under_a_mask_that_may_be_refused_finds_its_id_busy)
{
	begin(2);
	CHECK_IS(tern_recv_start(local[1], 0, ID, 0xff, in, LEN, TERN_REFUSE, NULL, NULL), 0);
	CHECK_IS(tern_recv_start(local[1], 0, ID, 0xff, in, LEN, TERN_REFUSE, NULL, NULL), -EBUSY);
	CHECK_IS(recv_listed(ID, in, LEN, TERN_REFUSE), -EBUSY);
	local_close();
}

/* -- Ready messages for a receive that is busy ------------------------------------------------- */

static void ready_while_busy(size_t len, unsigned flags)
{
	tern_op ready = TERN_OP;
	CHECK_IS(recv_slowly(ID, NULL), 0);
	CHECK_IS(send_listed(ID, LEN, TERN_RENDEZVOUS), 0);
	RECV_IS(ID, TERN_IN_PROGRESS);
	chance_fill(in2, len, 99);
	CHECK_IS(tern_send_start(local[0], 1, ID, in2, len, TERN_READY | flags, &ready), 0);
	RECV_IS(ID, TERN_IN_PROGRESS);
	CHECK_IS(tern_recv_wait(local[1], 0, ID), 0);
	CHECK(memcmp(in, out, LEN) == 0);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK_IS(tern_recv(local[1], 0, ID, in, LEN, NULL), 0);
	CHECK(chance_filled(in, len, 99));
	CHECK_IS(tern_op_wait(local[0], &ready), 0);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	CHECK(tern_poll(local[0]) >= 0);
	CHECK(tern_poll(local[1]) >= 0);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
}

TEST(ready_data_for_a_receive_in_progress_are_kept_for_the_next)
{
	begin(2);
	for (int sync = 0; sync < 2; sync++) {
		ready_while_busy(0, sync ? TERN_SYNC : 0);
		ready_while_busy(SMALL, sync ? TERN_SYNC : 0);
		ready_while_busy(1000, sync ? TERN_SYNC : 0);
		ready_while_busy(LEN, sync ? TERN_SYNC : 0);
	}
	local_close();
}

/* -- Taking back ------------------------------------------------------------------------------- */

TEST(a_send_that_nobody_knows_of_is_taken_back_here)
{
	begin(2);
	uint32_t most = msg_of(local[0])->peer[1].rts;
	for (uint32_t i = 0; i <= most; i++)
		CHECK_IS(tern_send_start(local[0], 1, i, out, SMALL, TERN_RENDEZVOUS, NULL), 0);
	SEND_IS(most, TERN_IN_USE);
	CHECK_IS(tern_send_cancel(local[0], 1, most), 0);
	SEND_IS(most, TERN_COMPLETE);
	CHECK_IS(tern_send_clear(local[0], 1, most), -ECANCELED);
	settle();
	RECV_IS(most, TERN_EMPTY);
	RECV_IS(most - 1, TERN_RTS);
	local_close();
}

static void take_back(size_t len, unsigned flags)
{
	struct msg *there = msg_of(local[1]);
	uint32_t cells = msg_of(local[0])->peer[1].cells, rts = msg_of(local[0])->peer[1].rts;
	CHECK_IS(send_listed(ID, len, flags), 0);
	tern_poll(local[1]);
	CHECK_IS(there->arrivals.used, 1);
	CHECK_IS(tern_send_cancel(local[0], 1, ID), 0);
	CHECK_IS(there->arrivals.used, 0);
	SEND_IS(ID, TERN_COMPLETE);
	int rc = tern_send_wait(local[0], 1, ID);
	CHECK_IS(rc, -ECANCELED);
	CHECK_IS(tern_send_clear(local[0], 1, ID), -ECANCELED);
	RECV_IS(ID, TERN_EMPTY);
	settle();
	CHECK_IS(msg_of(local[0])->peer[1].cells, cells);
	CHECK_IS(msg_of(local[0])->peer[1].rts, rts);
}

TEST(a_send_that_waits_at_its_receiver_is_taken_back_there)
{
	begin(2);
	take_back(LEN, 0);
	take_back(SMALL, TERN_RENDEZVOUS);
	take_back(SMALL, TERN_SYNC);
	take_back(1000, TERN_SYNC);
	take_back(LEN, TERN_SYNC);
	CHECK_IS(recv_listed(ID, in, LEN, 0), 0); /* and what comes next is received as ever */
	CHECK_IS(send_listed(ID, LEN, 0), 0);
	CHECK_IS(tern_recv_wait(local[1], 0, ID), 0);
	local_close();
}

TEST(a_send_that_is_being_received_or_is_complete_cannot_be_taken_back)
{
	begin(2);
	CHECK_IS(tern_send_cancel(local[0], 1, ID), -ENOENT);
	CHECK_IS(send_listed(ID, LEN, 0), 0);
	CHECK_IS(recv_slowly(ID, NULL), 0);
	SEND_IS(ID, TERN_IN_USE); /* the receive has not seen it */
	tern_poll(local[1]);
	SEND_IS(ID, TERN_IN_PROGRESS);
	int rc = tern_send_cancel(local[0], 1, ID);
	CHECK_IS(rc, -EALREADY);
	CHECK(sentence_has(rc, "0x7") && sentence_has(rc, "rank 1"));
	CHECK_IS(tern_recv_wait(local[1], 0, ID), 0);
	CHECK_IS(tern_send_wait(local[0], 1, ID), 0);
	CHECK_IS(tern_send_cancel(local[0], 1, ID), -EALREADY);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

/*
 * The receive is posted when the send is known there, and the cancel comes too late, or before it.
 */
static void cross(size_t len, unsigned flags, bool known, bool cancel_first)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	CHECK_IS(tern_send_start(local[0], 1, ID, out, len, flags, &so), 0);
	if (known)
		tern_poll(local[1]);
	if (!cancel_first)
		CHECK_IS(tern_recv_start(local[1], 0, ID, TERN_ID, in, LEN, 0, NULL, &ro), 0);
	CHECK_IS(tern_cancel(local[0], &so), cancel_first ? 0 : -EALREADY);
	if (cancel_first)
		CHECK_IS(tern_recv_start(local[1], 0, ID, TERN_ID, in, LEN, 0, NULL, &ro), 0);
	settle();
	CHECK_IS(so.pending, 0);
	CHECK_IS(so.error, cancel_first ? -ECANCELED : 0);
	CHECK_IS(ro.pending, cancel_first);
	if (cancel_first)
		CHECK_IS(tern_cancel(local[1], &ro), 0);
	CHECK_IS(msg_of(local[0])->sends.used, 0);
	CHECK_IS(msg_of(local[1])->recvs.used, 0);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
}

TEST(when_a_receive_and_a_cancel_cross_both_sides_agree_on_the_outcome)
{
	begin(2);
	for (int known = 0; known < 2; known++)
		for (int first = 0; first < 2; first++) {
			cross(LEN, 0, known, first);
			cross(SMALL, TERN_RENDEZVOUS, known, first);
			cross(SMALL, TERN_SYNC, known, first);
			cross(1000, TERN_SYNC, known, first);
		}
	local_close();
}

static int second_cancel;

static void cancel_again(tern *t, void *arg)
{
	(void)arg;
	second_cancel = tern_send_cancel(t, 1, ID);
}

TEST(a_send_that_is_taken_back_twice_at_once_is_taken_back)
{
	begin(2);
	CHECK_IS(send_listed(ID, LEN, 0), 0);
	settle();
	second_cancel = 1;
	CHECK_IS(tern_defer(local[0], cancel_again, NULL),
		 0); /* runs while the other waits for its answer */
	CHECK_IS(tern_send_cancel(local[0], 1, ID), 0);
	settle();
	CHECK(second_cancel == 0 || second_cancel == -EALREADY);
	CHECK_IS(tern_send_clear(local[0], 1, ID), -ECANCELED);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
	local_close();
}

TEST(a_receive_is_taken_back_only_before_it_is_matched)
{
	tern_envelope env = { .len = 77 };
	begin(2);
	CHECK_IS(tern_recv_cancel(local[1], 0, ID), -ENOENT);
	CHECK_IS(tern_recv_start(local[1], 0, ID, TERN_ID, in2, LEN, 0, &env, NULL), 0);
	CHECK_IS(tern_recv_cancel(local[1], 0, ID), 0);
	CHECK_IS(env.error, -ECANCELED);
	RECV_IS(ID, TERN_COMPLETE);
	CHECK_IS(tern_recv_wait(local[1], 0, ID), -ECANCELED);
	CHECK_IS(tern_recv_cancel(local[1], 0, ID), -EALREADY);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), -ECANCELED);
	CHECK_IS(send_listed(ID, LEN, 0), 0);
	RECV_IS(ID, TERN_RTS); /* it did not take it */
	CHECK_IS(tern_recv_cancel(local[1], 0, ID), -ENOENT);
	CHECK_IS(recv_slowly(ID, NULL), 0);
	RECV_IS(ID, TERN_IN_PROGRESS);
	int rc = tern_recv_cancel(local[1], 0, ID);
	CHECK_IS(rc, -EALREADY);
	CHECK(sentence_has(rc, "0x7"));
	CHECK_IS(tern_recv_wait(local[1], 0, ID), 0);
	CHECK(memcmp(in, out, LEN) == 0 && in2[0] == 0xee);
	local_close();
}

TEST(wildcard_receives_are_taken_back_too)
{
	tern_op any = TERN_OP, masked = TERN_OP;
	begin(2);
	CHECK_IS(tern_recv_start(local[1], TERN_ANY, ID, TERN_ID, in, LEN, 0, NULL, &any), 0);
	CHECK_IS(tern_recv_start(local[1], TERN_ANY, 0, 0, in, LEN, 0, NULL, &masked), 0);
	CHECK_IS(tern_cancel(local[1], &any), 0);
	CHECK_IS(tern_cancel(local[1], &masked), 0);
	CHECK_IS(tern_op_wait(local[1], &any), -ECANCELED);
	CHECK_IS(tern_op_wait(local[1], &masked), -ECANCELED);
	CHECK_IS(tern_cancel(local[1], &any), -EALREADY);
	CHECK_IS(tern_recv_start(local[1], TERN_ANY, 0, 0xf0, in, LEN, 0, NULL, NULL), 0);
	CHECK_IS(tern_recv_cancel(local[1], TERN_ANY, 0), 0);
	CHECK_IS(tern_recv_clear(local[1], TERN_ANY, 0), -ECANCELED);
	CHECK_IS(send_listed(ID, SMALL, 0), 0);
	CHECK_IS(tern_probe_wait(local[1], 0, ID, TERN_ID, NULL), 1);
	local_close();
}

TEST(cancel_by_handle_takes_back_every_operation_that_can_be)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	begin(2);
	for (tern_id id = 0; id < 4; id++)
		CHECK_IS(tern_send_start(local[0], 1, id, out, LEN, 0, &so), 0);
	CHECK_IS(tern_recv_start(local[1], 0, 2, TERN_ID, in2, LEN, 0, NULL, &ro), 0);
	settle();
	CHECK_IS(so.pending, 3);
	CHECK_IS(tern_recv_parts(local[1], 0, 0, TERN_ID, halves, 2, 0, NULL, &ro), 0);
	tern_poll(local[0]);
	CHECK_IS(tern_recv_start(local[1], 0, 9, TERN_ID, in2, LEN, 0, NULL, &ro), 0);
	CHECK_IS(tern_cancel(local[1], &ro), -EALREADY); /* 0 flows, 9 is taken back */
	CHECK_IS(ro.pending, 1);
	CHECK_IS(tern_cancel(local[0], &so), -EALREADY);
	CHECK_IS(tern_op_wait(local[0], &so), -ECANCELED);
	CHECK_IS(tern_op_wait(local[1], &ro), -ECANCELED);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
	CHECK(memcmp(in, out, LEN) == 0);
	CHECK_IS(tern_cancel(local[0], &so), -EALREADY); /* there is nothing left */
	local_close();
}

TEST(taking_back_needs_a_handle_and_leaves_what_has_none)
{
	static uint64_t word;
	local_open(2);
	CHECK_IS(tern_recv_start(local[1], 0, 5, TERN_ID, &word, sizeof word, 0, NULL, NULL), 0);
	CHECK_IS(tern_cancel(local[1], NULL), -EINVAL);
	CHECK(sentence_has(-EINVAL, "handle"));
	CHECK_IS(tern_recv_poll(local[1], 0, 5), TERN_IN_USE);
	local_close();
}
