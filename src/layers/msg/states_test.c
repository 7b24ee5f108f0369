/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a send and of a receive, and what leads from one to the next. */
#include "lib/msg_entries.h"

/* -- Sends ----------------------------------------------------------------------------------- */

TEST(a_send_that_waits_for_its_receive_is_in_use_then_in_progress_then_complete)
{
	begin(2);
	SEND_IS(TERN_STATE_COMPLETE); /* nothing was started */
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	SEND_IS(TERN_STATE_IN_USE);
	local_settle_transfers();
	SEND_IS(TERN_STATE_IN_USE);
	CHECK_IS(recv_slowly(ID), 0);
	SEND_IS(TERN_STATE_IN_PROGRESS);
	SEND_IS(TERN_STATE_IN_PROGRESS);
	local_settle_transfers();
	SEND_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

static void drop(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

TEST(a_send_whose_ring_is_full_gets_nowhere_until_it_has_room)
{
	local_polled();
	begin(2);
	local_on(0, drop);
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(recv_slowly(ID), 0);
	tern_hold(local[0]);
	while (tern_request(local[0], 1, 0) == 0)
		;
	tern_release(local[0]);
	SEND_IS(TERN_STATE_IN_PROGRESS);
	CHECK_IS(flow_progress(msg_of(local[0])), 0);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(flow_progress(msg_of(local[0])), 1);
	local_settle_transfers();
	SEND_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	local_close();
}

TEST(a_small_send_is_complete_at_once)
{
	begin(2);
	CHECK_IS(send_one(ID, SMALL, TERN_SEND_AUTO), 0);
	CHECK_IS(tern_op_state(local[0], &so), TERN_STATE_COMPLETE);
	CHECK_IS(send_one(ID + 1, SMALL, TERN_SEND_READY), 0);
	CHECK_IS(tern_op_state(local[0], &so), TERN_STATE_COMPLETE);
	local_close();
}

TEST(a_synchronous_send_is_in_use_until_a_receive_has_taken_it)
{
	begin(2);
	CHECK_IS(send_one(ID, SMALL, TERN_SEND_SYNC), 0);
	local_settle_transfers();
	SEND_IS(TERN_STATE_IN_USE);
	CHECK_IS(recv_one(ID, in, SMALL), 0);
	SEND_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	local_close();
}

TEST(an_id_can_be_used_again_when_its_operations_are_complete)
{
	begin(2);
	for (unsigned i = 0; i < 200; i++) {
		size_t len = i % 2 ? SMALL : LEN;
		chance_fill(out, len, i);
		CHECK_IS(send_one(ID, len, 0), 0);
		CHECK_IS(recv_one(ID, in, LEN), 0);
		local_settle_transfers();
		SEND_IS(TERN_STATE_COMPLETE);
		RECV_IS(TERN_STATE_COMPLETE);
		CHECK(chance_filled(in, len, i));
	}
	CHECK(msg_of(local[0])->sends.made <= POOL_BATCH);
	CHECK_IS(msg_of(local[1])->recvs.made, POOL_BATCH);
	local_close();
}

TEST(a_handle_keeps_the_result_until_it_is_waited_for)
{
	begin(2);
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	CHECK_IS(recv_one(ID, in, LEN - 1), 0);
	local_settle_transfers();
	SEND_IS(TERN_STATE_COMPLETE);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_wait(local[0], &so), -EMSGSIZE);
	CHECK_IS(tern_op_wait(local[1], &ro), -EMSGSIZE);
	local_close();
}

/* -- Receives ---------------------------------------------------------------------------------- */

TEST(a_receive_that_is_posted_first_is_in_use_then_in_progress_then_complete)
{
	begin(2);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK_IS(recv_slowly(ID), 0);
	RECV_IS(TERN_STATE_IN_USE);
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	RECV_IS(TERN_STATE_IN_PROGRESS);
	RECV_IS(TERN_STATE_IN_PROGRESS);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

TEST(a_probe_tells_that_a_sender_waits_until_the_receive_comes)
{
	begin(2);
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	CHECK_IS(arrived(0, ID), 1);
	CHECK_IS(arrived(TERN_RANK_ANY, ID), 1);
	CHECK_IS(arrived(0, ID + 1), 0);
	CHECK_IS(arrived(1, ID), 0); /* it is not from there */
	CHECK_IS(recv_slowly(ID), 0);
	CHECK_IS(arrived(0, ID), 0);
	RECV_IS(TERN_STATE_IN_PROGRESS);
	local_settle_transfers();
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

TEST(a_probe_tells_of_a_small_message_too)
{
	begin(2);
	CHECK_IS(send_one(ID, SMALL, 0), 0);
	CHECK_IS(arrived(0, ID), 1);
	CHECK_IS(arrived(TERN_RANK_ANY, ID), 1);
	CHECK_IS(recv_one(ID, in, LEN), 0);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK_IS(arrived(0, ID), 0);
	local_close();
}

TEST(a_receive_of_a_ready_message_goes_from_in_use_to_complete)
{
	begin(2);
	CHECK_IS(recv_one(ID, in, SMALL), 0);
	RECV_IS(TERN_STATE_IN_USE);
	CHECK_IS(send_one(ID, SMALL, TERN_SEND_READY), 0);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK(memcmp(in, out, SMALL) == 0);
	local_close();
}

TEST(the_question_and_the_receive_may_cross)
{
	begin(2);
	for (int order = 0; order < 3; order++) {
		memset(in, 0xee, LEN);
		if (order == 0)
			CHECK_IS(recv_one(ID, in, LEN), 0);
		CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0); /* lies in the ring */
		if (order == 2)
			local_settle_transfers();
		if (order)
			CHECK_IS(recv_one(ID, in, LEN), 0);
		CHECK_IS(tern_op_wait(local[0], &so), 0);
		CHECK_IS(tern_op_wait(local[1], &ro), 0);
		CHECK(memcmp(in, out, LEN) == 0);
	}
	local_close();
}

static enum tern_state seen_send, seen_recv;

static void look(tern *t, const tern_msg *m)
{
	(void)m;
	seen_send = tern_op_state(t, &so);
	seen_recv = tern_op_state(t, &ro);
}

TEST(a_state_can_be_read_in_a_handler)
{
	begin(2);
	local_on(1, look);
	CHECK_IS(tern_send_start(local[1], 0, ID, out, LEN, 0, &so), 0);
	CHECK_IS(recv_slowly(ID), 0);
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LEN, TERN_SEND_RENDEZVOUS, &so), 0);
	tern_poll(local[1]);
	CHECK_IS(seen_send, TERN_STATE_IN_USE);
	CHECK_IS(seen_recv, TERN_STATE_IN_USE); /* it lies behind the message being handled */
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	tern_poll(local[1]);
	CHECK_IS(seen_recv, TERN_STATE_IN_PROGRESS);
	local_close();
}

