/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that handlers put off: when they run, in which order, and how many there may be. */
#include <errno.h>

#include "lib/local.h"

enum { ASK, TELL };

static int code;
static unsigned ran;
static uint64_t order[TERN_DEFER_MAX + 1];

static void note_run(tern *t, void *arg)
{
	(void)t;
	order[ran++] = (uintptr_t)arg;
}

static void defer_words(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_defer(t, note_run, (void *)(uintptr_t)tern_msg_word(m, 0)), 0);
	CHECK_IS(tern_defer(t, note_run, (void *)(uintptr_t)(tern_msg_word(m, 0) + 1)), 0);
	CHECK_IS(ran, 0);
}

static void pair_open(tern_handler *ask)
{
	local_open(2);
	local_on(ASK, ask);
	local_on(TELL, note_reply);
}

TEST(deferred_work_runs_after_the_handlers_of_the_poll_and_in_order)
{
	pair_open(defer_words);
	tern_hold(local[1]); /* so that both are handled at a stretch */
	CHECK_IS(tern_request(local[0], 1, ASK, 10), 0);
	CHECK_IS(tern_request(local[0], 1, ASK, 20), 0);
	tern_release(local[1]);
	CHECK_IS(local_settle(), 2);
	CHECK_IS(ran, 4);
	CHECK(order[0] == 10 && order[1] == 11 && order[2] == 20 && order[3] == 21);
	local_close();
}

static void send_many(tern *t, void *arg)
{
	static const unsigned char bytes[100] = "a payload";
	for (unsigned i = 0; i < (uintptr_t)arg; i++) {
		code = code ? code : tern_request(t, 0, TELL, i, 1);
		code = code ? code : tern_request_data(t, 0, TELL, bytes, sizeof bytes, i);
	}
	CHECK(tern_poll(t) >= 0);
}

static void defer_send(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_defer(t, send_many, (void *)(uintptr_t)tern_msg_word(m, 0)), 0);
}

TEST(deferred_work_may_send_and_poll)
{
	pair_open(defer_send);
	CHECK_IS(tern_request(local[0], 1, ASK, 3), 0);
	local_settle();
	CHECK_IS(code, 0);
	CHECK_IS(replies.count, 6);
	CHECK_IS(replies.len, 100);
	local_close();
}

TEST(deferred_work_may_fill_a_ring_and_block)
{
	pair_open(defer_send);
	CHECK_IS(tern_poll(local[1]), 0);
	CHECK_IS(tern_request(local[0], 1, ASK, 2000), 0);
	local_settle();
	CHECK_IS(code, 0);
	CHECK_IS(replies.count, 4000);
	local_close();
}

static void defer_again(tern *t, void *arg)
{
	ran++;
	if ((uintptr_t)arg)
		CHECK_IS(tern_defer(t, defer_again, (void *)((uintptr_t)arg - 1)), 0);
}

static void defer_chain(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_defer(t, defer_again, (void *)(uintptr_t)tern_msg_word(m, 0)), 0);
}

TEST(deferred_work_may_defer_again)
{
	pair_open(defer_chain);
	CHECK_IS(tern_request(local[0], 1, ASK, 1000), 0);
	for (int i = 0; i < 1002; i++)
		tern_poll(local[1]);
	CHECK_IS(ran, 1001);
	local_close();
}

static void defer_forever(tern *t, void *arg)
{
	ran++;
	tern_defer(t, defer_forever, arg);
}

TEST(deferred_work_that_always_defers_itself_does_not_hold_up_the_program)
{
	pair_open(defer_words);
	CHECK_IS(tern_defer(local[0], defer_forever, NULL), 0);
	for (int i = 0; i < 10; i++)
		CHECK_IS(tern_poll(local[0]), 0);
	tern_hold(local[0]);
	CHECK(ran == 10 || (ran > 10 && tern_delivery_get(local[0]) != TERN_DELIVERY_POLL));
	tern_release(local[0]);
	local_close();
}

static void defer_too_much(tern *t, const tern_msg *m)
{
	(void)m;
	for (unsigned i = 0; i < TERN_DEFER_MAX; i++)
		CHECK_IS(tern_defer(t, note_run, (void *)(uintptr_t)i), 0);
	code = tern_defer(t, note_run, NULL);
	CHECK(sentence_has(code, "256"));
}

TEST(deferred_work_is_bounded_and_what_was_taken_still_runs)
{
	pair_open(defer_too_much);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	local_settle();
	CHECK_IS(code, -EAGAIN);
	CHECK_IS(ran, TERN_DEFER_MAX);
	for (unsigned i = 0; i < TERN_DEFER_MAX; i++)
		CHECK_IS(order[i], i);
	local_close();
}

static unsigned depth, deepest;

/* Its send finds what it has sent, whose handler defers it again. */
static void send_to_oneself(tern *t, void *arg)
{
	deepest = ++depth > deepest ? depth : deepest;
	for (int i = 0; ran < 1000 && i < 4; i++)
		CHECK_IS(tern_request(t, tern_rank(t), ASK, ran++), 0);
	depth--;
	(void)arg;
}

static void defer_sending(tern *t, const tern_msg *m)
{
	(void)m;
	(void)!tern_defer(t, send_to_oneself, NULL);
}

TEST(deferred_work_runs_one_after_another_and_the_stack_does_not_grow)
{
	pair_open(defer_sending);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	for (int i = 0; i < 2000; i++)
		tern_poll(local[1]);
	CHECK_IS(ran, 1000);
	CHECK_IS(deepest, 1);
	local_close();
}

TEST(the_program_may_defer_too)
{
	pair_open(defer_words);
	tern_poll(local[0]);
	CHECK_IS(tern_defer(local[0], note_run, NULL), 0);
	CHECK(ran == 0 || tern_delivery_get(local[0]) != TERN_DELIVERY_POLL);
	CHECK_IS(tern_poll(local[0]), 0);
	CHECK_IS(ran, 1);
	local_close();
}

TEST(deferred_work_does_not_run_under_a_hold)
{
	pair_open(defer_words);
	tern_hold(local[0]);
	CHECK_IS(tern_defer(local[0], note_run, NULL), 0);
	CHECK_IS(tern_poll(local[0]), 0);
	CHECK_IS(ran, 0);
	tern_release(local[0]);
	CHECK_IS(tern_poll(local[0]), 0);
	CHECK_IS(ran, 1);
	local_close();
}

TEST(no_function_is_deferred)
{
	local_open(2);
	CHECK_IS(tern_defer(local[0], NULL, NULL), -EINVAL);
	CHECK(sentence_has(-EINVAL, "tern_defer() was given no function"));
	CHECK_IS(tern_poll(local[0]), 0);
	local_close();
}
