/* SPDX-License-Identifier: BSD-3-Clause */
/* The two tables: every state that an entry can be in, and what leads from one to the next. */
#include "lib/msg_entries.h"

/* -- Sends ----------------------------------------------------------------------------------- */

TEST(a_send_that_waits_for_its_receive_is_in_use_then_in_progress_then_complete)
{
	begin(2);
	SEND_IS(ID, TERN_STATE_EMPTY);
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	SEND_IS(ID, TERN_STATE_IN_USE);
	local_settle_transfers();
	SEND_IS(ID, TERN_STATE_IN_USE);
	CHECK_IS(recv_slowly(ID, NULL), 0);
	SEND_IS(ID, TERN_STATE_IN_PROGRESS);
	SEND_IS(ID, TERN_STATE_IN_PROGRESS);
	local_settle_transfers();
	SEND_IS(ID, TERN_STATE_COMPLETE);
	SEND_IS(ID, TERN_STATE_COMPLETE); /* until it is cleared */
	CHECK_IS(tern_send_wait(local[0], 1, ID), 0);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	SEND_IS(ID, TERN_STATE_EMPTY);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

TEST(a_small_send_is_complete_at_once)
{
	begin(2);
	CHECK_IS(send_listed(ID, SMALL, TERN_SEND_AUTO), 0);
	CHECK_IS(tern_send_wait(local[0], 1, ID), 0);
	SEND_IS(ID, TERN_STATE_COMPLETE);
	CHECK_IS(send_listed(ID + 1, SMALL, TERN_SEND_READY), 0);
	SEND_IS(ID + 1, TERN_STATE_COMPLETE);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	SEND_IS(ID, TERN_STATE_EMPTY);
	SEND_IS(ID + 1, TERN_STATE_COMPLETE);
	local_close();
}

TEST(a_synchronous_send_is_in_use_until_a_receive_has_taken_it)
{
	begin(2);
	CHECK_IS(send_listed(ID, SMALL, TERN_SEND_SYNC), 0);
	local_settle_transfers();
	SEND_IS(ID, TERN_STATE_IN_USE);
	CHECK_IS(tern_send_clear(local[0], 1, ID), -EBUSY);
	CHECK_IS(recv_listed(ID, in, SMALL, 0), 0);
	SEND_IS(ID, TERN_STATE_COMPLETE);
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
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	rc = tern_send_clear(local[0], 1, ID);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "0x7") && sentence_has(rc, "rank 1"));
	CHECK_IS(recv_slowly(ID, NULL), 0);
	rc = tern_recv_clear(local[1], 0, ID);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "0x7"));
	local_settle_transfers();
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
		CHECK_IS(send_listed(ID, len, TERN_SEND_REFUSE), 0);
		CHECK_IS(recv_listed(ID, in, LEN, TERN_SEND_REFUSE), 0);
		local_settle_transfers();
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
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	CHECK_IS(recv_listed(ID, in, LEN - 1, 0), 0);
	local_settle_transfers();
	SEND_IS(ID, TERN_STATE_COMPLETE);
	RECV_IS(ID, TERN_STATE_COMPLETE);
	CHECK_IS(tern_send_wait(local[0], 1, ID), -EMSGSIZE);
	CHECK_IS(tern_recv_wait(local[1], 0, ID), -EMSGSIZE);
	CHECK_IS(tern_send_wait(local[0], 1, ID), -EMSGSIZE);
	CHECK_IS(tern_send_clear(local[0], 1, ID), -EMSGSIZE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), -EMSGSIZE);
	SEND_IS(ID, TERN_STATE_EMPTY);
	RECV_IS(ID, TERN_STATE_EMPTY);
	local_close();
}

/* -- Receives ---------------------------------------------------------------------------------- */

