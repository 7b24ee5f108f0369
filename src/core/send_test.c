/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies of every size, through rings of every state. */
#include <errno.h>

#include "endpoint/endpoint.h"
#include "lib/chance.h"
#include "lib/local.h"

enum { ASK, TELL, ECHO, ECHOED };

static void echo(tern *t, const tern_msg *m)
{
	uint64_t words[TERN_WORDS_MAX];
	arrival_note(&requests, t, m);
	for (unsigned i = 0; i < tern_msg_count(m); i++)
		words[i] = ~tern_msg_word(m, i);
	CHECK_IS(tern_reply_array(t, m, ECHOED, tern_msg_count(m), words), 0);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, note_request);
	local_on(TELL, note_reply);
	local_on(ECHO, echo);
	local_on(ECHOED, note_reply);
}

static void check_words(const struct noted *a, uint32_t rank, uint32_t src, unsigned n,
			uint64_t first)
{
	CHECK_IS(a->rank, rank);
	CHECK_IS(a->src, src);
	CHECK_IS(a->words, n);
	CHECK(!a->has_payload);
	for (unsigned i = 0; i < n; i++)
		CHECK_IS(a->word[i], first + i);
}

TEST(a_request_carries_none_to_eight_words)
{
	ranks_open(2);
	for (uint32_t dst = 0; dst < 2; dst++) {
		tern *t = local[0];
		CHECK_IS(tern_request(t, dst, ASK), 0);
		local_settle();
		check_words(&requests, dst, 0, 0, 1);
		CHECK_IS(tern_request(t, dst, ASK, 1), 0);
		local_settle();
		check_words(&requests, dst, 0, 1, 1);
		CHECK_IS(tern_request(t, dst, ASK, 1, 2), 0);
		local_settle();
		check_words(&requests, dst, 0, 2, 1);
		CHECK_IS(tern_request(t, dst, ASK, 1, 2, 3), 0);
		local_settle();
		check_words(&requests, dst, 0, 3, 1);
		CHECK_IS(tern_request(t, dst, ASK, 1, 2, 3, 4), 0);
		local_settle();
		check_words(&requests, dst, 0, 4, 1);
		CHECK_IS(tern_request(t, dst, ASK, 1, 2, 3, 4, 5), 0);
		local_settle();
		check_words(&requests, dst, 0, 5, 1);
		CHECK_IS(tern_request(t, dst, ASK, 1, 2, 3, 4, 5, 6), 0);
		local_settle();
		check_words(&requests, dst, 0, 6, 1);
		CHECK_IS(tern_request(t, dst, ASK, 1, 2, 3, 4, 5, 6, 7), 0);
		local_settle();
		check_words(&requests, dst, 0, 7, 1);
		CHECK_IS(tern_request(t, dst, ASK, 1, 2, 3, 4, 5, 6, 7, 8), 0);
		local_settle();
		check_words(&requests, dst, 0, 8, 1);
	}
	CHECK_IS(requests.count, 18);
	local_close();
}

static void reply_by_count(tern *t, const tern_msg *m)
{
	switch (tern_msg_word(m, 0)) {
	case 0:
		CHECK_IS(tern_reply(t, m, TELL), 0);
		break;
	case 1:
		CHECK_IS(tern_reply(t, m, TELL, 1), 0);
		break;
	case 2:
		CHECK_IS(tern_reply(t, m, TELL, 1, 2), 0);
		break;
	case 3:
		CHECK_IS(tern_reply(t, m, TELL, 1, 2, 3), 0);
		break;
	case 4:
		CHECK_IS(tern_reply(t, m, TELL, 1, 2, 3, 4), 0);
		break;
	case 5:
		CHECK_IS(tern_reply(t, m, TELL, 1, 2, 3, 4, 5), 0);
		break;
	case 6:
		CHECK_IS(tern_reply(t, m, TELL, 1, 2, 3, 4, 5, 6), 0);
		break;
	case 7:
		CHECK_IS(tern_reply(t, m, TELL, 1, 2, 3, 4, 5, 6, 7), 0);
		break;
	default:
		CHECK_IS(tern_reply(t, m, TELL, 1, 2, 3, 4, 5, 6, 7, 8), 0);
	}
}