/* -- Handles ----------------------------------------------------------------------------------- */

TEST(an_operation_that_is_complete_leaves_nothing)
{
	begin(2);
	CHECK_IS(send_one(ID, LEN, 0), 0);
	CHECK_IS(so.pending, 1);
	CHECK_IS(recv_one(ID, in, LEN), 0);
	CHECK_IS(ro.pending, 1);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK_IS(msg_of(local[0])->sends.used, 0);
	CHECK_IS(msg_of(local[1])->recvs.used, 0);
	local_close();
}

TEST(the_state_of_several_is_that_of_the_one_that_is_least_far)
{
	begin(2);
	CHECK_IS(recv_slowly(ID), 0);
	CHECK_IS(recv_one(ID + 1, in2, LEN), 0);
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	RECV_IS(TERN_STATE_IN_USE); /* the one flows, the other waits */
	CHECK_IS(send_one(ID + 1, SMALL, 0), 0);
	RECV_IS(TERN_STATE_IN_PROGRESS);
	local_settle_transfers();
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
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
		CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 0, .id = id },
					 in + id * (LEN / 4), LEN / 4, NULL, &op),
			 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(atomic_load(&flag), 8);
	local_close();
}

/* -- Ids that are busy ------------------------------------------------------------------------- */

TEST(a_second_send_on_a_busy_id_waits_for_the_first)
{
	tern_op second = TERN_OP;
	begin(2);
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LEN / 2, TERN_SEND_RENDEZVOUS, &second), 0);
	CHECK_IS(recv_one(ID, in, LEN), 0);
	local_settle_transfers();
	SEND_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_state(local[0], &second), TERN_STATE_IN_USE);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK_IS(arrived(0, ID), 1);
	CHECK_IS(recv_one(ID, in2, LEN), 0);
	local_settle_transfers();
	CHECK_IS(tern_op_state(local[0], &second), TERN_STATE_COMPLETE);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK(memcmp(in, out, LEN) == 0 && memcmp(in2, out, LEN / 2) == 0 && in2[LEN / 2] == 0xee);
	local_close();
}

