/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads: sent, and composed in place; and the blocks they lie in. */
#include <errno.h>

#include "endpoint/endpoint.h"
#include "lib/payload_ranks.h"

static const size_t lengths[] = {
	0, 1, 7, 8, 63, 64, 4096, TERN_PAYLOAD_MAX - 1, TERN_PAYLOAD_MAX
};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

TEST(a_payload_of_any_length_travels_there_and_back)
{
	ranks_open(note_request);
	for (uint32_t dst = 0; dst < 2; dst++)
		for (unsigned i = 0; i < LENGTHS; i++) {
			CHECK_IS(tern_request_data(local[0], dst, ECHO, bytes, lengths[i]), 0);
			local_settle();
			check_arrival(&requests, lengths[i], 1);
			check_arrival(&replies, lengths[i], 1);
			CHECK_IS(requests.words, 0);
		}
	CHECK_IS(replies.count, 2 * LENGTHS);
	check_no_block_lost();
}

TEST(a_payload_travels_with_none_to_eight_words)
{
	ranks_open(note_request);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9, 1), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9, 1, 2), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9, 1, 2, 3), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9, 1, 2, 3, 4), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9, 1, 2, 3, 4, 5), 0);
	local_settle();
	CHECK(requests.words == 5 && requests.word[4] == 5);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9, 1, 2, 3, 4, 5, 6), 0);
	local_settle();
	CHECK(requests.words == 6 && requests.word[5] == 6);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9, 1, 2, 3, 4, 5, 6, 7), 0);
	local_settle();
	CHECK(requests.words == 7 && requests.word[6] == 7);
	check_arrival(&requests, 9, 1);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 9, 1, 2, 3, 4, 5, 6, 7, 8), 0);
	local_settle();
	CHECK(requests.words == 8 && requests.word[6] == 7 && requests.word[7] == 8);
	check_arrival(&requests, 9, 1);
	CHECK_IS(requests.count, 9);
	check_no_block_lost();
}

static void echo_array(tern *t, const tern_msg *m)
{
	size_t len;
	uint64_t word[TERN_WORDS_MAX];
	unsigned n = tern_msg_count(m);
	const void *data = tern_msg_data(m, &len);
	for (unsigned i = 0; i < n; i++)
		word[i] = tern_msg_word(m, i) + 1;
	arrival_note(&requests, t, m);
	void *claimed = n % 2 ? handed_reply_claim(t, m, len) : NULL;
	if (!claimed)
		CHECK_IS(tern_reply_data_array(t, m, TELL, data, len, n, word), 0);
	else
		CHECK_IS(tern_reply_commit_array(t, m, claimed, TELL, n, word), 0);
}

TEST(a_payload_travels_with_an_array_of_words)
{
	static const uint64_t words[TERN_WORDS_MAX + 1] = { 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	ranks_open(echo_array);
	for (unsigned n = 0; n <= TERN_WORDS_MAX; n++) {
		void *claimed = handed_claim(local[0], 1, 9);
		memcpy(claimed, bytes, 9);
		CHECK_IS(tern_request_data_array(local[0], 1, ASK, bytes, 9, n, words), 0);
		CHECK_IS(tern_commit_array(local[0], claimed, ASK, n, words), 0);
		local_settle();
		CHECK_IS(replies.count, 2 * n + 2);
		CHECK(requests.words == n && replies.words == n);
		CHECK(n == 0 || (requests.word[n - 1] == n + 6 && replies.word[n - 1] == n + 7));
		check_arrival(&requests, 9, 1);
		check_arrival(&replies, 9, 1);
	}
	CHECK_IS(tern_request_data_array(local[0], 1, ASK, bytes, 9, TERN_WORDS_MAX + 1, words),
		 -E2BIG);
	check_no_block_lost();
}

static void answer_without_bytes(tern *t, const tern_msg *m)
{
	static const uint64_t words[2] = { 8, 9 };
	arrival_note(&requests, t, m);
	uint64_t how = tern_msg_count(m) ? tern_msg_word(m, 0) : 0;
	if (how == 0)
		CHECK_IS(tern_reply_data(t, m, TELL, NULL, 0, 8, 9), 0);
	else if (how == 1)
		CHECK_IS(tern_reply_data_array(t, m, TELL, NULL, 0, 2, words), 0);
	else
		CHECK_IS(tern_reply_commit(t, m, handed_reply_claim(t, m, 0), TELL, 8, 9), 0);
}

static void check_without_bytes(unsigned count)
{
	local_settle();
	CHECK_IS(requests.count, count);
	CHECK_IS(replies.count, count);
	CHECK(requests.has_payload && requests.len == 0);
	CHECK(replies.has_payload && replies.len == 0);
	CHECK(replies.words == 2 && replies.word[1] == 9);
}

TEST(a_payload_of_0_bytes_is_one_and_needs_no_data)
{
	static const uint64_t words[2] = { 1, 7 };
	void *claimed[TERN_POOL_BLOCKS];
	ranks_open(answer_without_bytes);
	CHECK_IS(tern_request_data(local[0], 1, ASK, NULL, 0), 0);
	check_without_bytes(1);
	CHECK_IS(tern_request_data_array(local[0], 1, ASK, NULL, 0, 2, words), 0);
	check_without_bytes(2);
	CHECK(requests.words == 2 && requests.word[1] == 7);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		REQUIRE((claimed[i] = handed_claim(local[0], 1, 0)) != NULL);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++) {
		CHECK_IS(tern_commit(local[0], claimed[i], ASK, 2, 5), 0);
		CHECK_IS(tern_commit(local[0], claimed[i], ASK), -EINVAL);
		check_without_bytes(3 + (unsigned)i);
	}
	check_no_block_lost();
}

