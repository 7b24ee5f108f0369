/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies above TERN_PAYLOAD_MAX: they always have room, whatever else is under way. */
#include <errno.h>
#include <sched.h>

#include "endpoint/endpoint.h"
#include "lib/chance.h"
#include "lib/every_net.h"
#include "lib/far.h"
#include "lib/handed.h"
#include "lib/ranks.h"

enum { ASK, TELL, FLOOD = 5 * TERN_POOL_BLOCKS };

static unsigned char bytes[TERN_REQUEST_MAX + 1];

/* Most replies are as long as can be. What is replied with may be changed at once. */
static void answer_most(tern *t, const tern_msg *m)
{
	static _Thread_local unsigned char copy[TERN_REQUEST_MAX];
	size_t len = tern_msg_word(m, 0) % 7 ? TERN_REQUEST_MAX : TERN_PAYLOAD_MAX;
	memcpy(copy, bytes, len);
	CHECK_IS(tern_reply_data(t, m, TELL, copy, len, tern_msg_word(m, 0)), 0);
	memset(copy, 0, len);
	atomic_fetch_add(&requests.count, 1);
}

static uint64_t next[LOCAL_MOST][LOCAL_MOST];

static void count_reply(tern *t, const tern_msg *m)
{
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	uint64_t i = tern_msg_word(m, 0);
	CHECK_IS(i, next[tern_rank(t)][tern_msg_src(m)]++);
	CHECK_IS(len, i % 7 ? TERN_REQUEST_MAX : TERN_PAYLOAD_MAX);
	CHECK(chance_filled(data, len, 1));
	atomic_fetch_add(&replies.count, 1);
}

static void all_open(tern_handler *ask)
{
	local_open(3);
	local_on(ASK, ask);
	local_on(TELL, count_reply);
	chance_fill(bytes, sizeof bytes, 1);
	memset(next, 0, sizeof next);
}

static void until_replied(unsigned n)
{
	while (atomic_load(&replies.count) < n)
		for (uint32_t r = 0; r < 3; r++)
			CHECK(tern_poll(local[r]) >= 0);
}

/* -- Floods ----------------------------------------------------------------------------------- */

/* Large requests besides, so that no large block is free for long. */
static void floods(void)
{
	all_open(answer_most);
	for (unsigned i = 0; i < FLOOD; i++)
		for (uint32_t from = 0; from < 3; from++)
			for (uint32_t to = 0; to < 3; to++) {
				size_t len = i % 4 ? TERN_REQUEST_MAX : 0;
				CHECK_IS(tern_request_data(local[from], to, ASK, bytes, len, i), 0);
			}
	until_replied(9 * FLOOD);
	CHECK_IS(requests.count, 9 * FLOOD);
	local_close();
}

TEST(floods_of_requests_are_answered_with_32_KiB_each_in_order)
{
	on_every_network(floods);
}

TEST(and_so_they_are_where_packets_are_lost_doubled_and_late)
{
	far_use("drop=0.03,duplicate=0.02,reorder=0.02,seed=4");
	floods();
}

/* Rank 0 asks and does not look, until rank 1 has no room left for the rest of a long reply. */
static void until_full(void)
{
	local_polled();
	all_open(answer_most);
	for (unsigned i = 0; i < FLOOD; i++)
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
	tern_hold(local[0]);
	for (int i = 0; i < FLOOD; i++)
		CHECK(tern_poll(local[1]) >= 0);
	CHECK(requests.count < FLOOD && local[1]->own->site.peer[0].owing);
}

TEST(a_rank_that_does_not_look_holds_up_nobody_else_and_gets_its_replies_when_it_does)
{
	until_full();
	unsigned before = requests.count;
	CHECK_IS(tern_request(local[2], 1, ASK, 0), 0);
	while (requests.count == before)
		CHECK(tern_poll(local[1]) >= 0);
	tern_release(local[0]);
	until_replied(FLOOD + 1);
	local_close();
}

TEST(a_rank_that_closes_sends_the_rest_of_its_long_replies)
{
	until_full();
	unsigned before = requests.count;
	tern_release(local[0]);
	CHECK_IS(tern_close(local[1]), 0);
	local[1] = NULL;
	while (local_settle())
		;
	CHECK(replies.count >= before);
	local_close();
}

static struct both { /* what both ranks see */
	_Atomic bool past, asked;
	_Atomic unsigned answered;
} * both;

