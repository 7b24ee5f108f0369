/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receive takes which message: ranks, ids, masks, and above all order. */
#include <errno.h>
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/local.h"
#include "msg/msg.h"

enum { LARGE = 20000 };

static unsigned char out[LARGE], in[LARGE];

static uint64_t word_from(uint32_t src, tern_id id, tern_envelope *env)
{
	uint64_t word = UINT64_MAX;
	CHECK_IS(tern_recv(local[0], src, id, &word, sizeof word, env), 0);
	return word;
}

/* -- Who and what ------------------------------------------------------------------------------ */

TEST(a_receive_takes_only_its_rank_and_id)
{
	local_open(3);
	CHECK_IS(tern_send(local[2], 0, 1, &(uint64_t){ 21 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send(local[1], 0, 2, &(uint64_t){ 12 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send(local[1], 0, 1, &(uint64_t){ 11 }, sizeof(uint64_t)), 0);
	local_settle_transfers();
	CHECK_IS(word_from(1, 1, NULL), 11);
	CHECK_IS(word_from(1, 2, NULL), 12);
	CHECK_IS(word_from(2, 1, NULL), 21);
	local_close();
}

TEST(a_posted_receive_takes_only_its_rank_and_id)
{
	uint64_t got[3] = { 0 };
	tern_op ro = TERN_OP;
	local_open(3);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = 1 }, &got[0], 8, NULL,
				 &ro),
		 0);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 2, .id = 1 }, &got[1], 8, NULL,
				 &ro),
		 0);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = 2 }, &got[2], 8, NULL,
				 &ro),
		 0);
	CHECK_IS(tern_send(local[1], 0, 2, &(uint64_t){ 12 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send(local[2], 0, 1, &(uint64_t){ 21 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send(local[1], 0, 1, &(uint64_t){ 11 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	CHECK(got[0] == 11 && got[1] == 21 && got[2] == 12);
	local_close();
}

TEST(a_receive_that_waits_takes_its_message_from_the_ring_and_no_other_receives)
{
	uint64_t got = 0;
	tern_op ro = TERN_OP;
	tern_envelope env;
	local_open(2);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = 1 }, &got, 8, NULL, &ro),
		 0);
	for (uint64_t word = 1; word <= 4; word++) /* the last is behind what nobody waits for */
		CHECK_IS(tern_send(local[1], 0, word == 3 ? 2 : 1, &word, sizeof word), 0);
	CHECK_IS(word_from(1, 1, &env), 2);
	CHECK(got == 1 && env.src == 1 && env.id == 1 && env.len == 8 && !env.error);
	CHECK_IS(word_from(1, 1, NULL), 4);
	CHECK_IS(word_from(1, 2, NULL), 3);
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	local_close();
}

/* One that is longer than its receive, or not as long as its parts, is told to its sender. */
TEST(a_receive_that_waits_refuses_what_does_not_fit)
{
	char bytes[32];
	const tern_part part = { .base = bytes, .run = sizeof bytes };
	local_open(2);
	for (int exact = 0; exact < 2; exact++) {
		CHECK_IS(tern_send(local[1], 0, 1, out, exact ? 24 : 32), 0);
		CHECK_IS(exact ? tern_recv_parts_start(local[0],
						       &(tern_match){ .rank = 1, .id = 1 }, &part,
						       1, NULL, NULL)
			       : tern_recv(local[0], 1, 1, bytes, 24, NULL),
			 -EMSGSIZE);
		CHECK_IS(tern_poll(local[1]), -EMSGSIZE);
	}
	local_close();
}

TEST(cells_of_messages_that_were_taken_from_the_ring_come_back)
{
	char bytes[48];
	chance_fill(out, LARGE, 1);
	local_open(2);
	for (int i = 0; i < 3 * CELLS; i++) {
		size_t len = (size_t)i % (sizeof bytes + 1);
		CHECK_IS(tern_send(local[1], 0, 1, out + i, len), 0);
		CHECK_IS(tern_recv(local[0], 1, 1, bytes, sizeof bytes, NULL), 0);
		CHECK(memcmp(bytes, out + i, len) == 0);
	}
	CHECK(msg_of(local[1])->peer[0].cells > 0);
	CHECK_IS(msg_of(local[0])->recvs.used, 0);
	local_close();
}

/* In the ring a message costs nothing, and the receive that comes for it need not look for it. */
TEST(a_wait_leaves_in_the_ring_what_nobody_waits_for)
{
	enum { MANY = 30, FIRST = 4 };
	uint64_t got[FIRST] = { 0 };
	tern_op first = TERN_OP;
	local_polled();
	local_open(2);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_IS(tern_send(local[1], 0, i, &(uint64_t){ 100 + i }, sizeof(uint64_t)), 0);
	for (uint64_t i = 0; i < FIRST; i++)
		CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = i }, &got[i], 8,
					 NULL, &first),
			 0);
	CHECK_IS(tern_op_wait(local[0], &first), 0);
	for (uint64_t i = 0; i < FIRST; i++)
		CHECK_IS(got[i], 100 + i);
	CHECK(msg_of(local[0])->arrivals.used <= 1);
	for (uint64_t i = MANY; i-- > FIRST;)
		CHECK_IS(word_from(1, i, NULL), 100 + i);
	local_close();
}

