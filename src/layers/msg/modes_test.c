/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three modes, and synchronous sends: what each promises about when data move and who hears of
 * what.
 */
#include <errno.h>
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

static int send_with(size_t len, unsigned flags, tern_op *op)
{
	return tern_send_start(local[0], 1, ID, out, len, flags, op);
}

static int recv_with(size_t cap, tern_op *op)
{
	const tern_match match = { .rank = 0, .id = ID };
	return tern_recv_start(local[1], &match, in, cap, NULL, op);
}

/* -- Ready ------------------------------------------------------------------------------------- */

static void discarded(size_t len, bool tracked)
{
	tern_op so = TERN_OP;
	CHECK_IS(send_with(len, TERN_SEND_READY, &so), 0);
	int rc = tern_poll(local[1]);
	CHECK_IS(rc, -ENOMSG);
	CHECK(sentence_has(rc, "0x5") && sentence_has(rc, "rank 0"));
	CHECK(tern_poll(local[1]) >= 0); /* once */
	if (tracked) {
		rc = tern_op_wait(local[0], &so);
	} else {
		CHECK_IS(so.pending, 0);
		rc = tern_poll(local[0]);
	}
	CHECK_IS(rc, -ENOMSG);
	CHECK(sentence_has(rc, "0x5") && sentence_has(rc, "rank 1"));
	CHECK(tern_poll(local[0]) >= 0);
	CHECK_IS(msg_of(local[1])->arrivals.used, 0);
	CHECK_IS(tern_probe(local[1], &(tern_match){ .rank = 0, .id = ID }, NULL), 0);
}

TEST(a_ready_message_without_a_receive_is_discarded_and_both_sides_hear_of_it)
{
	begin(2);
	discarded(0, false);
	discarded(8, false);
	discarded(32, false);
	discarded(33, false);
	discarded(TERN_PAYLOAD_MAX, false);
	discarded(LARGE, true); /* its handle has it */
	local_close();
}

TEST(a_ready_and_synchronous_send_without_a_receive_fails)
{
	static const size_t sizes[] = { 0, 8, 1000, LARGE };
	begin(2);
	for (unsigned i = 0; i < 4; i++) {
		tern_op so = TERN_OP;
		CHECK_IS(send_with(sizes[i], TERN_SEND_READY | TERN_SEND_SYNC, &so), 0);
		CHECK_IS(tern_poll(local[1]), -ENOMSG);
		int rc = tern_op_wait(local[0], &so);
		CHECK_IS(rc, -ENOMSG);
		CHECK(sentence_has(rc, "0x5") && sentence_has(rc, "rank 1"));
		CHECK(tern_poll(local[0]) >= 0);
	}
	local_close();
}

TEST(a_ready_and_synchronous_send_is_complete_when_its_receive_has_it)
{
	static const size_t sizes[] = { 0, 8, 1000, LARGE };
	begin(2);
	for (unsigned i = 0; i < 4; i++) {
		tern_op so = TERN_OP, ro = TERN_OP;
		memset(in, 0xee, LARGE);
		CHECK_IS(recv_with(LARGE, &ro), 0);
		CHECK_IS(send_with(sizes[i], TERN_SEND_READY | TERN_SEND_SYNC, &so), 0);
		CHECK_IS(so.pending, 1);
		tern_poll(local[0]);
		CHECK_IS(so.pending, 1); /* it has not been taken */
		CHECK_IS(tern_op_wait(local[0], &so), 0);
		CHECK_IS(tern_op_wait(local[1], &ro), 0);
		CHECK(chance_filled(in, sizes[i], 3));
	}
	local_close();
}

TEST(parts_with_an_id_each_that_find_no_receive_in_ready_mode_are_discarded_alone)
{
	const tern_id ids[] = { 1, 2, 3 };
	const tern_part parts[] = { { .base = out, .run = 10 },
				    { .base = out + 10, .run = 20 },
				    { .base = out + 30, .run = 30 } };
	tern_op so = TERN_OP, ro = TERN_OP;
	begin(2);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 1 }, in, 10, NULL, &ro),
		 0);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 3 }, in + 30, 30, NULL,
				 &ro),
		 0);
	CHECK_IS(tern_send_each_start(local[0], 1, ids, parts, 3, TERN_SEND_READY, &so), 0);
	int rc = tern_poll(local[1]);
	CHECK_IS(rc, -ENOMSG);
	CHECK(sentence_has(rc, "0x2"));
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(memcmp(in, out, 10) == 0 && memcmp(in + 30, out + 30, 30) == 0 && in[10] == 0xee);
	rc = tern_poll(local[0]);
	CHECK_IS(rc, -ENOMSG);
	CHECK(sentence_has(rc, "0x2") && sentence_has(rc, "rank 1"));
	local_close();
}

