/* SPDX-License-Identifier: BSD-3-Clause */
/* Which thread has an endpoint, and what a thread serves while it waits in another. */
#include <errno.h>
#include <pthread.h>

#include "lib/local.h"

enum { ASK, ANSWER };

static _Atomic uint64_t answered;
static int code;

static void answer(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_reply(t, m, ANSWER), 0);
}

static void count_answer(tern *t, const tern_msg *m)
{
	arrival_note(&replies, t, m);
	tern_signal(t, &answered, 1);
}

static void pair_open(tern_handler *ask)
{
	local_open(2);
	local_on(ASK, ask);
	local_on(ANSWER, count_answer);
}

TEST(a_wait_serves_the_endpoints_that_nobody_has_used_yet)
{
	pair_open(answer);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[0], &answered, 1), 0);
	CHECK_IS(requests.rank, 1);
	local_close();
}

TEST(a_wait_serves_the_other_endpoints_of_its_thread)
{
	pair_open(answer);
	CHECK_IS(tern_poll(local[1]), 0); /* it has a thread now: this one */
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[0], &answered, 1), 0);
	local_close();
}

static void poll_replies_and_answer(tern *t, const tern_msg *m)
{
	code = tern_poll_replies(t);
	answer(t, m);
}

TEST(a_handler_that_is_served_by_a_wait_elsewhere_may_poll_for_replies)
{
	pair_open(poll_replies_and_answer);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[0], &answered, 1), 0);
	CHECK_IS(code, 0);
	local_close();
}

static void send_and_answer(tern *t, const tern_msg *m)
{
	code = tern_request(t, 0, ASK);
	answer(t, m);
}

TEST(a_handler_that_is_served_by_a_wait_elsewhere_must_not_request)
{
	pair_open(send_and_answer);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[0], &answered, 1), 0);
	CHECK_IS(code, -EPERM);
	CHECK_IS(requests.count, 1);
	local_close();
}

static void send_later(tern *t, void *arg)
{
	(void)arg;
	code = tern_request(t, 0, ANSWER);
}

static void defer_send(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_defer(t, send_later, NULL), 0);
}

TEST(what_was_deferred_by_an_endpoint_that_nobody_has_used_may_send)
{
	pair_open(defer_send);
	code = 1;
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[0], &answered, 1), 0);
	CHECK_IS(code, 0);
	local_close();
}

TEST(an_endpoint_under_a_hold_is_not_served_by_a_wait_in_another)
{
	local_open(3);
	local_on(ASK, answer);
	local_on(ANSWER, count_answer);
	for (int used = 0; used < 2; used++) {
		if (used)
			tern_poll(local[1]);
		requests.count = 0;
		tern_hold(local[1]);
		CHECK_IS(tern_request(local[0], 1, ASK), 0);
		CHECK_IS(tern_request(local[0], 2, ASK), 0);
		CHECK_IS(tern_wait(local[0], &answered, 1), 0);
		CHECK_IS(requests.count, 1); /* rank 2's */
		tern_release(local[1]);
		CHECK_IS(tern_wait(local[0], &answered, 1), 0);
		CHECK_IS(requests.count, 2);
	}
	local_close();
}

/*
 * A handler of one endpoint that uses another: its own endpoint must not be polled meanwhile. Only
 * where handlers run in polls: elsewhere the other one may be in use that very moment.
 */
static unsigned depth, deepest;

static void use_another(tern *t, const tern_msg *m)
{
	depth++;
	deepest = depth > deepest ? depth : deepest;
	arrival_note(&requests, t, m);
	if (tern_rank(t) == 1 && requests.count == 1)
		for (int i = 0; i < 5000;
		     i++) /* more than the ring has room for: it blocks and serves */
			code = code ? code : tern_request(local[2], 0, ANSWER, 1, 2);
	depth--;
}

TEST(a_handler_is_not_interrupted_by_its_endpoint_when_it_blocks_in_another)
{
	local_polled();
	local_open(3);
	local_on(ASK, use_another);
	local_on(ANSWER, note_reply);
	tern_poll(local[0]), tern_poll(local[1]), tern_poll(local[2]);
	for (int i = 0; i < 4; i++)
		CHECK_IS(tern_request(local[0], 1, ASK), 0);
	local_settle();
	CHECK_IS(code, 0);
	CHECK_IS(deepest, 1);
	CHECK_IS(requests.count, 4);
	CHECK_IS(replies.count, 5000);
	local_close();
}

/* -- Threads ------------------------------------------------------------------------ */

static void *ask_from_thread(void *arg)
{
	tern_attach(local[0]);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[0], &answered, 1), 0);
	return arg;
}

TEST(an_endpoint_moves_to_the_thread_that_attaches_it)
{
	pair_open(answer);
	CHECK_IS(tern_poll(local[1]), 0); /* stays with this thread */
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[0], &answered, 1), 0);
	pthread_t thread;
	REQUIRE(pthread_create(&thread, NULL, ask_from_thread, NULL) == 0);
	while (requests.count < 2)
		tern_poll(local[1]);
	pthread_join(thread, NULL);
	tern_attach(local[0]);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[0], &answered, 1), 0);
	local_close();
}

TEST(a_thread_may_open_endpoints_and_leave_them_to_others)
{
	pair_open(answer);
	CHECK_IS(tern_poll(local[1]), 0);
	pthread_t thread;
	REQUIRE(pthread_create(&thread, NULL, ask_from_thread, NULL) == 0);
	while (requests.count < 1)
		tern_poll(local[1]);
	pthread_join(thread, NULL);
	local_close();
}