TEST(every_bit_of_an_id_counts)
{
	tern_op ro = TERN_OP;
	static uint64_t got[64];
	local_open(2);
	for (unsigned b = 0; b < 64; b++)
		CHECK_IS(tern_recv_start(local[0],
					 &(tern_match){ .rank = 1, .id = UINT64_C(1) << b },
					 &got[b], 8, NULL, &ro),
			 0);
	for (unsigned b = 64; b--;)
		CHECK_IS(tern_send(local[1], 0, UINT64_C(1) << b, &(uint64_t){ b },
				   sizeof(uint64_t)),
			 0);
	CHECK_IS(tern_send(local[1], 0, UINT64_MAX, &(uint64_t){ 77 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send(local[1], 0, 0, &(uint64_t){ 78 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	for (unsigned b = 0; b < 64; b++)
		CHECK_IS(got[b], b);
	CHECK_IS(word_from(1, 0, NULL), 78);
	CHECK_IS(word_from(1, UINT64_MAX, NULL), 77);
	local_close();
}

TEST(a_receive_from_any_rank_takes_the_first_that_came_and_says_whose_it_is)
{
	tern_envelope env;
	local_open(4);
	for (uint32_t r = 3; r > 0; r--) {
		CHECK_IS(tern_send(local[r], 0, 9, &(uint64_t){ r }, sizeof(uint64_t)), 0);
		local_settle_transfers();
	}
	for (uint32_t r = 3; r > 0; r--) {
		CHECK_IS(word_from(TERN_RANK_ANY, 9, &env), r);
		CHECK(env.src == r && env.id == 9 && env.len == 8 && env.error == 0);
	}
	local_close();
}

TEST(a_receive_under_a_mask_compares_those_bits_alone)
{
	tern_envelope env;
	uint64_t got = 0;
	tern_op ro = TERN_OP;
	local_open(2);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = 0x120, .any = ~0xff0 },
				 &got, 8, &env, &ro),
		 0);
	CHECK_IS(tern_send(local[1], 0, 0x130, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send(local[1], 0, 0x420, &(uint64_t){ 4 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send(local[1], 0, 0xf00012f, &(uint64_t){ 2 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send(local[1], 0, 0x120, &(uint64_t){ 3 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	CHECK(got == 2 && env.id == 0xf00012f && env.src == 1);
	CHECK_IS(tern_recv_start(local[0],
				 &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY }, &got,
				 8, &env, &ro),
		 0); /* anything */
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	CHECK(got == 1 && env.id == 0x130);
	CHECK_IS(tern_recv_start(
			 local[0],
			 &(tern_match){ .rank = TERN_RANK_ANY, .id = 0xabc120, .any = ~0xfff },
			 &got, 8, &env, &ro),
		 0);
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	CHECK(got == 3 && env.id == 0x120);
	CHECK_IS(word_from(1, 0x420, NULL), 4);
	local_close();
}

TEST(a_masked_receive_takes_no_message_of_another_rank)
{
	uint64_t got = 0;
	tern_op ro = TERN_OP;
	local_open(3);
	CHECK_IS(tern_send(local[1], 0, 5, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
	local_settle_transfers();
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 2, .any = TERN_ID_ANY }, &got, 8,
				 NULL, &ro),
		 0);
	CHECK_IS(tern_send(local[1], 0, 5, &(uint64_t){ 2 }, sizeof(uint64_t)), 0);
	local_settle_transfers();
	CHECK_IS(ro.pending, 1);
	CHECK_IS(tern_send(local[2], 0, 6, &(uint64_t){ 3 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	CHECK_IS(got, 3);
	local_close();
}

/* -- Order ------------------------------------------------------------------------------------- */

static const size_t mixed[] = { 8, LARGE, 40, 9000, 8, 8, 8192, LARGE, 16, 300 };
enum { MIXED = sizeof mixed / sizeof *mixed, ROUNDS = 60 };

static uint64_t sent[ROUNDS][LARGE / 8], got[ROUNDS][LARGE / 8];

/* Sends the i-th of a sequence: its number is in its first word. */
static void send_ith(uint64_t i, tern_op *op)
{
	static const unsigned modes[] = { TERN_SEND_AUTO, TERN_SEND_AUTO, TERN_SEND_RENDEZVOUS,
					  TERN_SEND_SYNC };
	sent[i][0] = i;
	CHECK_IS(tern_send_start(local[1], 0, 4, sent[i], mixed[i % MIXED], modes[i * 7 % 11 % 4],
				 op),
		 0);
}

static int recv_ith(uint64_t i, unsigned kind, tern_envelope *env, tern_op *op)
{
	switch (kind % 4) {
	case 0:
		return tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = 4 }, got[i], LARGE,
				       env, op);
	case 1:
		return tern_recv_start(local[0], &(tern_match){ .rank = TERN_RANK_ANY, .id = 4 },
				       got[i], LARGE, env, op);
	case 2:
		return tern_recv_start(local[0], &(tern_match){ .rank = 1, .any = TERN_ID_ANY },
				       got[i], LARGE, env, op);
	default:
		return tern_recv_start(local[0],
				       &(tern_match){ .rank = TERN_RANK_ANY, .id = 4, .any = ~6 },
				       got[i], LARGE, env, op);
	}
}

/* `kinds` of receives in turn, `ahead` of them posted before the first send. */
static void in_order(unsigned kinds, unsigned first, unsigned ahead)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	tern_envelope env[ROUNDS];
	uint64_t posted = 0;
	memset(got, 0xff, sizeof got);
	while (posted < ahead) {
		CHECK_IS(recv_ith(posted, first + posted % kinds, &env[posted], &ro), 0);
		posted++;
	}
	for (uint64_t i = 0; i < ROUNDS; i++) {
		send_ith(i, &so);
		if (i % 3 == 0)
			local_settle_transfers();
	}
	while (posted < ROUNDS) {
		CHECK_IS(recv_ith(posted, first + posted % kinds, &env[posted], &ro), 0);
		posted++;
	}
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	CHECK_IS(tern_op_wait(local[1], &so), 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		CHECK_IS(got[i][0], i);
		CHECK_IS(env[i].len, mixed[i % MIXED]);
		CHECK_IS(env[i].src, 1);
	}
}

TEST(messages_with_one_id_are_received_in_the_order_sent_whatever_their_size_and_mode)
{
	local_open(2);
	for (unsigned ahead = 0; ahead <= ROUNDS; ahead += 20)
		in_order(1, 0, ahead);
	local_close();
}

TEST(wildcard_receives_keep_the_order_too)
{
	local_open(2);
	for (unsigned ahead = 0; ahead <= ROUNDS; ahead += 20)
		for (unsigned kind = 1; kind < 4; kind++)
			in_order(1, kind, ahead);
	local_close();
}

TEST(receives_are_matched_in_the_order_posted_exact_and_wildcard_alike)
{
	local_open(2);
	for (unsigned ahead = 0; ahead <= ROUNDS; ahead += 20)
		for (unsigned first = 0; first < 4; first++)
			in_order(4, first, ahead);
	local_close();
}

TEST(messages_that_fell_back_to_rendezvous_keep_their_place)
{
	enum { MANY = 2000 };
	static uint64_t word[MANY];
	tern_op so = TERN_OP;
	local_open(2);
	for (uint64_t i = 0; i < MANY; i++) {
		word[i] = i;
		CHECK_IS(tern_send_start(local[1], 0, 4, &word[i], 8, 0, &so), 0);
	}
	for (uint64_t i = 0; i < MANY; i++) {
		CHECK_IS(word_from(i % 2 ? 1 : TERN_RANK_ANY, 4, NULL), i);
		if (i % 3 == 0) /* cells come back meanwhile, and new ones may not jump the queue */
			CHECK_IS(tern_send_start(local[1], 0, 5, &word[i], 8, 0, &so), 0);
	}
	for (uint64_t i = 0; i < MANY; i += 3)
		CHECK_IS(word_from(1, 5, NULL), i);
	CHECK_IS(tern_op_wait(local[1], &so), 0);
	local_close();
}

TEST(sends_that_wait_for_a_place_among_the_unmatched_keep_their_order)
{
	tern_op so = TERN_OP;
	local_open(2);
	uint32_t most = msg_of(local[1])->peer[0].rts, many = most + 500;
	static uint64_t word[TERN_SENDS_MAX];
	for (uint64_t i = 0; i < many; i++) {
		word[i] = i;
		CHECK_IS(tern_send_start(local[1], 0, 4, &word[i], 8,
					 i < most ? TERN_SEND_RENDEZVOUS : 0, &so),
			 0);
	}
	local_settle_transfers();
	CHECK(msg_of(local[0])->arrivals.used >= most);
	CHECK(msg_of(local[0])->arrivals.used <= most + msg_of(local[0])->window);
	for (uint64_t i = 0; i < many; i++)
		CHECK_IS(word_from(1, 4, NULL), i);
	CHECK_IS(tern_op_wait(local[1], &so), 0);
	local_close();
}

TEST(a_send_in_the_middle_that_is_taken_back_leaves_the_others_in_order)
{
	static uint64_t word[5] = { 0, 1, 2, 3, 4 };
	tern_op so[5] = { TERN_OP, TERN_OP, TERN_OP, TERN_OP, TERN_OP };
	local_open(2);
	for (int i = 0; i < 5; i++)
		CHECK_IS(tern_send_start(local[1], 0, 4, &word[i], 8, TERN_SEND_RENDEZVOUS, &so[i]),
			 0);
	local_settle_transfers();
	CHECK_IS(tern_op_cancel(local[1], &so[0]), 0);
	CHECK_IS(tern_op_cancel(local[1], &so[2]), 0);
	CHECK_IS(tern_op_cancel(local[1], &so[4]), 0);
	CHECK_IS(word_from(1, 4, NULL), 1);
	CHECK_IS(word_from(TERN_RANK_ANY, 4, NULL), 3);
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY },
			    NULL),
		 0);
	local_close();
}

/* -- Looking before receiving ------------------------------------------------------------------ */

static void probed(size_t len, unsigned flags)
{
	tern_op so = TERN_OP;
	tern_envelope env = { .src = 99, .len = 99 };
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 1, .id = 8 }, &env), 0);
	CHECK(env.src == 99 && env.len == 99); /* written only when there is one */
	CHECK_IS(tern_send_start(local[1], 0, 8, out, len, flags, &so), 0);
	CHECK_IS(tern_probe(local[0], &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 1, .id = 8 },
			    &env),
		 1);
	for (int i = 0; i < 2; i++) { /* it stays where it is */
		memset(&env, 0xff, sizeof env);
		CHECK_IS(tern_probe(local[0],
				    &(tern_match){ .rank = i ? TERN_RANK_ANY : 1, .id = 8 }, &env),
			 1);
		CHECK(env.src == 1 && env.id == 8 && env.len == len && env.error == 0);
	}
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY },
			    &env),
		 1);
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 1, .id = 0xf8, .any = ~8 }, NULL), 1);
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 1, .id = 9 }, NULL), 0);
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 0, .id = 8 }, NULL), 0);
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 1, .id = 7, .any = ~7 }, NULL), 0);
	CHECK_IS(tern_recv(local[0], env.src, env.id, in, env.len, NULL), 0);
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY },
			    NULL),
		 0);
	CHECK_IS(tern_op_wait(local[1], &so), 0);
}

