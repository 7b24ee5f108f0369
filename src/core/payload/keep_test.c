/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages kept beyond their handlers. */
#include <errno.h>

#include "endpoint/endpoint.h"
#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"

enum { ASK, TELL };

static const tern_msg *kept[2 * TERN_KEEP_MAX];
static unsigned keeps;
static int code;
static unsigned char bytes[TERN_PAYLOAD_MAX];

static void keep(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	kept[keeps] = handed_keep(t, m);
	code = kept[keeps] ? 0 : -errno;
	keeps += kept[keeps] != NULL;
}

static void ranks_open(tern_handler *ask)
{
	local_open(2);
	local_on(ASK, ask);
	local_on(TELL, note_reply);
	chance_fill(bytes, sizeof bytes, 1);
}

static void traffic(void)
{
	for (int i = 0; i < 2000; i++)
		CHECK_IS(tern_request(local[0], 1, TELL, i, i, i, i, i, i), 0);
	local_settle();
}

TEST(a_kept_message_stays_as_it_was_while_its_ring_is_used_again)
{
	static const uint64_t words[TERN_WORDS_MAX] = { 10, 11, 12, 13, 14, 15, 16, 17 };
	ranks_open(keep);
	for (unsigned n = 0; n <= TERN_WORDS_MAX; n++)
		CHECK_IS(tern_request_array(local[0], 1, ASK, n, words), 0);
	local_settle();
	traffic();
	for (unsigned n = 0; n <= TERN_WORDS_MAX; n++) {
		CHECK_IS(tern_msg_count(kept[n]), n);
		CHECK_IS(tern_msg_src(kept[n]), 0);
		CHECK(!tern_msg_data(kept[n], NULL));
		for (unsigned i = 0; i < n; i++)
			CHECK_IS(tern_msg_word(kept[n], i), words[i]);
		CHECK_IS(tern_msg_drop(local[1], kept[n]), 0);
	}
	local_close();
}

TEST(a_kept_payload_stays_where_it_lies)
{
	ranks_open(keep);
	for (uint32_t src = 0; src < 2; src++) {
		for (unsigned i = 0; i < 8; i++)
			CHECK_IS(tern_request_data(local[src], 1, ASK, bytes, 1 + 1000 * i, i, 1, 2,
						   3, 4, 5, 6, i + 7),
				 0);
		local_settle();
	}
	traffic();
	for (int i = 0; i < 100; i++) /* through the blocks that are left */
		CHECK_IS(tern_request_data(local[0], 1, TELL, bytes + 1, 8000), 0);
	local_settle();
	for (unsigned i = 0; i < 16; i++) {
		size_t len;
		const unsigned char *data = tern_msg_data(kept[i], &len);
		CHECK_IS(len, 1 + 1000 * (i % 8));
		CHECK(data && chance_filled(data, len, 1));
		CHECK_IS(tern_msg_word(kept[i], 0), i % 8);
		CHECK_IS(tern_msg_word(kept[i], 7), i % 8 + 7);
		CHECK_IS(tern_msg_drop(local[1], kept[i]), 0);
	}
	local_close();
}

TEST(as_many_short_payloads_are_kept_as_messages_and_each_stays_as_it_was)
{
	ranks_open(keep);
	traffic(); /* the ring has grown: payloads lie behind their messages */
	for (unsigned i = 0; i < TERN_KEEP_MAX; i++) {
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 2 * i, i, i + 1), 0);
		if (i % 8 == 0)
			local_settle();
	}
	local_settle();
	traffic();
	for (int i = 0; i < 200; i++)
		CHECK_IS(tern_request_data(local[0], 1, TELL, bytes + 1, TERN_CARRY_MAX), 0);
	local_settle();
	for (unsigned i = 0; i < TERN_KEEP_MAX; i++) {
		size_t len;
		const unsigned char *data = tern_msg_data(kept[i], &len);
		CHECK(data && len == 2 * i && chance_filled(data, len, 1));
		CHECK(tern_msg_word(kept[i], 0) == i && tern_msg_word(kept[i], 1) == i + 1);
		CHECK_IS(tern_msg_drop(local[1], kept[i]), 0);
	}
	local_close();
}

TEST(what_is_dropped_is_dropped_once)
{
	ranks_open(keep);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	CHECK_IS(tern_request(local[0], 1, ASK, 2), 0);
	local_settle();
	CHECK_IS(tern_msg_drop(local[0], kept[0]), -EINVAL); /* not the one that keeps it */
	CHECK_IS(tern_msg_drop(local[1], (const tern_msg *)(const void *)bytes), -EINVAL);
	CHECK_IS(tern_msg_drop(local[1], NULL), -EINVAL);
	CHECK_IS(tern_msg_drop(local[1], kept[0]), 0);
	CHECK_IS(tern_msg_drop(local[1], kept[0]), -EINVAL);
	CHECK(sentence_has(-EINVAL, "rank 1"));
	CHECK_IS(tern_msg_word(kept[1], 0), 2);
	CHECK_IS(tern_msg_drop(local[1], kept[1]), 0);
	local_close();
}