TEST(a_reply_of_0_bytes_in_place_gives_the_requests_block_back)
{
	ranks_open(answer_without_bytes);
	for (unsigned i = 0; i < 3 * TERN_POOL_BLOCKS; i++) {
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 10, i % 3), 0);
		local_settle();
		check_arrival(&requests, 10, 1);
		CHECK(replies.count == i + 1 && replies.has_payload && !replies.len);
	}
	check_no_block_lost();
}

TEST(the_senders_data_is_free_when_the_call_returns)
{
	ranks_open(note_request);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
	memset(bytes, 0xee, sizeof bytes);
	local_settle();
	check_arrival(&requests, 100, 1);
	check_no_block_lost();
}

static const void *seen_at;

static void where(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	seen_at = tern_msg_data(m, NULL);
}

TEST(the_handler_reads_a_payload_where_it_was_composed)
{
	ranks_open(where);
	unsigned char *claimed = handed_claim(local[0], 1, 500);
	REQUIRE(claimed != NULL);
	chance_fill(claimed, 500, 2);
	CHECK_IS(tern_commit(local[0], claimed, ASK, 4, 5), 0);
	local_settle();
	CHECK(seen_at == claimed);
	CHECK(requests.words == 2 && requests.word[1] == 5);
	check_arrival(&requests, 500, 2);
	check_no_block_lost();
}

TEST(messages_are_ordered_by_commit_and_not_by_claim)
{
	ranks_open(note_request);
	unsigned char *first = handed_claim(local[0], 1, 1), *second = handed_claim(local[0], 1, 1);
	REQUIRE(first && second && first != second);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	CHECK_IS(tern_commit(local[0], second, ASK, 2), 0);
	local_settle();
	CHECK_IS(requests.count, 2);
	CHECK_IS(requests.word[0], 2);
	CHECK_IS(tern_commit(local[0], first, ASK, 3), 0);
	local_settle();
	CHECK_IS(requests.word[0], 3);
	check_no_block_lost();
}

TEST(other_sends_polls_and_replies_leave_a_composed_message_alone)
{
	ranks_open(note_request);
	unsigned char *claimed = handed_claim(local[0], 1, TERN_PAYLOAD_MAX);
	REQUIRE(claimed != NULL);
	chance_fill(claimed, TERN_PAYLOAD_MAX, 3);
	for (int i = 0; i < 100; i++) {
		CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
		CHECK_IS(tern_request_data(local[0], 1, ECHO, bytes, sizeof bytes), 0);
		CHECK_IS(tern_request_data(local[1], 0, ECHO, bytes, sizeof bytes),
			 0); /* rank 0 replies */
		CHECK_IS(tern_request_data(local[0], 0, ECHO, bytes, sizeof bytes), 0);
		local_settle();
	}
	CHECK_IS(tern_commit(local[0], claimed, ASK), 0);
	local_settle();
	check_arrival(&requests, TERN_PAYLOAD_MAX, 3);
	check_no_block_lost();
}