TEST(a_probe_tells_what_a_receive_would_take_and_takes_nothing)
{
	local_open(2);
	probed(0, 0);
	probed(8, 0);
	probed(1000, 0);
	probed(LARGE, 0);
	probed(8, TERN_SEND_SYNC);
	probed(8, TERN_SEND_RENDEZVOUS);
	local_close();
}

TEST(a_probe_finds_the_message_that_the_receive_then_gets)
{
	tern_envelope env, taken;
	tern_op so[2] = { TERN_OP, TERN_OP };
	local_open(3);
	for (uint64_t i = 0; i < 10; i++)
		CHECK_IS(tern_send_start(local[1 + i % 2], 0, i, out, i * 100, 0, &so[i % 2]), 0);
	for (int i = 0; i < 10; i++) {
		tern_op ro = TERN_OP;
		CHECK_IS(tern_probe(local[0],
				    &(tern_match){ .flags = TERN_PROBE_WAIT,
						   .rank = TERN_RANK_ANY,
						   .any = TERN_ID_ANY },
				    &env),
			 1);
		CHECK_IS(tern_recv_start(local[0],
					 &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY },
					 in, LARGE, &taken, &ro),
			 0);
		CHECK_IS(tern_op_wait(local[0], &ro), 0);
		CHECK(env.src == taken.src && env.id == taken.id && env.len == taken.len);
	}
	local_close();
}