/* Rank 0 comes last to the barrier, where room for the rest of a reply comes. */
static void barrier_behind_replies(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, ASK, answer_most), 0);
	CHECK_IS(tern_on(t, TELL, count_reply), 0);
	chance_fill(bytes, sizeof bytes, 1);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t))
		atomic_store(&both->past, true); /* the end of a barrier handles what is there */
	while (!atomic_load(&both->past))
		sched_yield();
	for (unsigned i = 0; i < FLOOD && !tern_rank(t); i++)
		CHECK_IS(tern_request(t, 1, ASK, i), 0);
	if (!tern_rank(t))
		atomic_store(&both->asked, true); /* a send looks, too, so no reply comes before */
	while (!atomic_load(&both->asked))
		sched_yield();
	while (tern_rank(t) && !t->own->site.peer[0].owing)
		CHECK(tern_poll(t) >= 0);
	if (tern_rank(t))
		atomic_store(&both->answered, requests.count);
	while (!atomic_load(&both->answered))
		sched_yield();
	CHECK_IS(tern_barrier(t), 0);
	CHECK(tern_rank(t) || replies.count >= atomic_load(&both->answered));
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_reply_that_was_sent_before_a_barrier_is_handled_when_that_is_over)
{
	local_polled();
	both = ranks_shared(sizeof *both);
	ranks_run(2, barrier_behind_replies);
}

/* -- Claims ----------------------------------------------------------------------------------- */

static const uint64_t all_words[TERN_WORDS_MAX] = { 1, 2, 3, 4, 5, 6, 7, 8 };

/* Composes one and forgets it, abandons another, and sends the first bytes of a third. */
static void compose(tern *t, const tern_msg *m)
{
	void *claimed = NULL;
	size_t len = tern_msg_word(m, 0);
	CHECK_IS(tern_reply_claim(t, m, TERN_REQUEST_MAX, TERN_CLAIM_FRESH, &claimed), 0);
	memset(claimed, 1, TERN_REQUEST_MAX);
	CHECK_IS(tern_reply_claim(t, m, TERN_PAYLOAD_MAX + 1, TERN_CLAIM_ANY, &claimed), 0);
	CHECK_IS(tern_abandon(t, claimed), 0);
	CHECK_IS(tern_reply_commit(t, m, claimed, TELL), -EINVAL);
	CHECK_IS(tern_reply_claim(t, m, TERN_REQUEST_MAX, TERN_CLAIM_FRESH, &claimed), 0);
	if (len > TERN_REQUEST_MAX)
		return; /* the third is forgotten, too */
	memcpy(claimed, bytes, TERN_REQUEST_MAX);
	CHECK_IS(tern_claim_shorten(t, claimed, len), 0);
	CHECK_IS(tern_reply_commit_array(t, m, claimed, TELL, TERN_WORDS_MAX, all_words), 0);
}

static void composed(void)
{
	static const size_t lens[] = { 0, 1, TERN_PAYLOAD_MAX, TERN_PAYLOAD_MAX + 1,
				       TERN_REQUEST_MAX };
	all_open(compose);
	local_on(TELL, note_reply);
	for (unsigned i = 0; i < FLOOD; i++) {
		CHECK_IS(tern_request(local[0], i % 2, ASK, TERN_REQUEST_MAX + 1), 0);
		CHECK_IS(tern_request(local[0], i % 2, ASK, lens[i % 5]), 0);
		local_settle();
		CHECK_IS(replies.len, lens[i % 5]);
		CHECK(chance_filled(replies.data, replies.len, 1));
		CHECK_IS(replies.words, TERN_WORDS_MAX);
		CHECK(memcmp(replies.word, all_words, sizeof all_words) == 0);
	}
	CHECK_IS(replies.count, FLOOD);
	local_close();
}

TEST(a_long_reply_is_composed_shortened_abandoned_and_forgotten)
{
	on_every_network(composed);
}

/* -- Kept messages ---------------------------------------------------------------------------- */

static const tern_msg *kept[FLOOD];
static unsigned keeps;

static void keep(tern *t, const tern_msg *m)
{
	if (CHECK(keeps < FLOOD && tern_msg_keep(t, m, &kept[keeps]) == 0))
		keeps++;
	atomic_fetch_add(&replies.count, 1);
}

static void kept_replies(void)
{
	all_open(answer_most);
	local_on(TELL, keep);
	for (unsigned i = 0; i < 8; i++)
		CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	until_replied(8);
	while (keeps--) {
		CHECK(chance_filled(tern_msg_data(kept[keeps], NULL), TERN_REQUEST_MAX, 1));
		CHECK_IS(tern_msg_drop(local[0], kept[keeps]), 0);
	}
	keeps = 0;
	local_close();
}

TEST(long_replies_are_kept_as_long_as_their_receiver_wants)
{
	on_every_network(kept_replies);
}