TEST(an_abandoned_claim_sends_nothing_and_frees_its_block)
{
	ranks_open(note_request);
	for (int i = 0; i < 5 * TERN_POOL_BLOCKS; i++) {
		void *claimed = handed_claim(local[0], i % 3, 100);
		REQUIRE(claimed != NULL);
		CHECK_IS(tern_abandon(local[0], claimed), 0);
		CHECK_IS(tern_abandon(local[0], claimed), -EINVAL);
		CHECK_IS(tern_commit(local[0], claimed, ASK), -EINVAL);
	}
	CHECK_IS(local_settle(), 0);
	check_no_block_lost();
}

TEST(a_claim_is_committed_once_and_only_what_was_claimed_is)
{
	ranks_open(note_request);
	unsigned char *claimed = handed_claim(local[0], 1, 100);
	REQUIRE(claimed != NULL);
	CHECK_IS(tern_commit(local[0], claimed + 1, ASK), -EINVAL);
	CHECK(sentence_has(-EINVAL, "rank 0"));
	CHECK_IS(tern_commit(local[0], claimed - 64, ASK), -EINVAL);
	CHECK_IS(tern_commit(local[0], claimed + sizeof(struct block), ASK), -EINVAL);
	CHECK_IS(tern_commit(local[0], bytes, ASK), -EINVAL);
	CHECK_IS(tern_commit(local[0], NULL, ASK), -EINVAL);
	CHECK_IS(tern_commit(local[1], claimed, ASK), -EINVAL); /* another endpoint's */
	CHECK_IS(tern_abandon(local[1], claimed), -EINVAL);
	CHECK_IS(tern_abandon(local[0], NULL), -EINVAL);
	CHECK_IS(tern_commit(local[0], claimed, ASK), 0);
	CHECK_IS(tern_commit(local[0], claimed, ASK), -EINVAL);
	CHECK_IS(tern_abandon(local[0], claimed), -EINVAL);
	local_settle();
	CHECK_IS(tern_commit(local[0], claimed, ASK), -EINVAL);
	CHECK_IS(requests.count, 1);
	check_no_block_lost();
}

TEST(open_claims_that_hold_every_block_are_an_error_and_not_a_wait)
{
	ranks_open(note_request);
	for (uint32_t dst = 0; dst < 2; dst++) {
		void *claimed[TERN_POOL_BLOCKS];
		for (int i = 0; i < TERN_POOL_BLOCKS; i++)
			REQUIRE((claimed[i] = handed_claim(local[0], dst, 1)) != NULL);
		CHECK(!handed_claim(local[0], dst, 1));
		CHECK_IS(errno, ENOBUFS);
		CHECK_IS(tern_request_data(local[0], dst, ASK, bytes, 1), -ENOBUFS);
		CHECK_IS(tern_request(local[0], dst, ASK, 1), 0);
		CHECK_IS(tern_commit(local[0], claimed[0], ASK), 0);
		CHECK_IS(tern_request_data(local[0], dst, ASK, bytes, 1), 0);
		for (int i = 1; i < TERN_POOL_BLOCKS; i++)
			CHECK_IS(tern_abandon(local[0], claimed[i]), 0);
		local_settle();
		CHECK_IS(requests.count, 3 * (dst + 1));
	}
	check_no_block_lost();
}

TEST(claims_to_oneself_do_not_use_up_the_blocks_for_others)
{
	ranks_open(note_request);
	void *claimed[TERN_POOL_BLOCKS];
	tern_poll(local[1]);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		REQUIRE((claimed[i] = handed_claim(local[0], 0, 1)) != NULL);
	for (int i = 0; i < 3 * TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1), 0);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_abandon(local[0], claimed[i]), 0);
	check_no_block_lost();
}

static void reply_bytes(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply_data(t, m, TELL, bytes, 100), 0);
}

TEST(a_reply_arrives_although_claims_to_oneself_hold_every_block)
{
	void *claimed[TERN_POOL_BLOCKS];
	ranks_open(reply_bytes);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		REQUIRE((claimed[i] = handed_claim(local[0], 0, 1)) != NULL);
	for (uint64_t i = 1; i <= 5; i++) {
		CHECK_IS(tern_request(local[0], 0, ASK), 0);
		local_settle();
		CHECK_IS(replies.count, i);
		check_arrival(&replies, 100, 1);
	}
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_abandon(local[0], claimed[i]), 0);
	check_no_block_lost();
}

TEST(more_payloads_than_blocks_wait_for_the_receiver)
{
	ranks_open(note_request);
	for (int i = 0; i < 1000; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1 + i), 0);
	local_settle();
	CHECK_IS(requests.count, 1000);
	check_arrival(&requests, 1000, 1);
	check_no_block_lost();
}