TEST(a_receive_that_is_posted_first_is_in_use_then_in_progress_then_complete)
{
	begin(2);
	RECV_IS(ID, TERN_STATE_EMPTY);
	CHECK_IS(recv_slowly(ID, NULL), 0);
	RECV_IS(ID, TERN_STATE_IN_USE);
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	RECV_IS(ID, TERN_STATE_IN_PROGRESS);
	RECV_IS(ID, TERN_STATE_IN_PROGRESS);
	CHECK_IS(tern_recv_wait(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_STATE_COMPLETE);
	CHECK(memcmp(in, out, LEN) == 0);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_STATE_EMPTY);
	local_close();
}

TEST(an_entry_where_a_sender_waits_is_rts_until_the_receive_comes)
{
	begin(2);
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	RECV_IS(ID, TERN_STATE_RTS);
	CHECK_IS(tern_recv_poll(local[1], TERN_RANK_ANY, ID), TERN_STATE_RTS);
	RECV_IS(ID + 1, TERN_STATE_EMPTY);
	CHECK_IS(tern_recv_poll(local[1], 1, ID), TERN_STATE_EMPTY); /* it is not from there */
	CHECK_IS(tern_recv_clear(local[1], 0, ID), -ENOENT);
	CHECK_IS(recv_slowly(ID, NULL), 0);
	RECV_IS(ID, TERN_STATE_IN_PROGRESS);
	local_settle_transfers();
	RECV_IS(ID, TERN_STATE_COMPLETE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK(memcmp(in, out, LEN) == 0);
	local_close();
}

TEST(an_entry_for_which_a_small_message_is_here_is_rts_too)
{
	begin(2);
	CHECK_IS(send_listed(ID, SMALL, 0), 0);
	RECV_IS(ID, TERN_STATE_RTS);
	CHECK_IS(tern_recv_poll(local[1], TERN_RANK_ANY, ID), TERN_STATE_RTS);
	CHECK_IS(recv_listed(ID, in, LEN, 0), 0);
	RECV_IS(ID, TERN_STATE_COMPLETE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_STATE_EMPTY);
	local_close();
}

TEST(a_receive_of_a_ready_message_goes_from_in_use_to_complete)
{
	begin(2);
	CHECK_IS(recv_listed(ID, in, SMALL, 0), 0);
	RECV_IS(ID, TERN_STATE_IN_USE);
	CHECK_IS(send_listed(ID, SMALL, TERN_SEND_READY), 0);
	RECV_IS(ID, TERN_STATE_COMPLETE);
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
		CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0); /* lies in the ring */
		if (order == 2)
			local_settle_transfers();
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
	CHECK_IS(tern_send_start(local[1], 0, ID, out, LEN, TERN_SEND_TABLE, NULL), 0);
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	tern_poll(local[1]);
	CHECK_IS(seen_send, TERN_STATE_IN_USE);
	CHECK_IS(seen_recv,
		 TERN_STATE_EMPTY); /* it lies behind the message that is being handled */
	CHECK_IS(tern_request(local[0], 1, 1), 0);
	tern_poll(local[1]);
	CHECK_IS(seen_recv, TERN_STATE_RTS);
	local_close();
}

/* -- With a handle or without ------------------------------------------------------------------ */

TEST(an_operation_with_a_handle_leaves_nothing_in_the_table)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	begin(2);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LEN, 0, &so), 0);
	CHECK_IS(so.pending, 1);
	CHECK_IS(
		tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, in, LEN, NULL, &ro),
		0);
	CHECK_IS(ro.pending, 1);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	SEND_IS(ID, TERN_STATE_EMPTY);
	RECV_IS(ID, TERN_STATE_EMPTY);
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
	REQUIRE(tern_send_poll(local[0], 1, ID) == TERN_STATE_COMPLETE);
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
		CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 0, .id = id },
					 in + id * (LEN / 4), LEN / 4, NULL, &op),
			 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(atomic_load(&flag), 8);
	local_close();
}

/* -- Ids that are busy ------------------------------------------------------------------------- */

