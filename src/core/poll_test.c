/* SPDX-License-Identifier: BSD-3-Clause */
/* Polling: which kinds, how many, and what a hold keeps away. */
#include <errno.h>
#include <tern/sim.h>

#include "endpoint/endpoint.h"
#include "lib/handed.h"
#include "lib/local.h"

enum { ASK, TELL, ONE_WAY };

static void answer(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_reply(t, m, TELL, tern_msg_word(m, 0)), 0);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
	local_on(ONE_WAY, note_request);
	for (uint32_t r = 0; r < n; r++)
		CHECK_IS(tern_poll(local[r]), 0);
}

TEST(a_poll_handles_what_has_arrived_and_says_how_many)
{
	local_polled();
	ranks_open(3);
	CHECK_IS(tern_poll(local[1]), 0);
	for (unsigned n = 1; n < 20; n++) {
		for (unsigned i = 0; i < n; i++)
			CHECK_IS(tern_request(local[i % 2 * 2], 1, ONE_WAY, i), 0);
		unsigned sum = 0;
		for (int rc = tern_poll(local[1]); rc > 0; rc = tern_poll(local[1]))
			sum += (unsigned)rc;
		CHECK_IS(sum, n);
	}
	CHECK_IS(requests.count, 19 * 20 / 2);
	local_close();
}

TEST(requests_and_replies_are_polled_for_apart)
{
	local_polled();
	ranks_open(2);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	CHECK_IS(tern_poll_replies(local[1]), 0);
	CHECK_IS(requests.count, 0);
	CHECK_IS(tern_poll_requests(local[1]), 1);
	CHECK_IS(tern_request(local[1], 0, ONE_WAY, 2), 0);
	CHECK_IS(tern_poll_requests(local[0]), 1);
	CHECK_IS(requests.rank, 0);
	CHECK_IS(replies.count, 0);
	CHECK_IS(tern_poll_replies(local[0]), 1);
	CHECK_IS(replies.count, 1);
	local_close();
}

TEST(a_poll_for_requests_leaves_replies_and_the_other_way_round)
{
	local_polled();
	ranks_open(2);
	for (int i = 0; i < 10; i++)
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
	CHECK_IS(tern_poll(local[1]), 10);
	CHECK_IS(tern_request(local[1], 0, ONE_WAY, 7), 0);
	CHECK_IS(tern_poll_replies(local[0]), 10);
	CHECK_IS(requests.count, 10);
	CHECK_IS(tern_poll_requests(local[0]), 1);
	CHECK_IS(requests.count, 11);
	local_close();
}

/* -- Nested polls for replies ------------------------------------------------------ */

static unsigned depth, deepest, inner;

static void outer(tern *t, const tern_msg *m)
{
	deepest = ++depth > deepest ? depth : deepest;
	uint64_t word = tern_msg_word(m, 0);
	size_t len;
	const char *data = tern_msg_data(m, &len);
	int rc = tern_poll_replies(t);
	inner += rc > 0 ? (unsigned)rc : 0;
	CHECK(rc >= 0);
	CHECK_IS(tern_msg_word(m, 0), word);
	CHECK(tern_msg_data(m, NULL) == data);
	CHECK_IS(tern_reply_data(t, m, TELL, data, len, word), 0);
	depth--;
}

TEST(a_request_handler_may_poll_for_replies_and_still_reply)
{
	local_polled();
	local_open(2);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
	local_on(ONE_WAY, outer);
	for (uint32_t r = 0; r < 2; r++)
		tern_poll(local[r]);
	for (int i = 0; i < 20; i++) { /* replies wait at rank 0 when a request of rank 1 comes */
		CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
		CHECK_IS(tern_poll(local[1]), 1);
		CHECK_IS(tern_request_data(local[1], 0, ONE_WAY, "text", 5, 2), 0);
		CHECK_IS(tern_poll_requests(local[0]), 1);
		CHECK_IS(inner, i + 1);
		CHECK_IS(tern_poll(local[1]), 1);
		CHECK(strcmp((const char *)replies.data, "text") == 0);
	}
	CHECK_IS(deepest, 1);
	CHECK_IS(replies.count, 40);
	local_close();
}

static void answer_in_place_after_polling(tern *t, const tern_msg *m)
{
	unsigned char *reply = handed_reply_claim(t, m, 600);
	REQUIRE(reply != NULL);
	memset(reply, 9, 600);
	int rc = tern_poll_replies(t);
	inner += rc > 0 ? (unsigned)rc : 0;
	CHECK_IS(tern_reply_commit(t, m, reply, TELL), 0);
}