TEST(a_reply_carries_none_to_eight_words)
{
	local_open(2);
	local_on(ASK, reply_by_count);
	local_on(TELL, note_reply);
	for (uint32_t dst = 0; dst < 2; dst++)
		for (unsigned n = 0; n <= TERN_WORDS_MAX; n++) {
			CHECK_IS(tern_request(local[0], dst, ASK, n), 0);
			local_settle();
			check_words(&replies, 0, dst, n, 1);
		}
	CHECK_IS(replies.count, 18);
	local_close();
}

TEST(words_are_converted_to_64_bits)
{
	ranks_open(2);
	int minus = -1;
	uint8_t small = 200;
	CHECK_IS(tern_request(local[0], 1, ASK, minus, small, UINT64_MAX), 0);
	local_settle();
	CHECK(requests.word[0] == UINT64_MAX && requests.word[1] == 200 &&
	      requests.word[2] == UINT64_MAX);
	local_close();
}

TEST(arrays_of_words_travel_like_lists)
{
	static const uint64_t words[TERN_WORDS_MAX] = { 7, 8, 9, 10, 11, 12, 13, 14 };
	ranks_open(2);
	for (unsigned n = 0; n <= TERN_WORDS_MAX; n++) {
		CHECK_IS(tern_request_array(local[0], 1, ECHO, n, words), 0);
		local_settle();
		check_words(&requests, 1, 0, n, 7);
		CHECK_IS(replies.words, n);
		for (unsigned i = 0; i < n; i++)
			CHECK_IS(replies.word[i], ~words[i]);
	}
	local_close();
}

static uint64_t next_word;

static void check_next(tern *t, const tern_msg *m)
{
	(void)t;
	unsigned n = (unsigned)(next_word % (TERN_WORDS_MAX + 1));
	CHECK_IS(tern_msg_count(m), n);
	for (unsigned i = 0; i < n; i++)
		CHECK_IS(tern_msg_word(m, i), chance_of(next_word, i));
	next_word++;
}

TEST(many_laps_of_mixed_messages_arrive_in_order)
{
	local_open(2);
	local_on(ASK, check_next);
	for (uint64_t i = 0; i < check_scaled(200000); i++) {
		uint64_t w[TERN_WORDS_MAX];
		for (unsigned k = 0; k < TERN_WORDS_MAX; k++)
			w[k] = chance_of(i, k);
		REQUIRE(tern_request_array(local[0], 1, ASK, (unsigned)(i % (TERN_WORDS_MAX + 1)),
					   w) == 0);
	}
	local_settle();
	CHECK_IS(next_word, check_scaled(200000));
	local_close();
}

static void ask_numbered(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		uint64_t w[TERN_WORDS_MAX];
		for (unsigned k = 0; k < TERN_WORDS_MAX; k++)
			w[k] = chance_of(i, k);
		REQUIRE(tern_request_array(local[0], 1, ASK, (unsigned)(i % (TERN_WORDS_MAX + 1)),
					   w) == 0);
		if (i % 97 == 0)
			tern_poll(local[1]);
	}
	local_settle();
}

/* The first lap is over before, since it will come again: nothing of it may be left in the ring. */
TEST(the_lap_number_of_a_ring_in_use_wraps_unnoticed)
{
	local_open(2);
	local_on(ASK, check_next);
	ask_numbered(0, 2000);
	uint64_t last = ~UINT64_C(0) << TERN_LAP_SHIFT;
	tern_hold(local[1]); /* nobody looks into the ring meanwhile */
	local[0]->lane[1].head |= last;
	local[1]->own->site.peer[0].requests.expect |= last;
	tern_release(local[1]);
	ask_numbered(2000, 7000);
	CHECK_IS(next_word, 7000);
	local_close();
}

TEST(a_request_without_room_serves_until_there_is)
{
	ranks_open(2);
	for (unsigned i = 0; i < 5000; i++) /* a ring holds about 500 */
		REQUIRE(tern_request(local[0], 1, ASK, i, i) == 0);
	local_settle();
	CHECK_IS(requests.count, 5000);
	local_close();
}

/* -- Gated replies: which of them a single poll handles -------------------------------- */

static unsigned reply_size;

static void always_reply(tern *t, const tern_msg *m)
{
	static const unsigned char bytes[TERN_PAYLOAD_MAX];
	requests.count++;
	if (reply_size == UINT32_MAX)
		CHECK_IS(tern_reply_data(t, m, TELL, bytes, sizeof bytes, 1), 0);
	else
		CHECK_IS(tern_reply_array(t, m, TELL, reply_size,
					  (const uint64_t *)(const void *)bytes),
			 0);
}

