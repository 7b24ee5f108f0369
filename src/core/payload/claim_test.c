/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims that are shortened before they are committed. */
#include <errno.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "net/block.h"

enum { ASK, TELL, CLAIMED = 1000 };

static enum tern_claim_from from;
static size_t reply_len;

/* Claims what came, or as much, and returns the beginning of it. */
static void reply_shortened(tern *t, const tern_msg *m)
{
	size_t len;
	void *reply;
	const void *data = tern_msg_data(m, &len);
	arrival_note(&requests, t, m);
	REQUIRE(tern_reply_claim(t, m, len, from, &reply) == 0);
	CHECK_IS(reply == data, from != TERN_CLAIM_FRESH);
	if (reply != data)
		memcpy(reply, data, len);
	CHECK_IS(tern_claim_shorten(t, reply, len + 1), -EMSGSIZE);
	CHECK_IS(tern_claim_shorten(t, reply, reply_len + 1), 0);
	CHECK_IS(tern_claim_shorten(t, reply, reply_len), 0);
	CHECK_IS(tern_claim_shorten(t, reply, reply_len + 1), -EMSGSIZE);
	CHECK_IS(tern_reply_commit(t, m, reply, TELL, 3), 0);
	CHECK_IS(tern_claim_shorten(t, reply, 0), -EINVAL);
}

static void ranks_open(tern_handler *ask)
{
	local_open(2);
	local_on(ASK, ask);
	local_on(TELL, note_reply);
}

/* Every block of both can still be had. */
static void check_no_block_lost(void)
{
	void *claimed[TERN_POOL_BLOCKS];
	for (uint32_t i = 0; i < 4; i++) {
		for (int k = 0; k < TERN_POOL_BLOCKS; k++)
			REQUIRE((claimed[k] = handed_claim(local[i / 2], i % 2, 8)) != NULL);
		for (int k = 0; k < TERN_POOL_BLOCKS; k++)
			CHECK_IS(tern_abandon(local[i / 2], claimed[k]), 0);
	}
	local_close();
}

static void check_claim(uint32_t dst, size_t len)
{
	unsigned char *claimed = handed_claim(local[0], dst, CLAIMED);
	REQUIRE(claimed != NULL);
	chance_fill(claimed, CLAIMED, 4);
	CHECK_IS(tern_claim_shorten(local[0], claimed, CLAIMED + 1), -EMSGSIZE);
	CHECK(sentence_has(-EMSGSIZE, "1000"));
	CHECK_IS(tern_claim_shorten(local[0], claimed, CLAIMED), 0);
	CHECK_IS(tern_claim_shorten(local[0], claimed, len), 0);
	CHECK_IS(tern_claim_shorten(local[0], claimed, len + 1), -EMSGSIZE);
	CHECK_IS(tern_commit(local[0], claimed, ASK, 1, 2, 3), 0);
	local_settle();
	CHECK(requests.len == len && requests.has_payload);
	CHECK(requests.words == 3 && chance_filled(requests.data, len, 4));
}

TEST(of_a_shortened_claim_only_the_beginning_is_sent)
{
	ranks_open(note_request);
	for (uint32_t dst = 0; dst < 2; dst++)
		for (size_t len = 0; len <= CLAIMED; len += 125)
			check_claim(dst, len);
	CHECK_IS(requests.count, 18);
	check_no_block_lost();
}

TEST(a_reply_is_shortened_in_the_requests_block_and_in_one_of_its_own)
{
	ranks_open(reply_shortened);
	for (unsigned i = 0; i < 3 * TERN_POOL_BLOCKS; i++) {
		from = i % 3 == 0   ? TERN_CLAIM_ANY
		       : i % 3 == 1 ? TERN_CLAIM_SAME
				    : TERN_CLAIM_FRESH;
		reply_len = i % 4 * 100;
		check_claim(i % 2, 999 - i);
		CHECK_IS(replies.count, i + 1);
		CHECK(replies.len == reply_len && replies.has_payload);
		CHECK(replies.words == 1 && chance_filled(replies.data, reply_len, 4));
	}
	check_no_block_lost();
}

TEST(only_an_open_claim_is_shortened)
{
	ranks_open(note_request);
	unsigned char *claimed = handed_claim(local[0], 1, CLAIMED);
	REQUIRE(claimed != NULL);
	CHECK_IS(tern_claim_shorten(local[0], NULL, 0), -EINVAL);
	CHECK_IS(tern_claim_shorten(local[0], claimed + 1, 0), -EINVAL);
	CHECK_IS(tern_claim_shorten(local[0], claimed + sizeof(struct block), 0), -EINVAL);
	CHECK_IS(tern_claim_shorten(local[1], claimed, 0), -EINVAL);
	CHECK(sentence_has(-EINVAL, "rank 1"));
	CHECK_IS(tern_abandon(local[0], claimed), 0);
	CHECK_IS(tern_claim_shorten(local[0], claimed, 0), -EINVAL);
	CHECK_IS(requests.count, 0);
	check_no_block_lost();
}

/* Commits the request's own payload without a claim, or after another claim has replaced it. */
static void commit_unclaimed(tern *t, const tern_msg *m)
{
	void *own = (void *)(uintptr_t)tern_msg_data(m, NULL), *fresh;
	arrival_note(&requests, t, m);
	CHECK_IS(tern_claim_shorten(t, own, 0), -EINVAL);
	CHECK_IS(tern_reply_commit(t, m, own, TELL), -EINVAL);
	REQUIRE(tern_reply_claim(t, m, 10, TERN_CLAIM_SAME, &own) == 0);
	REQUIRE(tern_reply_claim(t, m, TERN_PAYLOAD_MAX, TERN_CLAIM_FRESH, &fresh) == 0);
	CHECK_IS(tern_reply_commit(t, m, own, TELL), -EINVAL);
	CHECK_IS(tern_reply_commit(t, m, fresh, TELL), 0);
}

TEST(a_reply_commits_the_last_claim_and_no_other)
{
	ranks_open(commit_unclaimed);
	for (unsigned i = 0; i < 3 * TERN_POOL_BLOCKS; i++) {
		CHECK_IS(tern_request_data(local[0], i % 2, ASK, "ten bytes", 10), 0);
		local_settle();
		CHECK(replies.count == i + 1 && replies.len == TERN_PAYLOAD_MAX);
	}
	check_no_block_lost();
}
