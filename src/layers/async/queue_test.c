/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/* Turns: whose comes next, what is legal in one, and how many may wait. */
#include <errno.h>
#include <tern/async.h>

#include "core/core.h"
#include "endpoint/endpoint.h"
#include "lib/handed.h"
#include "lib/local.h"

enum { ASK, TELL };

/* Something that takes `left` turns and writes down when it had them. */
struct chore {
	unsigned id, left;
	int result; /* of the last turn */
};

static unsigned order[4096];
static _Atomic unsigned turns; /* atomic: another thread may be giving them */

static int chore_turn(tern *t, void *arg)
{
	struct chore *j = arg;
	(void)t;
	order[turns++ % 4096] = j->id;
	return --j->left ? 1 : j->result;
}

/* -- Fairness, counted in turns ----------------------------------------------------------- */

TEST(everything_in_the_queue_has_one_turn_after_the_other_in_a_circle)
{
	struct chore chore[10];
	tern_op op = TERN_OP;
	local_open(1);
	tern_hold(local[0]);
	for (unsigned i = 0; i < 10; i++) {
		chore[i] = (struct chore){ .id = i, .left = 100 };
		CHECK_IS(tern_async_start(local[0], chore_turn, &chore[i], &op), 0);
	}
	CHECK_IS(turns, 0);
	tern_release(local[0]);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(turns, 1000);
	for (unsigned i = 0; i < 1000; i++)
		CHECK_IS(order[i], i % 10);
	local_close();
}

TEST(those_with_less_to_do_leave_the_circle_and_the_others_go_on)
{
	struct chore chore[3] = { { 0, 1, 0 }, { 1, 2, 0 }, { 2, 3, 0 } };
	const unsigned want[] = { 0, 1, 2, 1, 2, 2 };
	tern_op op = TERN_OP;
	local_open(1);
	tern_hold(local[0]);
	for (unsigned i = 0; i < 3; i++)
		CHECK_IS(tern_async_start(local[0], chore_turn, &chore[i], &op), 0);
	tern_release(local[0]);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(turns, 6);
	CHECK(memcmp(order, want, sizeof want) == 0);
	local_close();
}

static _Atomic unsigned handled, most, between;

static void count_message(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	handled++;
	between++;
}

static int count_turn(tern *t, void *arg)
{
	(void)t;
	most = between > most ? between : most;
	between = 0;
	return --*(_Atomic unsigned *)arg ? 1 : 0;
}

