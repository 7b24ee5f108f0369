/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking back sends and receives: until when it is possible, and that both sides agree on it. */
#include "lib/msg_entries.h"

TEST(a_send_that_nobody_knows_of_is_taken_back_here)
{
	tern_op others = TERN_OP;
	begin(2);
	uint32_t most = msg_of(local[0])->peer[1].rts;
	for (uint32_t i = 0; i <= most; i++)
		CHECK_IS(tern_send_start(local[0], 1, i, out, SMALL, TERN_SEND_RENDEZVOUS,
					 i < most ? &others : &so),
			 0);
	SEND_IS(TERN_STATE_IN_USE);
	CHECK_IS(tern_op_cancel(local[0], &so), 0);
	SEND_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_wait(local[0], &so), -ECANCELED);
	local_settle_transfers();
	CHECK_IS(arrived(0, most), 0);
	CHECK_IS(arrived(0, most - 1), 1);
	local_close();
}

static void take_back(size_t len, unsigned flags)
{
	struct msg *there = msg_of(local[1]);
	uint32_t cells = msg_of(local[0])->peer[1].cells, rts = msg_of(local[0])->peer[1].rts;
	CHECK_IS(send_one(ID, len, flags), 0);
	tern_poll(local[1]);
	CHECK_IS(there->arrivals.used, 1);
	CHECK_IS(tern_op_cancel(local[0], &so), 0);
	CHECK_IS(there->arrivals.used, 0);
	SEND_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_wait(local[0], &so), -ECANCELED);
	CHECK_IS(arrived(0, ID), 0);
	local_settle_transfers();
	CHECK_IS(msg_of(local[0])->peer[1].cells, cells);
	CHECK_IS(msg_of(local[0])->peer[1].rts, rts);
}

TEST(a_send_that_waits_at_its_receiver_is_taken_back_there)
{
	begin(2);
	take_back(LEN, 0);
	take_back(SMALL, TERN_SEND_RENDEZVOUS);
	take_back(SMALL, TERN_SEND_SYNC);
	take_back(1000, TERN_SEND_SYNC);
	take_back(LEN, TERN_SEND_SYNC);
	CHECK_IS(recv_one(ID, in, LEN), 0); /* and what comes next is received as ever */
	CHECK_IS(send_one(ID, LEN, 0), 0);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	local_close();
}

TEST(a_send_that_is_being_received_or_is_complete_cannot_be_taken_back)
{
	begin(2);
	CHECK_IS(tern_op_cancel(local[0], &so), -EALREADY);
	CHECK_IS(send_one(ID, LEN, 0), 0);
	CHECK_IS(recv_slowly(ID), 0);
	SEND_IS(TERN_STATE_IN_USE); /* the receive has not seen it */
	tern_poll(local[1]);
	SEND_IS(TERN_STATE_IN_PROGRESS);
	int rc = tern_op_cancel(local[0], &so);
	CHECK_IS(rc, -EALREADY);
	CHECK(sentence_has(rc, "0x7") && sentence_has(rc, "rank 1"));
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK_IS(tern_op_cancel(local[0], &so), -EALREADY);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

/*
 * The receive is posted when the send is known there, and the cancel comes too late, or before it.
 */
static void cross(size_t len, unsigned flags, bool known, bool cancel_first)
{
	so = ro = (tern_op)TERN_OP;
	CHECK_IS(tern_send_start(local[0], 1, ID, out, len, flags, &so), 0);
	if (known)
		tern_poll(local[1]);
	if (!cancel_first)
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, LEN,
					 NULL, &ro),
			 0);
	CHECK_IS(tern_op_cancel(local[0], &so), cancel_first ? 0 : -EALREADY);
	if (cancel_first)
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, LEN,
					 NULL, &ro),
			 0);
	local_settle_transfers();
	CHECK_IS(so.pending, 0);
	CHECK_IS(so.error, cancel_first ? -ECANCELED : 0);
	CHECK_IS(ro.pending, cancel_first);
	if (cancel_first)
		CHECK_IS(tern_op_cancel(local[1], &ro), 0);
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
			cross(SMALL, TERN_SEND_RENDEZVOUS, known, first);
			cross(SMALL, TERN_SEND_SYNC, known, first);
			cross(1000, TERN_SEND_SYNC, known, first);
		}
	local_close();
}

static int second_cancel;