TEST(a_second_receive_on_a_busy_id_waits_for_the_first)
{
	tern_op second = TERN_OP;
	begin(2);
	CHECK_IS(recv_one(ID, in, LEN), 0);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in2, LEN, NULL,
				 &second),
		 0);
	CHECK_IS(send_one(ID, SMALL, 0), 0);
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK_IS(tern_op_state(local[1], &second), TERN_STATE_IN_USE);
	CHECK(memcmp(in, out, SMALL) == 0 && in2[0] == 0xee);
	CHECK_IS(send_one(ID, LEN, 0), 0);
	local_settle_transfers();
	CHECK_IS(tern_op_state(local[1], &second), TERN_STATE_COMPLETE);
	CHECK(memcmp(in2, out, LEN) == 0);
	local_close();
}

TEST(questions_on_an_id_that_is_busy_wait_whoever_asks)
{
	tern_op third = TERN_OP;
	begin(3);
	CHECK_IS(tern_recv_parts_start(local[1], &(tern_match){ .rank = TERN_RANK_ANY, .id = ID },
				       halves, 2, NULL, &ro),
		 0);
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	RECV_IS(TERN_STATE_IN_PROGRESS);
	CHECK_IS(tern_send_start(local[2], 1, ID, out, LEN / 2, TERN_SEND_RENDEZVOUS, &third), 0);
	tern_poll(local[1]);
	CHECK_IS(msg_of(local[1])->arrivals.used, 1);
	CHECK_IS(state_of(local[2], &third), TERN_STATE_IN_USE);
	local_settle_transfers();
	RECV_IS(TERN_STATE_COMPLETE);
	CHECK_IS(arrived(TERN_RANK_ANY, ID), 1);
	CHECK_IS(arrived(2, ID), 1);
	CHECK_IS(arrived(0, ID), 0);
	CHECK_IS(tern_recv(local[1], TERN_RANK_ANY, ID, in2, LEN, NULL), 0);
	CHECK(memcmp(in, out, LEN) == 0 && memcmp(in2, out, LEN / 2) == 0);
	local_close();
}

/* -- Ready messages for a receive that is busy ------------------------------------------------- */

static void ready_while_busy(size_t len, unsigned flags)
{
	tern_op ready = TERN_OP;
	CHECK_IS(recv_slowly(ID), 0);
	CHECK_IS(send_one(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	RECV_IS(TERN_STATE_IN_PROGRESS);
	chance_fill(in2, len, 99);
	CHECK_IS(tern_send_start(local[0], 1, ID, in2, len, TERN_SEND_READY | flags, &ready), 0);
	RECV_IS(TERN_STATE_IN_PROGRESS);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(memcmp(in, out, LEN) == 0);
	CHECK_IS(tern_recv(local[1], 0, ID, in, LEN, NULL), 0);
	CHECK(chance_filled(in, len, 99));
	CHECK_IS(tern_op_wait(local[0], &ready), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK(tern_poll(local[0]) >= 0);
	CHECK(tern_poll(local[1]) >= 0);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
}

TEST(ready_data_for_a_receive_in_progress_are_kept_for_the_next)
{
	begin(2);
	for (int sync = 0; sync < 2; sync++) {
		ready_while_busy(0, sync ? TERN_SEND_SYNC : 0);
		ready_while_busy(SMALL, sync ? TERN_SEND_SYNC : 0);
		ready_while_busy(1000, sync ? TERN_SEND_SYNC : 0);
		ready_while_busy(LEN, sync ? TERN_SEND_SYNC : 0);
	}
	local_close();
}