TEST(a_stream_of_messages_does_not_starve_the_queue)
{
	enum { MESSAGES = 100000 };
	_Atomic unsigned left = UINT32_MAX;
	tern_op op = TERN_OP;
	local_open(2);
	local_on(ASK, count_message);
	CHECK_IS(tern_async_start(local[0], count_turn, &left, &op), 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		CHECK_IS(tern_request(local[1], 0, ASK, i, i),
			 0); /* serves rank 0 when the ring is full */
	while (handled < MESSAGES) {
		tern_poll(local[0]);
		tern_poll(local[1]); /* the last may still be here */
	}
	CHECK_IS(handled, MESSAGES);
	CHECK(UINT32_MAX - left >= MESSAGES / 2048);
	CHECK(most <= 2048); /* a ring of them */
	local_close();
}

static int ask_turn(tern *t, void *arg)
{
	unsigned *left = arg;
	static unsigned asked;
	CHECK_IS(handled, asked); /* all that was sent before */
	int rc = tern_request(t, tern_rank(t), ASK, 1);
	asked += rc == 0;
	return rc ? rc : --*left ? 1 : 0;
}

TEST(a_long_queue_does_not_starve_messages_what_one_turn_sent_is_handled_before_the_next)
{
	unsigned left[100];
	tern_op op = TERN_OP;
	local_open(1);
	local_on(ASK, count_message);
	for (unsigned i = 0; i < 100; i++) {
		left[i] = 50;
		CHECK_IS(tern_async_start(local[0], ask_turn, &left[i], &op), 0);
	}
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	local_settle();
	CHECK_IS(handled, 5000);
	local_close();
}

/* -- Bounds and ends -------------------------------------------------------------------------- */

TEST(a_full_queue_refuses_and_takes_again_when_something_is_over)
{
	static struct chore chore[TERN_QUEUE_MAX + 1];
	tern_op op = TERN_OP;
	local_open(1);
	for (int round = 0; round < 2; round++) {
		tern_hold(local[0]);
		for (unsigned i = 0; i <= TERN_QUEUE_MAX; i++) {
			chore[i] = (struct chore){ .id = i, .left = 1 };
			CHECK_IS(tern_async_start(local[0], chore_turn, &chore[i], &op),
				 i < TERN_QUEUE_MAX ? 0 : -EAGAIN);
		}
		CHECK(sentence_has(-EAGAIN, "256 functions are in the queue of rank 0"));
		tern_release(local[0]);
		CHECK_IS(tern_op_wait(local[0], &op), 0);
	}
	CHECK_IS(turns, 2 * TERN_QUEUE_MAX);
	local_close();
}

TEST(the_handle_has_the_error_of_the_last_turn_and_signals_its_flag)
{
	struct chore good = { .left = 3 }, bad = { .left = 2, .result = -EILSEQ };
	_Atomic uint64_t flag = 0;
	tern_op op = { .flag = &flag };
	local_open(1);
	CHECK_IS(tern_async_start(local[0], chore_turn, &good, &op), 0);
	CHECK_IS(tern_async_start(local[0], chore_turn, &bad, &op), 0);
	CHECK_IS(tern_wait(local[0], &flag, 2), 0);
	CHECK_IS(tern_op_test(local[0], &op), -EILSEQ);
	CHECK_IS(tern_op_test(local[0], &op), 1);
	local_close();
}

TEST(without_a_handle_the_call_waits_until_all_turns_are_over)
{
	struct chore chore = { .left = 7, .result = -EILSEQ };
	local_open(1);
	CHECK_IS(tern_async_start(local[0], chore_turn, &chore, NULL), -EILSEQ);
	CHECK_IS(turns, 7);
	tern_hold(local[0]);
	CHECK_IS(tern_async_start(local[0], chore_turn, &chore, NULL), -EDEADLK);
	tern_release(local[0]);
	CHECK_IS(tern_async_start(local[0], NULL, NULL, NULL), -EINVAL);
	local_close();
}

static int never(tern *t, void *arg)
{
	(void)t;
	atomic_fetch_add((_Atomic unsigned *)arg, 1);
	return 1;
}

TEST(what_is_not_over_when_the_endpoint_closes_is_dropped)
{
	static _Atomic unsigned count;
	static tern_op op;
	local_open(1);
	CHECK_IS(tern_async_start(local[0], never, (void *)&count, &op), 0);
	while (count < 10)
		tern_poll(local[0]);
	local_close();
	CHECK_IS(op.pending, 1);
}

static int until(tern *t, void *arg)
{
	struct endpoint *e = t->own;
	(void)arg;
	return atomic_load(&e->pulse->count[PULSE_NAPS]) ? 0 : -EAGAIN;
}

TEST(a_rank_whose_turns_can_do_nothing_naps)
{
	tern_op op = TERN_OP;
	local_open(1);
	for (int i = 0; i < 5; i++)
		CHECK_IS(tern_async_start(local[0], until, NULL, &op), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0); /* or for ever */
	local_close();
}

/* -- Handlers that hand their work over -------------------------------------------------------- */

static const tern_msg *kept;
static tern_op work;
static _Atomic unsigned told;

/* Sends one answer in a turn. */
static int answer_turn(tern *t, void *arg)
{
	const tern_msg *m = arg;
	static uint64_t sent;
	int rc = tern_request(t, tern_msg_src(m), TELL, sent);
	if (rc)
		return rc;
	sent++;
	return sent < tern_msg_word(m, 0) ? 1 : tern_msg_drop(t, m);
}

static void hand_over(tern *t, const tern_msg *m)
{
	kept = handed_keep(t, m);
	CHECK_IS(tern_async_start(t, answer_turn, (void *)(uintptr_t)kept, NULL),
		 -EPERM); /* it cannot wait */
	CHECK_IS(tern_async_start(t, answer_turn, (void *)(uintptr_t)kept, &work), 0);
}

static void count_told(tern *t, const tern_msg *m)
{
	(void)t;
	CHECK_IS(tern_msg_word(m, 0), told);
	told++;
}

TEST(a_handler_may_keep_its_message_and_hand_its_work_over)
{
	local_open(2);
	local_on(ASK, hand_over);
	local_on(TELL, count_told);
	CHECK_IS(tern_request_data(local[0], 1, ASK, "payload", 8, 10000), 0);
	while (told < 10000)
		local_settle();
	CHECK_IS(tern_op_wait(local[1], &work), 0);
	local_close();
}

/* -- What is legal in a turn ------------------------------------------------------------------- */

static _Atomic int refused;

static int waits_turn(tern *t, void *arg)
{
	_Atomic uint64_t flag = 0;
	tern_op mine = { .pending = 1 };
	unsigned char byte;
	(void)arg;
	CHECK_IS(tern_wait(t, &flag, 1), -EDEADLK);
	CHECK(sentence_has(-EDEADLK, "in a turn"));
	CHECK_IS(tern_barrier(t), -EDEADLK);
	CHECK_IS(tern_op_wait(t, &mine), -EDEADLK);
	CHECK_IS(tern_async_start(t, never, NULL, NULL), -EDEADLK);
	CHECK_IS(tern_async_send_start(t, 0, 0, NULL, NULL, NULL), -EDEADLK);
	CHECK_IS(tern_async_get_start(t, &byte, 0, 1, NULL), -EDEADLK);
	CHECK_IS(tern_close(t), -EPERM);
	CHECK(sentence_has(-EPERM, "in a turn"));
	CHECK_IS(tern_poll(t), 0);
	refused++;
	return 0;
}

TEST(in_a_turn_nothing_waits_and_nothing_closes)
{
	local_open(2);
	CHECK_IS(tern_async_start(local[0], waits_turn, NULL, NULL), 0);
	CHECK_IS(refused, 1);
	local_close();
}

static _Atomic unsigned sent;

static int flood_turn(tern *t, void *arg)
{
	unsigned most_sends = *(unsigned *)arg;
	for (; sent < most_sends; sent++) {
		int rc = tern_request(t, 1, ASK, sent, 2);
		if (rc) {
			CHECK_IS(rc, -EAGAIN);
			refused++;
			return rc;
		}
	}
	return 0;
}

TEST(in_a_turn_a_send_without_room_comes_back_and_is_tried_again)
{
	unsigned messages = 20000;
	tern_op op = TERN_OP;
	local_open(2);
	local_on(ASK, count_message);
	tern_hold(local[1]);
	CHECK_IS(tern_async_start(local[0], flood_turn, &messages, &op), 0);
	while (!refused)
		tern_poll(local[0]);
	CHECK(sent < messages);
	CHECK_IS(handled, 0);
	tern_release(local[1]);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	while (handled < messages)
		local_settle();
	CHECK_IS(handled, messages);
	local_close();
}

static int nests_turn(tern *t, void *arg)
{
	return tern_async_start(t, chore_turn, arg, &work);
}

TEST(a_turn_may_hand_over_more)
{
	struct chore chore = { .left = 5 };
	local_open(1);
	CHECK_IS(tern_async_start(local[0], nests_turn, &chore, &work), 0);
	CHECK_IS(tern_op_wait(local[0], &work), 0);
	CHECK_IS(turns, 5);
	local_close();
}