static void cancel_again(tern *t, void *arg)
{
	(void)arg;
	second_cancel = tern_op_cancel(t, &so);
}

TEST(a_send_that_is_taken_back_twice_at_once_is_taken_back)
{
	begin(2);
	CHECK_IS(send_one(ID, LEN, 0), 0);
	local_settle_transfers();
	second_cancel = 1;
	CHECK_IS(tern_defer(local[0], cancel_again, NULL),
		 0); /* runs while the other waits for its answer */
	CHECK_IS(tern_op_cancel(local[0], &so), 0);
	local_settle_transfers();
	CHECK(second_cancel == 0 || second_cancel == -EALREADY);
	CHECK_IS(tern_op_wait(local[0], &so), -ECANCELED);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
	local_close();
}

TEST(a_receive_is_taken_back_only_before_it_is_matched)
{
	tern_envelope env = { .len = 77 };
	begin(2);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in2, LEN, &env,
				 &ro),
		 0);
	CHECK_IS(tern_op_cancel(local[1], &ro), 0);
	CHECK_IS(env.error, -ECANCELED);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_cancel(local[1], &ro), -EALREADY);
	CHECK_IS(tern_op_wait(local[1], &ro), -ECANCELED);
	CHECK_IS(send_one(ID, LEN, 0), 0);
	CHECK_IS(arrived(0, ID), 1); /* it did not take it */
	CHECK_IS(recv_slowly(ID), 0);
	RECV_IS(TERN_STATE_IN_PROGRESS);
	int rc = tern_op_cancel(local[1], &ro);
	CHECK_IS(rc, -EALREADY);
	CHECK(sentence_has(rc, "0x7"));
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(memcmp(in, out, LEN) == 0 && in2[0] == 0xee);
	local_close();
}

TEST(wildcard_receives_are_taken_back_too)
{
	tern_op any = TERN_OP, masked = TERN_OP;
	begin(2);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = TERN_RANK_ANY, .id = ID }, in,
				 LEN, NULL, &any),
		 0);
	CHECK_IS(tern_recv_start(local[1],
				 &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY }, in,
				 LEN, NULL, &masked),
		 0);
	CHECK_IS(tern_op_cancel(local[1], &any), 0);
	CHECK_IS(tern_op_cancel(local[1], &masked), 0);
	CHECK_IS(tern_op_wait(local[1], &any), -ECANCELED);
	CHECK_IS(tern_op_wait(local[1], &masked), -ECANCELED);
	CHECK_IS(tern_op_cancel(local[1], &any), -EALREADY);
	CHECK_IS(send_one(ID, SMALL, 0), 0);
	CHECK_IS(tern_probe(local[1],
			    &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 0, .id = ID }, NULL),
		 1);
	local_close();
}

TEST(cancel_by_handle_takes_back_every_operation_that_can_be)
{
	begin(2);
	for (tern_id id = 0; id < 4; id++)
		CHECK_IS(tern_send_start(local[0], 1, id, out, LEN, 0, &so), 0);
	CHECK_IS(
		tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 2 }, in2, LEN, NULL, &ro),
		0);
	local_settle_transfers();
	CHECK_IS(so.pending, 3);
	CHECK_IS(tern_recv_parts_start(local[1], &(tern_match){ .rank = 0, .id = 0 }, halves, 2,
				       NULL, &ro),
		 0);
	tern_poll(local[0]);
	CHECK_IS(
		tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 9 }, in2, LEN, NULL, &ro),
		0);
	CHECK_IS(tern_op_cancel(local[1], &ro), -EALREADY); /* 0 flows, 9 is taken back */
	CHECK_IS(ro.pending, 1);
	CHECK_IS(tern_op_cancel(local[0], &so), -EALREADY);
	CHECK_IS(tern_op_wait(local[0], &so), -ECANCELED);
	CHECK_IS(tern_op_wait(local[1], &ro), -ECANCELED);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
	CHECK(memcmp(in, out, LEN) == 0);
	CHECK_IS(tern_op_cancel(local[0], &so), -EALREADY); /* there is nothing left */
	local_close();
}

TEST(taking_back_needs_a_handle)
{
	local_open(2);
	CHECK_IS(tern_op_cancel(local[1], NULL), -EINVAL);
	CHECK(sentence_has(-EINVAL, "handle"));
	local_close();
}