static void send_deferred(tern *t, void *arg)
{
	(void)arg;
	CHECK_IS(tern_send(t, 0, 8, &(uint64_t){ 5 }, sizeof(uint64_t)), 0);
}

TEST(a_waiting_probe_returns_when_a_message_comes)
{
	tern_envelope env;
	local_open(2);
	CHECK_IS(tern_defer(local[1], send_deferred, NULL), 0); /* runs while the other waits */
	CHECK_IS(tern_probe(local[0], &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = 1, .id = 8 },
			    &env),
		 1);
	CHECK_IS(env.len, 8);
	CHECK_IS(word_from(1, 8, NULL), 5);
	local_close();
}

/* -- Many -------------------------------------------------------------------------------------- */

TEST(ten_thousand_receives_with_ids_of_their_own_each_get_their_message)
{
	enum { MANY = 10000 };
	static uint64_t value[MANY];
	tern_op ro = TERN_OP;
	struct chance c = { check_seed() };
	local_open(2);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_IS(tern_recv_start(local[0],
					 &(tern_match){ .rank = i % 3 ? 1 : TERN_RANK_ANY,
							.id = i * UINT64_C(0x100000001) },
					 &value[i], 8, NULL, &ro),
			 0);
	uint64_t first = chance_below(&c, MANY);
	for (uint64_t k = 0; k < MANY; k++) {
		uint64_t i = (first + k * 7919) % MANY; /* each once */
		CHECK_IS(tern_send(local[1], 0, i * UINT64_C(0x100000001), &(uint64_t){ i },
				   sizeof(uint64_t)),
			 0);
	}
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_IS(value[i], i);
	CHECK_IS(msg_of(local[0])->recvs.used, 0);
	local_close();
}