TEST(so_many_messages_are_kept_and_no_more)
{
	ranks_open(keep);
	for (int i = 0; i < TERN_KEEP_MAX; i++)
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
	local_settle();
	CHECK_IS(keeps, TERN_KEEP_MAX);
	CHECK_IS(tern_request(local[0], 1, ASK, 0), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1), 0);
	local_settle();
	CHECK_IS(keeps, TERN_KEEP_MAX);
	CHECK_IS(code, -ENOBUFS);
	CHECK_IS(tern_msg_drop(local[1], kept[17]), 0);
	CHECK_IS(tern_request(local[0], 1, ASK, 1234), 0);
	local_settle();
	CHECK_IS(keeps, TERN_KEEP_MAX + 1);
	CHECK_IS(tern_msg_word(kept[TERN_KEEP_MAX], 0), 1234);
	local_close();
}

static void drop_first(tern *t, void *arg)
{
	(void)arg;
	CHECK_IS(tern_msg_drop(t, kept[0]), 0);
}

static void ask_to_drop(tern *t, const tern_msg *m)
{
	(void)m;
	if (tern_rank(t) == 1)
		CHECK_IS(tern_defer(t, drop_first, NULL), 0);
}

TEST(a_sender_whose_blocks_are_all_kept_waits_until_one_is_dropped)
{
	local_open(2);
	local_on(ASK, keep);
	local_on(TELL, ask_to_drop);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1000), 0);
	local_settle();
	tern_hold(local[0]);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1000), -EAGAIN);
	tern_release(local[0]);
	CHECK_IS(tern_request(local[0], 1, TELL, 1), 0); /* handled while the next call waits */
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1000), 0);
	local_settle();
	CHECK_IS(keeps, TERN_POOL_BLOCKS + 1);
	local_close();
}

TEST(a_sender_that_keeps_all_its_own_blocks_is_told_and_does_not_wait)
{
	ranks_open(keep);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 0, ASK, bytes, 10), 0);
	local_settle();
	CHECK_IS(tern_request_data(local[0], 0, ASK, bytes, 10), -ENOBUFS);
	CHECK_IS(tern_msg_drop(local[0], kept[0]), 0);
	CHECK_IS(tern_request_data(local[0], 0, ASK, bytes, 10), 0);
	local_close();
}

static void return_in_place(tern *t, const tern_msg *m)
{
	void *reply = handed_reply_claim(t, m, 1000);
	REQUIRE(reply == tern_msg_data(m, NULL));
	CHECK_IS(tern_reply_commit(t, m, reply, TELL), 0);
	CHECK(!handed_keep(t, m)); /* it is on its way home */
	CHECK_IS(errno, EALREADY);
}

TEST(a_reply_that_came_back_in_place_can_be_kept)
{
	local_open(2);
	local_on(ASK, return_in_place);
	local_on(TELL, keep);
	chance_fill(bytes, sizeof bytes, 1);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1000), 0);
	local_settle();
	CHECK_IS(keeps, 1);
	for (int i = 0; i < 100; i++) {
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1000), 0);
		local_settle();
		CHECK_IS(tern_msg_drop(local[0], kept[keeps - 1]), 0);
		keeps--;
	}
	CHECK(chance_filled(tern_msg_data(kept[0], NULL), 1000, 1));
	CHECK_IS(tern_msg_drop(local[0], kept[0]), 0);
	local_close();
}

static void keep_then_answer(tern *t, const tern_msg *m)
{
	unsigned char *reply = handed_reply_claim(t, m, 10);
	keep(t, m);
	if (reply == tern_msg_data(m, NULL))
		CHECK_IS(tern_reply_commit(t, m, reply, TELL),
			 -EINVAL); /* kept: it must not be sent back */
	reply = handed_reply_claim(t, m, 10);
	REQUIRE(reply != NULL);
	CHECK((const void *)reply != tern_msg_data(m, NULL));
	memset(reply, 7, 10);
	CHECK_IS(tern_reply_commit(t, m, reply, TELL), 0);
}

TEST(a_kept_request_is_not_sent_back_but_can_be_answered)
{
	ranks_open(keep_then_answer);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 10), 0);
	CHECK_IS(tern_request(local[0], 1, ASK, 6, 7), 0);
	local_settle();
	CHECK_IS(replies.count, 2);
	CHECK_IS(replies.data[9], 7);
	CHECK(chance_filled(tern_msg_data(kept[0], NULL), 10, 1));
	local_close();
}

static void answer_then_keep(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL), 0);
	keep(t, m);
	CHECK(!handed_keep(t, m));
	CHECK_IS(errno, EALREADY);
}

TEST(a_message_is_kept_once_and_also_after_its_reply)
{
	ranks_open(answer_then_keep);
	CHECK_IS(tern_request(local[0], 1, ASK, 3), 0);
	CHECK_IS(tern_request(local[0], 1, ASK, 3, 4), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1), 0);
	local_settle();
	CHECK_IS(keeps, 3);
	CHECK_IS(tern_msg_word(kept[1], 1), 4);
	CHECK(!handed_keep(local[1], kept[0])); /* and not by the program */
	CHECK_IS(errno, EPERM);
	CHECK_IS(replies.count, 3);
	local_close();
}

TEST(closing_gives_back_what_was_kept)
{
	local_open(3);
	local_on(ASK, keep);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 10), 0);
	local_settle();
	CHECK_IS(keeps, TERN_POOL_BLOCKS);
	local_close_one(1);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], 2, ASK, bytes, 10), 0);
	local_close();
}