TEST(a_nested_poll_leaves_a_reply_that_is_being_composed_alone)
{
	local_polled();
	local_open(2);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
	local_on(ONE_WAY, answer_in_place_after_polling);
	tern_poll(local[0]), tern_poll(local[1]);
	for (int i = 0; i < 40; i++) {
		CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
		CHECK_IS(tern_poll(local[1]), 1);
		CHECK_IS(tern_request_data(local[1], 0, ONE_WAY, replies.data, i % 2 ? 10 : 600),
			 0);
		CHECK_IS(tern_poll_requests(local[0]), 1);
		CHECK_IS(tern_poll(local[1]), 1);
		CHECK(replies.len == 600 && replies.data[0] == 9 && replies.data[599] == 9);
	}
	CHECK_IS(inner, 40);
	local_close();
}

/* -- Holds ------------------------------------------------------------------------ */

TEST(under_a_hold_nothing_is_handled)
{
	ranks_open(2);
	tern_hold(local[1]);
	for (int i = 0; i < 20; i++) {
		CHECK_IS(tern_request(local[0], 1, ONE_WAY, i), 0);
		CHECK_IS(tern_request(local[1], 0, TELL, i),
			 0); /* sends look for arrivals, but not now */
		CHECK_IS(tern_request(local[1], 1, TELL, i), 0);
		CHECK_IS(tern_poll(local[1]), 0);
		CHECK_IS(tern_poll_requests(local[1]), 0);
		CHECK_IS(tern_poll_replies(local[1]), 0);
	}
	CHECK_IS(requests.count, 0);
	tern_release(local[1]);
	local_settle();
	CHECK_IS(requests.count, 20);
	CHECK_IS(replies.count, 40);
	local_close();
}

TEST(holds_nest_and_one_release_too_many_is_told_and_forgotten)
{
	ranks_open(2);
	tern_hold(local[1]);
	tern_hold(local[1]);
	CHECK_IS(tern_request(local[0], 1, ONE_WAY, 1), 0);
	tern_release(local[1]);
	CHECK_IS(tern_poll(local[1]), 0);
	CHECK_IS(requests.count, 0);
	tern_release(local[1]);
	tern_release(local[1]);
	CHECK_IS(tern_poll(local[1]), -EPERM);
	CHECK(strstr(tern_strerror(-EPERM), "more often than tern_hold()") != NULL);
	local_settle();
	CHECK_IS(requests.count, 1);
	tern_hold(local[1]);
	CHECK_IS(tern_request(local[0], 1, ONE_WAY, 1), 0);
	CHECK_IS(tern_poll(local[1]), 0);
	CHECK_IS(requests.count, 1);
	tern_release(local[1]);
	local_settle();
	CHECK_IS(requests.count, 2);
	local_close();
}

TEST(a_send_without_room_under_a_hold_is_refused_and_takes_nothing)
{
	for (unsigned n = 0; n <= TERN_WORDS_MAX; n++) {
		static const uint64_t words[TERN_WORDS_MAX];
		ranks_open(2);
		requests.count = 0;
		unsigned sent = 0;
		tern_hold(local[0]);
		tern_hold(local[1]); /* so that it makes no room */
		int rc;
		while ((rc = tern_request_array(local[0], 1, ONE_WAY, n, words)) == 0)
			sent++;
		CHECK_IS(rc, -EAGAIN);
		CHECK(sentence_has(-EAGAIN, "rank 1"));
		unsigned lines = n > TERN_LINE_WORDS ? 2 : 1;
		CHECK(sent >= RING_LEAVES * (REQUEST_LEAF_LINES - 2) / lines);
		CHECK_IS(tern_request_array(local[0], 1, ONE_WAY, n, words), -EAGAIN);
		tern_release(local[1]);
		tern_release(local[0]);
		local_settle();
		CHECK_IS(requests.count, sent);
		CHECK_IS(tern_request_array(local[0], 1, ONE_WAY, n, words), 0);
		local_settle();
		CHECK_IS(requests.count, sent + 1);
		local_close();
	}
}

static unsigned under_hold;

static void hold_in_handler(tern *t, const tern_msg *m)
{
	(void)m;
	tern_hold(t);
	unsigned before = replies.count;
	CHECK_IS(tern_poll_replies(t), 0);
	under_hold += replies.count - before;
	tern_release(t);
}