TEST(nobody_takes_messages_and_sends_empty_ones)
{
	uint64_t word = 7;
	tern_part part = { .base = &word, .run = 8 };
	const tern_match none = { .rank = TERN_RANK_NONE, .id = 5 };
	tern_op op = TERN_OP;
	tern_envelope env = { .len = 99 };
	local_open(2);
	CHECK_IS(tern_send(local[0], TERN_RANK_NONE, 5, &word, 8), 0);
	CHECK_IS(tern_recv(local[0], TERN_RANK_NONE, 5, &word, 8, &env), 0);
	CHECK(env.src == TERN_RANK_NONE && env.len == 0 && env.id == 5 && env.error == 0);
	CHECK_IS(tern_recv(local[0], TERN_RANK_NONE, 5, &word, 8, NULL), 0);
	CHECK_IS(tern_send_start(local[0], TERN_RANK_NONE, 5, &word, 8, TERN_SEND_SYNC, &op), 0);
	CHECK_IS(tern_send_parts_start(local[0], TERN_RANK_NONE, 5, &part, 1, 0, &op), 0);
	CHECK_IS(tern_send_each_start(local[0], TERN_RANK_NONE, &(tern_id){ 5 }, &part, 1, 0, &op),
		 0);
	CHECK_IS(tern_recv_start(local[0], &none, &word, 8, &env, &op), 0);
	CHECK_IS(tern_recv_parts_start(local[0], &none, &part, 1, &env, &op), 0);
	CHECK_IS(op.pending, 0);
	CHECK_IS(op.error, 0);
	CHECK_IS(word, 7);
	local_close();
}