TEST(a_second_send_on_a_busy_id_waits_its_turn)
{
	begin(2);
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	CHECK_IS(send_listed(ID, LEN / 2, TERN_SEND_RENDEZVOUS), 0);
	CHECK_IS(recv_listed(ID, in, LEN, 0), 0);
	local_settle_transfers();
	SEND_IS(ID, TERN_STATE_COMPLETE); /* the first, */
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	SEND_IS(ID, TERN_STATE_IN_USE); /* and now the second */
	RECV_IS(ID, TERN_STATE_COMPLETE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_STATE_RTS);
	CHECK_IS(recv_listed(ID, in2, LEN, 0), 0);
	local_settle_transfers();
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
	RECV_IS(ID, TERN_STATE_COMPLETE);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	RECV_IS(ID, TERN_STATE_IN_USE);
	CHECK(memcmp(in, out, SMALL) == 0 && in2[0] == 0xee);
	CHECK_IS(tern_send_clear(local[0], 1, ID), 0);
	CHECK_IS(send_listed(ID, LEN, 0), 0);
	local_settle_transfers();
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK(memcmp(in2, out, LEN) == 0);
	local_close();
}

TEST(questions_on_an_id_that_is_busy_wait_their_turn_whoever_asks)
{
	begin(3);
	CHECK_IS(tern_recv_parts_start(
			 local[1],
			 &(tern_match){ .rank = TERN_RANK_ANY, .flags = TERN_SEND_TABLE, .id = ID },
			 halves, 2, NULL, NULL),
		 0);
	CHECK_IS(tern_send_start(local[0], 1, ID, out, LEN, TERN_SEND_RENDEZVOUS | TERN_SEND_TABLE,
				 NULL),
		 0);
	tern_poll(local[1]);
	CHECK_IS(tern_recv_poll(local[1], TERN_RANK_ANY, ID), TERN_STATE_IN_PROGRESS);
	CHECK_IS(tern_send_start(local[2], 1, ID, out, LEN / 2,
				 TERN_SEND_RENDEZVOUS | TERN_SEND_TABLE, NULL),
		 0);
	tern_poll(local[1]);
	CHECK_IS(msg_of(local[1])->arrivals.used, 1);
	CHECK_IS(tern_send_poll(local[2], 1, ID), TERN_STATE_IN_USE);
	local_settle_transfers();
	CHECK_IS(tern_recv_clear(local[1], TERN_RANK_ANY, ID), 0);
	CHECK_IS(tern_recv_poll(local[1], TERN_RANK_ANY, ID), TERN_STATE_RTS);
	CHECK_IS(tern_recv_poll(local[1], 2, ID), TERN_STATE_RTS);
	CHECK_IS(tern_recv_poll(local[1], 0, ID), TERN_STATE_EMPTY);
	CHECK_IS(tern_recv(local[1], TERN_RANK_ANY, ID, in2, LEN, NULL), 0);
	CHECK(memcmp(in, out, LEN) == 0 && memcmp(in2, out, LEN / 2) == 0);
	local_close();
}

TEST(a_send_that_may_be_refused_finds_its_id_busy)
{
	begin(3);
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_REFUSE), 0);
	int rc = send_listed(ID, SMALL, TERN_SEND_REFUSE);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "0x7") && sentence_has(rc, "rank 1"));
	CHECK_IS(tern_send_start(local[0], 2, ID, out, SMALL, TERN_SEND_REFUSE | TERN_SEND_TABLE,
				 NULL),
		 0); /* another rank */
	CHECK_IS(send_listed(ID + 1, SMALL, TERN_SEND_REFUSE), 0);
	CHECK_IS(send_listed(ID + 1, SMALL, TERN_SEND_REFUSE),
		 -EBUSY); /* complete, and not cleared */
	CHECK_IS(tern_send_clear(local[0], 1, ID + 1), 0);
	CHECK_IS(send_listed(ID + 1, SMALL, TERN_SEND_REFUSE), 0);
	const tern_id ids[] = { ID + 2, ID };
	const tern_part parts[] = { { .base = out, .run = 8 }, { .base = out, .run = 8 } };
	CHECK_IS(tern_send_each_start(local[0], 1, ids, parts, 2,
				      TERN_SEND_REFUSE | TERN_SEND_TABLE, NULL),
		 -EBUSY);
	SEND_IS(ID + 2, TERN_STATE_EMPTY); /* all of them or none */
	CHECK_IS(msg_of(local[0])->sends.used, 3);
	local_close();
}

