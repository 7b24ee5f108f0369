/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies composed in place: in the request's block, or in one of the replier's. */
#include <errno.h>

#include "endpoint/endpoint.h"
#include "lib/payload_ranks.h"

static size_t reply_len;
static bool in_place;

/* Changes the first byte and returns the rest as it came: not copied. */
static void return_changed(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	unsigned char *reply = handed_reply_claim(t, m, reply_len);
	REQUIRE(reply != NULL);
	in_place = (const void *)reply == tern_msg_data(m, NULL);
	if (!in_place)
		chance_fill(reply, reply_len, 5);
	if (reply_len)
		reply[0] = 42;
	CHECK_IS(tern_reply_commit(t, m, reply, TELL, 1, 2, 3), 0);
	CHECK_IS(tern_reply_commit(t, m, reply, TELL), -EALREADY);
}

TEST(a_reply_composed_in_place_returns_the_requests_own_block)
{
	ranks_open(return_changed);
	for (uint32_t dst = 0; dst < 2; dst++)
		for (int i = 0; i < 3 * TERN_POOL_BLOCKS; i++) {
			unsigned char *claimed = handed_claim(local[0], dst, 1000);
			REQUIRE(claimed != NULL);
			chance_fill(claimed, 1000, 8);
			reply_len = i % 2 ? 1000 : 10;
			CHECK_IS(tern_commit(local[0], claimed, ASK), 0);
			local_settle();
			CHECK(in_place);
			CHECK_IS(replies.len, reply_len);
			CHECK_IS(replies.data[0], 42);
			replies.data[0] = 8;
			check_arrival(&replies, reply_len, 8);
			CHECK(replies.words == 3 && replies.word[2] == 3);
		}
	check_no_block_lost();
}

TEST(a_reply_longer_than_the_request_is_composed_in_fresh_bytes)
{
	ranks_open(return_changed);
	for (int i = 0; i < 3 * TERN_POOL_BLOCKS; i++) {
		reply_len = 101;
		if (i % 2)
			CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
		else
			CHECK_IS(tern_request(local[0], 1, ASK, 6), 0);
		local_settle();
		CHECK(!in_place);
		CHECK_IS(replies.data[0], 42);
		replies.data[0] = 5;
		check_arrival(&replies, 101, 5);
	}
	CHECK_IS(replies.count, 3 * TERN_POOL_BLOCKS);
	check_no_block_lost();
}

static unsigned char come_back[TERN_POOL_BLOCKS + 1];
static unsigned came_back;

static void note_first_byte(tern *t, const tern_msg *m)
{
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	arrival_note(&replies, t, m);
	if (CHECK(data && len == reply_len))
		come_back[came_back++] = data[len - 1];
}

/* As a rank that has slept: it looks at nobody until somebody knocks. */
static void look_at_nobody(tern *t)
{
	struct net *net = t->own->net[1];
	struct sleep s = { .says = BELL_ASLEEP };
	tern_poll(t);
	(void)net->ops->arm(net, &s);
	net_disarm(net);
	t->own->site.peek = &t->own->site.bell;
}

static void check_last_replies(size_t len, bool asleep)
{
	local_open(3);
	local_on(ASK, return_changed);
	local_on(TELL, note_first_byte);
	local_on(ECHO, note_request);
	reply_len = len;
	came_back = 0;
	for (int i = 0; i < TERN_POOL_BLOCKS; i++) {
		memset(bytes, i, len);
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, len), 0);
	}
	if (asleep)
		look_at_nobody(local[0]);
	while (tern_poll(local[1]) > 0)
		;
	local_close_one(1);
	memset(bytes, 0xee, len);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 2, ECHO, bytes, len), 0);
	local_settle();
	CHECK_IS(came_back, TERN_POOL_BLOCKS);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(come_back[i], i);
	local_close();
}

TEST(replies_in_place_from_a_rank_that_has_closed_arrive_whole)
{
	local_polled();
	check_last_replies(1000, false);
	check_last_replies(1000, true);
}