TEST(a_hold_in_a_handler_keeps_replies_away_too)
{
	local_polled();
	local_open(2);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
	local_on(ONE_WAY, hold_in_handler);
	tern_poll(local[0]), tern_poll(local[1]);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	CHECK_IS(tern_poll(local[1]), 1);
	CHECK_IS(tern_request(local[1], 0, ONE_WAY), 0);
	CHECK_IS(tern_poll_requests(local[0]), 1);
	CHECK_IS(under_hold, 0);
	CHECK_IS(tern_poll(local[0]), 1);
	local_close();
}

/* -- Silent peers -------------------------------------------------------------------- */

TEST(silent_peers_are_not_polled_and_are_heard_when_they_speak_again)
{
	enum { RANKS = 40 };
	local_polled();
	ranks_open(RANKS);
	for (int round = 0; round < 3; round++) {
		requests.count = 0;
		for (uint32_t r = 1; r < RANKS; r++)
			CHECK_IS(tern_request(local[r], 0, ONE_WAY, r), 0);
		for (int rc = tern_poll(local[0]); rc > 0; rc = tern_poll(local[0]))
			;
		CHECK_IS(requests.count, RANKS - 1);
		CHECK(local[0]->own->site.pollset >= RANKS - 1);
		for (int i = 0; i < 80000; i++) /* long enough for all to be taken for silent */
			tern_poll(local[0]);
		CHECK(local[0]->own->site.pollset < 4);
	}
	local_close();
}

static unsigned flood_handled;

/* Another rank sends the next one as soon as one is handled. */
static void flood(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	flood_handled++;
	CHECK_IS(tern_request(local[2], 1, ONE_WAY), 0);
}

TEST(what_lay_in_the_rings_is_due_and_what_came_later_is_not)
{
	enum { LYING = 100 };
	local_polled();
	local_open(3);
	local_on(ONE_WAY, flood);
	for (unsigned n = 0; n < LYING; n++)
		CHECK_IS(tern_request(local[2], 1, ONE_WAY), 0);
	struct endpoint *e = local[1]->own;
	attach_first(e);
	poll_mark(e);
	CHECK(poll_is_due(e));
	poll_once(e, KINDS_BOTH); /* each message that is handled sends another one */
	CHECK(flood_handled >= LYING);
	CHECK(flood_handled <= 2 * REQUEST_LEAF_LINES * TERN_LINE / TERN_PIECE);
	CHECK(!poll_is_due(e));
	local_close();
}

/* -- While declared work is done --------------------------------------------------------------- */

static unsigned served;
static bool working;

static int work_price(const tern_work *work, uint64_t *left)
{
	(void)work;
	*left = 1;
	return 0;
}

/* Asks to serve once, as where a controller handles messages while a program computes. */
static enum working work_once(uint64_t *left, uint64_t thread, bool may, bool others)
{
	(void)thread, (void)may, (void)others;
	return (*left)-- ? WORK_SERVE : WORK_DONE;
}

static void work_checked(tern *t)
{
	unsigned before = served;
	working = true;
	CHECK_IS(tern_sim_work(t, &(tern_work){ .integer = 1 }), 0);
	working = false;
	CHECK_IS(served, before);
}

static void work_deferred(tern *t, void *arg)
{
	(void)arg;
	work_checked(t);
}

static void work_in_handler(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK(!working);
	served++;
	work_checked(t);
	if (served == 1)
		CHECK_IS(tern_defer(t, work_deferred, NULL), 0);
}

TEST(work_serves_messages_but_not_in_handlers_or_what_they_defer_nor_under_holds)
{
	enum { MANY = 4 };
	static struct world computing;
	computing = world_real;
	computing.price = work_price;
	computing.work = work_once;
	local_polled();
	world_use(&computing);
	ranks_open(2);
	local_on(ASK, work_in_handler);
	for (unsigned i = 0; i < MANY; i++)
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
	while (local_underway())
		CHECK_IS(tern_poll(local[0]), 0);
	tern_hold(local[1]);
	work_checked(local[1]);
	tern_release(local[1]);
	for (unsigned i = 0; served < MANY && i < 10000; i++)
		CHECK_IS(tern_sim_work(local[1], &(tern_work){ .integer = 1 }), 0);
	CHECK_IS(served, MANY);
	local_close();
	world_use(&world_real);
}