TEST(a_receive_that_may_be_refused_finds_its_id_busy)
{
	begin(3);
	CHECK_IS(recv_listed(ID, in, LEN, TERN_SEND_REFUSE), 0);
	int rc = recv_listed(ID, in2, LEN, TERN_SEND_REFUSE);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "0x7"));
	CHECK_IS(tern_recv_start(local[1],
				 &(tern_match){ .rank = 2,
						.flags = TERN_SEND_REFUSE | TERN_SEND_TABLE,
						.id = ID },
				 in2, SMALL, NULL, NULL),
		 0);
	CHECK_IS(tern_recv_start(local[1],
				 &(tern_match){ .rank = TERN_RANK_ANY,
						.flags = TERN_SEND_REFUSE | TERN_SEND_TABLE,
						.id = ID },
				 in2, SMALL, NULL, NULL),
		 0);
	CHECK_IS(tern_recv_start(local[1],
				 &(tern_match){ .rank = TERN_RANK_ANY,
						.flags = TERN_SEND_REFUSE | TERN_SEND_TABLE,
						.id = ID },
				 in2, SMALL, NULL, NULL),
		 -EBUSY);
	CHECK_IS(send_listed(ID, SMALL, 0), 0);
	RECV_IS(ID, TERN_STATE_COMPLETE);
	CHECK_IS(recv_listed(ID, in2, LEN, TERN_SEND_REFUSE), -EBUSY);
	CHECK_IS(tern_recv_clear(local[1], 0, ID), 0);
	CHECK_IS(recv_listed(ID, in2, LEN, TERN_SEND_REFUSE), 0);
	local_close();
}

TEST(a_receive_under_a_mask_that_may_be_refused_finds_its_id_busy)
{
	begin(2);
	CHECK_IS(tern_recv_start(local[1],
				 &(tern_match){ .rank = 0,
						.flags = TERN_SEND_REFUSE | TERN_SEND_TABLE,
						.id = ID,
						.any = ~0xff },
				 in, LEN, NULL, NULL),
		 0);
	CHECK_IS(tern_recv_start(local[1],
				 &(tern_match){ .rank = 0,
						.flags = TERN_SEND_REFUSE | TERN_SEND_TABLE,
						.id = ID,
						.any = ~0xff },
				 in, LEN, NULL, NULL),
		 -EBUSY);
	CHECK_IS(recv_listed(ID, in, LEN, TERN_SEND_REFUSE), -EBUSY);
	local_close();
}

/* -- Ready messages for a receive that is busy ------------------------------------------------- */

static void ready_while_busy(size_t len, unsigned flags)
{
	tern_op ready = TERN_OP;
	CHECK_IS(recv_slowly(ID, NULL), 0);
	CHECK_IS(send_listed(ID, LEN, TERN_SEND_RENDEZVOUS), 0);
	RECV_IS(ID, TERN_STATE_IN_PROGRESS);
	chance_fill(in2, len, 99);
	CHECK_IS(tern_send_start(local[0], 1, ID, in2, len, TERN_SEND_READY | flags, &ready), 0);
	RECV_IS(ID, TERN_STATE_IN_PROGRESS);
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
		ready_while_busy(0, sync ? TERN_SEND_SYNC : 0);
		ready_while_busy(SMALL, sync ? TERN_SEND_SYNC : 0);
		ready_while_busy(1000, sync ? TERN_SEND_SYNC : 0);
		ready_while_busy(LEN, sync ? TERN_SEND_SYNC : 0);
	}
	local_close();
}