/* -- Rendezvous -------------------------------------------------------------------------------- */

static void moves_late(size_t len)
{
	tern_op so = TERN_OP;
	struct msg *there = msg_of(local[1]);
	chance_fill(out, len, 3);
	CHECK_IS(send_with(len, TERN_SEND_RENDEZVOUS, &so), 0);
	local_settle_transfers();
	CHECK_IS(so.pending, 1);
	CHECK_IS(there->arrivals.used, 1);
	CHECK_IS(there->cells.made, 0);
	chance_fill(out, len, 4); /* nobody should do this; it tells when the data were read */
	CHECK_IS(tern_recv(local[1], 0, ID, in, len, NULL), 0);
	CHECK(chance_filled(in, len, 4));
	CHECK_IS(tern_op_wait(local[0], &so), 0);
}

TEST(a_rendezvous_moves_nothing_before_the_receive)
{
	begin(2);
	moves_late(1);
	moves_late(8);
	moves_late(1000);
	moves_late(LARGE);
	local_close();
}

TEST(a_rendezvous_is_complete_only_when_a_receive_has_met_it)
{
	static const size_t sizes[] = { 0, 8, 1000, LARGE };
	begin(2);
	for (unsigned i = 0; i < 4; i++) {
		tern_op so = TERN_OP, ro = TERN_OP;
		memset(in, 0xee, LARGE);
		CHECK_IS(send_with(sizes[i], TERN_SEND_RENDEZVOUS, &so), 0);
		local_settle_transfers();
		CHECK_IS(so.pending, 1);
		CHECK_IS(recv_with(LARGE, &ro), 0);
		CHECK_IS(tern_op_wait(local[0], &so), 0);
		CHECK_IS(tern_op_wait(local[1], &ro), 0);
		CHECK(chance_filled(in, sizes[i], 3));
	}
	local_close();
}

/* -- Automatic --------------------------------------------------------------------------------- */

TEST(a_small_message_is_gone_at_once_and_its_memory_is_free)
{
	static const size_t sizes[] = { 0, 1, 8, 32, 33, 1000, TERN_PAYLOAD_MAX };
	begin(2);
	for (unsigned i = 0; i < 7; i++) {
		tern_op so = TERN_OP;
		chance_fill(out, LARGE, 3);
		CHECK_IS(send_with(sizes[i], TERN_SEND_AUTO, &so), 0);
		CHECK_IS(so.pending, 0);
		CHECK_IS(tern_op_wait(local[0], &so), 0);
		memset(out, 0, LARGE);
		if (i % 2)
			local_settle_transfers();
		CHECK_IS(tern_recv(local[1], 0, ID, in, sizes[i], NULL), 0);
		CHECK(chance_filled(in, sizes[i], 3));
	}
	local_close();
}

TEST(when_the_receivers_cells_are_full_messages_go_by_rendezvous_until_they_are_drained)
{
	enum { MORE = 344 };
	tern_op so = TERN_OP;
	uint64_t got;
	begin(2);
	uint32_t all = msg_of(local[1])->window + MORE;
	for (int round = 0; round < 5; round++) {
		uint64_t n = 0;
		uint64_t sent[CELLS_EACH + MORE];
		while (n < all) {
			sent[n] = n;
			CHECK_IS(tern_send_start(local[0], 1, ID, &sent[n], 8, 0, &so), 0);
			n++;
			if (n == msg_of(local[1])->window)
				CHECK_IS(so.pending, 0);
		}
		CHECK_IS(so.pending, MORE);
		local_settle_transfers();
		CHECK_IS(msg_of(local[1])->arrivals.used, all);
		CHECK_IS(msg_of(local[1])->cells.used, msg_of(local[1])->window);
		for (uint64_t i = 0; i < n; i++) {
			CHECK_IS(tern_recv(local[1], 0, ID, &got, sizeof got, NULL), 0);
			CHECK_IS(got, i);
		}
		CHECK_IS(tern_op_wait(local[0], &so), 0);
	}
	CHECK_IS(tern_send_start(local[0], 1, ID, &got, 8, 0, &so), 0);
	CHECK_IS(so.pending, 0); /* as at the beginning */
	local_close();
}