TEST(a_claim_under_a_hold_without_a_block_is_refused_and_takes_nothing)
{
	ranks_open(note_request);
	tern_hold(local[0]);
	tern_hold(local[1]); /* so that it gives none back */
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1000), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1000), -EAGAIN);
	CHECK(!handed_claim(local[0], 1, 10));
	CHECK_IS(errno, EAGAIN);
	tern_release(local[1]);
	tern_release(local[0]);
	local_settle();
	CHECK_IS(requests.count, TERN_POOL_BLOCKS);
	check_no_block_lost();
}

TEST(a_commit_without_room_under_a_hold_keeps_the_claim)
{
	ranks_open(note_request);
	unsigned char *claimed = handed_claim(local[0], 1, 10);
	REQUIRE(claimed != NULL);
	chance_fill(claimed, 10, 9);
	tern_hold(local[0]);
	while (tern_request(local[0], 1, ASK, 1, 2) == 0)
		;
	CHECK_IS(tern_commit(local[0], claimed, ASK), -EAGAIN);
	tern_release(local[0]);
	CHECK_IS(tern_commit(local[0], claimed, ASK), 0);
	local_settle();
	check_arrival(&requests, 10, 9);
	check_no_block_lost();
}

/* -- A sender that lies ------------------------------------------------------------------ */

TEST(a_payload_outside_the_senders_blocks_is_dropped)
{
	ranks_open(note_request);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
	local_settle();
	uint64_t lies[] = { (uint64_t)1 << TERN_LEN_BITS | 10, (uint64_t)-640 << TERN_LEN_BITS | 10,
			    0 };
	for (unsigned i = 0; i < 3; i++) {
		tern_hold(local[1]);
		char *line = local[0]->lane[1].tail;
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
		tern_msg *m = (tern_msg *)(void *)line;
		uint64_t honest = m->payload;
		m->payload = lies[i] ? lies[i] : honest + TERN_PAYLOAD_MAX;
		tern_release(local[1]);
		CHECK_IS(tern_poll(local[1]), -EBADMSG);
		CHECK(sentence_has(-EBADMSG, "rank 0"));
	}
	CHECK_IS(requests.count, 1);
	CHECK_IS(tern_request(local[0], 1, ASK, 3), 0);
	local_settle();
	CHECK_IS(requests.word[0], 3);
	local_close();
}

TEST(a_payload_that_would_end_behind_the_ring_is_dropped)
{
	ranks_open(note_request);
	const struct tern_lane *lane = &local[0]->lane[1];
	do { /* until the next message is the last one of a ring that has grown */
		CHECK_IS(tern_request(local[0], 1, ASK, 1, 2), 0);
		local_settle();
	} while (!lane->carries || lane->leaf % RING_LEAVES != RING_LEAVES - 1 ||
		 lane->tail != lane->end);
	unsigned count = requests.count;
	tern_msg *m = (tern_msg *)(void *)lane->tail;
	tern_hold(local[1]);
	CHECK_IS(tern_request(local[0], 1, ASK, 1, 2), 0);
	m->payload = (uint64_t)TERN_LINE << TERN_LEN_BITS | TERN_CARRY_MAX;
	atomic_fetch_or(&m->head, TERN_HEAD_PAYLOAD);
	tern_release(local[1]);
	CHECK_IS(tern_poll(local[1]), -EBADMSG);
	CHECK(sentence_has(-EBADMSG, "outside its sender's blocks"));
	CHECK_IS(tern_request(local[0], 1, ASK, 3), 0);
	local_settle();
	CHECK(requests.count == count + 1 && requests.word[0] == 3);
	local_close();
}

TEST(short_payloads_there_and_back_arrive_whole_whatever_lies_between_them)
{
	struct chance c = { check_seed() };
	ranks_open(note_request);
	for (unsigned i = 0; i < check_scaled(20000); i++) {
		size_t len = chance_below(&c, TERN_CARRY_MAX + 20);
		unsigned between = chance_below(&c, 4);
		CHECK_IS(tern_request_data(local[0], 1, ECHO, bytes, len), 0);
		for (unsigned k = 0; k < between; k++)
			CHECK_IS(tern_request(local[0], 1, ASK, k), 0);
		if (chance_one_in(&c, 3))
			CHECK_IS(tern_request(local[0], 1, ASK, 1, 2, 3, 4, 5, 6, 7, 8), 0);
		local_settle();
		REQUIRE(replies.count == i + 1);
		check_arrival(&replies, len, 1);
	}
	check_no_block_lost();
}