static void answer_in_a_claim(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	void *same;
	CHECK_IS(tern_reply_claim(t, m, len + 1, TERN_CLAIM_SAME, &same), -ENOBUFS);
	CHECK_IS(tern_reply_claim(t, m, len, tern_msg_word(m, 0) ? TERN_CLAIM_SAME : TERN_CLAIM_ANY,
				  &same),
		 0);
	CHECK(memcmp(same, data, len) == 0);
	CHECK_IS(tern_reply_commit(t, m, same, TELL), 0);
}

TEST(a_claim_of_the_requests_payload_has_its_contents_wherever_they_lie)
{
	ranks_open(answer_in_a_claim);
	local_on(TELL, note_reply);
	for (unsigned i = 0; i < 600; i++) { /* a ring that grows meanwhile */
		size_t len = 1 + 7 * i % (2 * TERN_CARRY_MAX);
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, len, i % 2), 0);
		local_settle();
		check_arrival(&replies, len, 1);
	}
	check_no_block_lost();
}

static void claim_and_forget(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK(handed_reply_claim(t, m, 10) != NULL);
	CHECK(handed_reply_claim(t, m, TERN_PAYLOAD_MAX) != NULL);
	if (requests.count % 2)
		CHECK_IS(tern_reply(t, m, TELL), 0);
}

TEST(a_reply_claim_that_is_not_committed_is_abandoned)
{
	ranks_open(claim_and_forget);
	for (int i = 0; i < 10 * TERN_POOL_BLOCKS; i++) {
		CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
		CHECK_IS(tern_request_data(local[1], 1, ASK, bytes, 100), 0);
	}
	local_settle();
	CHECK_IS(requests.count, 30 * TERN_POOL_BLOCKS);
	CHECK_IS(replies.count, 15 * TERN_POOL_BLOCKS);
	check_no_block_lost();
}

static void *stale;
static int stale_code;

static void commit_of_the_one_before(tern *t, const tern_msg *m)
{
	if (!stale)
		stale = handed_reply_claim(t, m, 10);
	else
		stale_code = tern_reply_commit(t, m, stale, TELL);
}

TEST(a_reply_claim_ends_with_its_handler)
{
	ranks_open(commit_of_the_one_before);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	CHECK_IS(tern_request(local[0], 1, ASK, 2), 0);
	local_settle();
	CHECK_IS(stale_code, -EINVAL);
	CHECK_IS(replies.count, 0);
	check_no_block_lost();
}

static void commit_badly(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply_commit(t, m, bytes, TELL), -EINVAL);
	CHECK_IS(tern_reply_commit(t, m, NULL, TELL), -EINVAL);
	unsigned char *reply = handed_reply_claim(t, m, 10);
	CHECK_IS(tern_reply_commit(t, m, reply + 1, TELL), -EINVAL);
	CHECK_IS(tern_commit(t, reply, TELL), -EINVAL);
	CHECK_IS(tern_reply_commit(t, m, reply, 99), -ENXIO);
	CHECK_IS(tern_reply_commit(t, m, reply, TELL, 7), 0);
}

TEST(a_reply_commits_only_what_was_claimed_for_it)
{
	ranks_open(commit_badly);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
	local_settle();
	CHECK_IS(replies.count, 2);
	CHECK_IS(replies.word[0], 7);
	check_no_block_lost();
}

static void abandon_reply(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	enum tern_claim_from from = tern_msg_word(m, 0) ? TERN_CLAIM_FRESH : TERN_CLAIM_SAME;
	for (int i = 0; i < 3; i++) {
		void *claimed;
		CHECK_IS(tern_reply_claim(t, m, 10, from, &claimed), 0);
		CHECK_IS(tern_abandon(t, claimed), 0);
		CHECK_IS(tern_abandon(t, claimed), -EINVAL);
		CHECK_IS(tern_reply_commit(t, m, claimed, TELL), -EINVAL);
	}
	if (tern_msg_word(m, 1))
		CHECK_IS(tern_reply(t, m, TELL), 0);
}

TEST(an_abandoned_claim_for_a_reply_frees_its_block_and_leaves_the_request_to_be_answered)
{
	ranks_open(abandon_reply);
	for (int i = 0; i < 5 * TERN_POOL_BLOCKS; i++) {
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 10, i & 1, i & 2), 0);
		local_settle();
	}
	CHECK_IS(replies.count, requests.count / 2);
	check_no_block_lost();
}