TEST(large_messages_take_as_many_cells_as_they_need)
{
	tern_op so = TERN_OP;
	begin(2);
	uint32_t fit = msg_of(local[1])->window / cells_of(TERN_PAYLOAD_MAX);
	for (uint32_t i = 0; i < fit; i++)
		CHECK_IS(send_with(TERN_PAYLOAD_MAX, 0, &so), 0);
	CHECK_IS(so.pending, 0);
	CHECK_IS(send_with(TERN_PAYLOAD_MAX, 0, &so), 0);
	CHECK_IS(so.pending, 1);
	for (uint32_t i = 0; i <= fit; i++) {
		memset(in, 0, TERN_PAYLOAD_MAX);
		CHECK_IS(tern_recv(local[1], 0, ID, in, LARGE, NULL), 0);
		CHECK(chance_filled(in, TERN_PAYLOAD_MAX, 3));
	}
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	local_close();
}

TEST(a_large_message_waits_for_its_receive)
{
	tern_op so = TERN_OP;
	begin(2);
	CHECK_IS(send_with(TERN_PAYLOAD_MAX + 1, TERN_SEND_AUTO, &so), 0);
	local_settle_transfers();
	CHECK_IS(so.pending, 1);
	CHECK_IS(tern_recv(local[1], 0, ID, in, LARGE, NULL), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	local_close();
}

/* -- Synchronous ------------------------------------------------------------------------------- */

TEST(a_synchronous_send_completes_when_a_receive_has_taken_it_and_not_before)
{
	static const size_t sizes[] = { 0, 8, 32, 33, 1000, TERN_PAYLOAD_MAX, LARGE };
	static const unsigned modes[] = { TERN_SEND_AUTO, TERN_SEND_RENDEZVOUS };
	begin(2);
	for (unsigned i = 0; i < 14; i++) {
		tern_op so = TERN_OP, ro = TERN_OP;
		memset(in, 0xee, LARGE);
		CHECK_IS(send_with(sizes[i / 2], TERN_SEND_SYNC | modes[i % 2], &so), 0);
		local_settle_transfers();
		CHECK_IS(so.pending, 1);
		CHECK_IS(recv_with(LARGE, &ro), 0);
		CHECK_IS(tern_op_wait(local[0], &so), 0);
		local_settle_transfers();
		CHECK_IS(ro.pending, 0);
		CHECK(chance_filled(in, sizes[i / 2], 3));
	}
	local_close();
}

/* -- Blocking ---------------------------------------------------------------------------------- */

TEST(single_values_arrive_as_they_were)
{
	uint64_t word;
	double number;
	begin(2);
	CHECK_IS(tern_send(local[0], 1, ID, &(uint64_t){ UINT64_C(0xfedcba9876543210) },
			   sizeof(uint64_t)),
		 0);
	CHECK_IS(tern_send(local[0], 1, ID, &(double){ -0.1 }, sizeof(double)), 0);
	CHECK_IS(tern_recv(local[1], 0, ID, &word, sizeof word, NULL), 0);
	CHECK_IS(tern_recv(local[1], TERN_RANK_ANY, ID, &number, sizeof number, NULL), 0);
	CHECK(word == UINT64_C(0xfedcba9876543210) && number == -0.1);
	local_close();
}

TEST(a_blocking_send_returns_when_its_memory_is_free)
{
	tern_op ro = TERN_OP;
	begin(2);
	CHECK_IS(tern_send(local[0], 1, ID, out, 1000), 0); /* nobody receives yet */
	memset(out, 0, 1000);
	CHECK_IS(tern_recv(local[1], 0, ID, in, LARGE, NULL), 0);
	CHECK(chance_filled(in, 1000, 3));
	chance_fill(out, LARGE, 9);
	CHECK_IS(recv_with(LARGE, &ro), 0);
	CHECK_IS(tern_send(local[0], 1, ID, out, LARGE), 0);
	memset(out, 0, LARGE);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(chance_filled(in, LARGE, 9));
	local_close();
}

TEST(a_rank_sends_to_itself_in_every_mode)
{
	static const size_t sizes[] = { 0, 8, 1000, TERN_PAYLOAD_MAX, LARGE };
	static const unsigned modes[] = { TERN_SEND_AUTO, TERN_SEND_READY, TERN_SEND_RENDEZVOUS,
					  TERN_SEND_SYNC };
	begin(1);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < 4; k++) {
			tern_op op = TERN_OP;
			memset(in, 0xee, LARGE);
			CHECK_IS(tern_recv_start(local[0],
						 &(tern_match){ .rank = k % 2 ? 0 : TERN_RANK_ANY,
								.id = ID },
						 in, LARGE, NULL, &op),
				 0);
			CHECK_IS(tern_send_start(local[0], 0, ID, out, sizes[i], modes[k], &op), 0);
			CHECK_IS(tern_op_wait(local[0], &op), 0);
			CHECK(chance_filled(in, sizes[i], 3));
		}
	local_close();
}