/* Rank 0 sends and never takes its replies in; rank 1 polls. */
static unsigned send_without_taking_replies(unsigned n)
{
	tern_hold(local[0]);
	unsigned sent = 0;
	for (; sent < n; sent++) {
		int rc = tern_request(local[0], 1, ASK, sent);
		while (rc == -EAGAIN && tern_poll(local[1]) > 0)
			rc = tern_request(local[0], 1, ASK, sent);
		if (rc)
			break;
		tern_poll(local[1]);
	}
	tern_release(local[0]);
	return sent;
}

TEST(requests_wait_while_their_replies_have_no_room_and_go_on_when_they_do)
{
	local_polled();
	for (reply_size = 0; reply_size <= TERN_WORDS_MAX; reply_size++) {
		local_open(2);
		local_on(ASK, always_reply);
		local_on(TELL, note_reply);
		requests.count = replies.count = 0;
		unsigned sent = send_without_taking_replies(10000);
		CHECK(sent < 10000); /* the request ring is full too by now: memory is bounded */
		CHECK(requests.count < sent);
		CHECK_IS(tern_poll(local[1]), 0); /* gated */
		unsigned gated = requests.count;
		CHECK(tern_poll(local[0]) > 0);
		CHECK(tern_poll(local[1]) > 0);
		CHECK(requests.count > gated);
		local_settle();
		CHECK_IS(requests.count, sent);
		CHECK_IS(replies.count, sent);
		local_close();
	}
}

TEST(requests_wait_while_the_last_block_for_a_reply_is_on_its_way)
{
	local_polled();
	reply_size = UINT32_MAX;
	local_open(2);
	local_on(ASK, always_reply);
	local_on(TELL, note_reply);
	unsigned sent = send_without_taking_replies(10000);
	CHECK_IS(requests.count, TERN_POOL_BLOCKS + 1); /* the pool and the reserve */
	CHECK_IS(tern_poll(local[1]), 0);
	CHECK_IS(tern_poll(local[0]), TERN_POOL_BLOCKS + 1);
	CHECK_IS(tern_poll(local[1]), TERN_POOL_BLOCKS + 1);
	local_settle();
	CHECK_IS(requests.count, sent);
	CHECK_IS(replies.count, sent);
	CHECK_IS(replies.len, TERN_PAYLOAD_MAX);
	local_close();
}

TEST(a_gate_for_one_peer_does_not_hold_up_another)
{
	local_polled();
	reply_size = UINT32_MAX;
	local_open(3);
	local_on(ASK, always_reply);
	local_on(TELL, note_reply);
	send_without_taking_replies(10000);
	requests.count = replies.count = 0;
	for (int i = 0; i < 10; i++) {
		CHECK_IS(tern_request(local[2], 1, ASK), 0);
		CHECK_IS(tern_poll(local[1]), 1);
		CHECK_IS(tern_poll(local[2]), 1);
	}
	CHECK_IS(replies.count, 10);
	local_settle();
	local_close();
}

TEST(a_poll_counts_what_it_handled_when_a_gate_opens)
{
	static const unsigned char byte[1];
	local_polled();
	reply_size = 2;
	local_open(2);
	local_on(ASK, always_reply);
	local_on(TELL, note_reply);
	tern_poll(local[1]);
	send_without_taking_replies(10000);
	while (tern_poll(local[0]) + tern_poll(local[1]) > 0)
		;
	unsigned capacity = RING_LEAVES * (REPLY_LEAF_LINES - 1);
	tern_hold(local[0]);
	for (unsigned i = 0; i < capacity; i++)
		if (tern_request(local[0], 1, ASK) || tern_poll(local[1]) == 0)
			break; /* the gate has closed */
	CHECK_IS(tern_request_data(local[0], 1, ASK, byte, 1), 0);
	tern_release(local[0]);
	while (tern_poll(local[0]) > 0)
		;
	unsigned before = requests.count, sum = 0;
	for (int rc = tern_poll(local[1]); rc > 0; rc = tern_poll(local[1]))
		sum += (unsigned)rc;
	CHECK_IS(sum, requests.count - before);
	local_settle();
	local_close();
}
