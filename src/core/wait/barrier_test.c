/* SPDX-License-Identifier: BSD-3-Clause */
/* What a barrier promises of messages, and barriers in two phases. */
#include <errno.h>
#include <pthread.h>
#include <tern/op.h>

#include "lib/local.h"

enum { ASK, TELL, REQUESTS = 480, RANKS = 4 };

static _Atomic unsigned handled[RANKS], answered;
static pthread_barrier_t sent;

static void answer(tern *t, const tern_msg *m)
{
	atomic_fetch_add(&handled[tern_rank(t)], 1);
	CHECK_IS(tern_reply(t, m, TELL, 1, 2), 0);
}

static void count_answer(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	atomic_fetch_add(&answered, 1);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, answer);
	local_on(TELL, count_answer);
	memset(handled, 0, sizeof handled);
	answered = 0;
}

static int blocking(tern *t)
{
	return tern_barrier(t);
}

static int in_two_phases(tern *t)
{
	tern_op op = TERN_OP;
	int rc = tern_barrier_start(t, &op);
	return rc ? rc : tern_op_wait(t, &op);
}

static int (*barrier)(tern *t);

/* Sends more requests than the ring for their replies holds, and then looks at none for a while. */
static void *send_and_compute(void *arg)
{
	tern *t = arg;
	tern_attach(t);
	for (int i = 0; i < REQUESTS; i++)
		CHECK_IS(tern_request(t, 1, ASK, 1, 2), 0);
	pthread_barrier_wait(&sent);
	CHECK_IS(tern_barrier(t), 0);
	nanosleep(&(struct timespec){ .tv_nsec = 700000000 }, NULL);
	while (atomic_load(&answered) < REQUESTS)
		tern_poll(t);
	return NULL;
}

static void all_is_handled_before_it_returns(void)
{
	pthread_t thread;
	local_polled();
	ranks_open(2);
	tern_attach(local[1]);
	pthread_barrier_init(&sent, NULL, 2);
	REQUIRE(pthread_create(&thread, NULL, send_and_compute, local[0]) == 0);
	pthread_barrier_wait(&sent);
	CHECK_IS(barrier(local[1]), 0);
	CHECK_IS(atomic_load(&handled[1]), REQUESTS);
	pthread_join(thread, NULL);
	local_close();
}

TEST(a_barrier_handles_what_was_sent_before_it_though_its_sender_does_not_look)
{
	barrier = blocking;
	all_is_handled_before_it_returns();
}

TEST(a_barrier_in_two_phases_handles_what_was_sent_before_it)
{
	barrier = in_two_phases;
	all_is_handled_before_it_returns();
}

/* -- In two phases ---------------------------------------------------------------------------- */

TEST(one_thread_can_play_all_ranks_of_a_barrier_in_two_phases)
{
	ranks_open(RANKS);
	for (int round = 0; round < 100; round++) {
		tern_op op[RANKS] = { TERN_OP, TERN_OP, TERN_OP, TERN_OP };
		for (uint32_t r = 0; r < RANKS; r++) {
			CHECK_IS(tern_barrier_start(local[r], &op[r]), 0);
			if (r == RANKS - 1)
				break;
			CHECK_IS(tern_op_wait_for(local[0], &op[0], 0), -ETIMEDOUT);
			CHECK_IS(op[0].pending, 1);
		}
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK_IS(tern_op_wait(local[r], &op[r]), 0);
	}
	local_close();
}

TEST(a_rank_is_in_one_barrier_at_a_time)
{
	tern_op op[2] = { TERN_OP, TERN_OP };
	ranks_open(2);
	CHECK_IS(tern_barrier_start(local[0], &op[0]), 0);
	CHECK_IS(tern_barrier_start(local[0], &op[0]), -EBUSY);
	CHECK(sentence_has(-EBUSY, "tern_barrier_start()"));
	CHECK_IS(tern_barrier(local[0]), -EBUSY);
	CHECK_IS(op[0].pending, 1);
	CHECK_IS(tern_barrier_start(local[1], &op[1]), 0);
	CHECK_IS(tern_op_wait(local[0], &op[0]), 0);
	CHECK_IS(tern_op_wait(local[1], &op[1]), 0);
	local_close();
}

static _Atomic unsigned called;

static void count_call(tern *t, tern_op *op)
{
	(void)t, (void)op;
	atomic_fetch_add(&called, 1);
}

TEST(a_barrier_in_two_phases_ends_with_an_error_when_a_rank_leaves)
{
	tern_op op[2] = { { .done = count_call }, TERN_OP };
	called = 0;
	ranks_open(3);
	CHECK_IS(tern_barrier_start(local[0], &op[0]), 0);
	CHECK_IS(tern_barrier_start(local[1], &op[1]), 0);
	local_close_one(2);
	CHECK_IS(tern_op_wait_for(local[0], &op[0], UINT64_C(10000000000)), -ESHUTDOWN);
	CHECK_IS(tern_op_wait_for(local[1], &op[1], UINT64_C(10000000000)), -ESHUTDOWN);
	local_settle();
	CHECK_IS(atomic_load(&called), 1);
	CHECK_IS(tern_barrier_start(local[0], &op[0]), -ESHUTDOWN);
	CHECK_IS(op[0].pending, 0);
	local_close();
}
