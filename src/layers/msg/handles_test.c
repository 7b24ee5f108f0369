/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for one of several handles, and for all, with sends and receives. */
#include <errno.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/local.h"

static uint64_t words[8];

static void receive(int i, tern_op *op)
{
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = (tern_id)i }, &words[i],
				 8, NULL, op),
		 0);
}

static void send(int i)
{
	CHECK_IS(tern_send(local[1], 0, (tern_id)i, &(uint64_t){ (uint64_t)i + 100 },
			   sizeof(uint64_t)),
		 0);
}

TEST(wait_any_tells_which_is_over)
{
	tern_op op[3] = { TERN_OP, TERN_OP, TERN_OP };
	tern_op *const ops[] = { &op[0], &op[1], &op[2] };
	size_t which = 99;
	local_open(2);
	for (int i = 0; i < 3; i++)
		receive(i, &op[i]);
	send(2);
	CHECK_IS(tern_op_wait_any(local[0], ops, 3, &which), 0);
	CHECK(which == 2 && words[2] == 102);
	CHECK(op[0].pending && op[1].pending);
	send(1);
	CHECK_IS(tern_op_wait_any(local[0], ops, 2, &which), 0);
	CHECK(which == 1 && words[1] == 101);
	send(0);
	CHECK_IS(tern_op_wait_any(local[0], ops, 1, &which), 0);
	CHECK_IS(which, 0);
	CHECK_IS(tern_op_wait_any(local[0], ops, 3, &which),
		 0); /* in order: the first that is over */
	CHECK_IS(which, 0);
	local_close();
}

static void send_deferred(tern *t, void *arg)
{
	(void)t;
	(void)arg;
	send(1);
}

TEST(wait_any_serves_messages_until_one_is_over)
{
	tern_op op[2] = { TERN_OP, TERN_OP };
	tern_op *const ops[] = { &op[0], &op[1] };
	size_t which = 99;
	local_open(2);
	receive(0, &op[0]);
	receive(1, &op[1]);
	CHECK_IS(tern_defer(local[1], send_deferred, NULL), 0); /* runs while the other waits */
	CHECK_IS(tern_op_wait_any(local[0], ops, 2, &which), 0);
	CHECK_IS(which, 1);
	local_close();
}

TEST(wait_any_gives_the_result_of_the_one_that_is_over_and_of_no_other)
{
	tern_op op[2] = { TERN_OP, TERN_OP };
	tern_op *const ops[] = { &op[0], &op[1] };
	size_t which = 99;
	local_open(2);
	receive(0, &op[0]);
	receive(1, &op[1]);
	CHECK_IS(tern_op_cancel(local[0], &op[1]), 0);
	CHECK_IS(tern_op_wait_any(local[0], ops, 2, &which), -ECANCELED);
	CHECK_IS(which, 1);
	CHECK_IS(tern_op_wait_any(local[0], ops, 2, &which), 0); /* once */
	CHECK_IS(which, 1);
	CHECK_IS(op[0].pending, 1);
	local_close();
}

TEST(wait_any_of_nothing_is_refused_and_so_is_one_that_may_not_wait)
{
	tern_op op = TERN_OP;
	tern_op *const ops[] = { &op };
	size_t which = 99;
	local_open(2);
	CHECK_IS(tern_op_wait_any(local[0], ops, 0, &which), -EINVAL);
	receive(0, &op);
	tern_hold(local[0]);
	CHECK_IS(tern_op_wait_any(local[0], ops, 1, &which), -EDEADLK);
	CHECK_IS(tern_op_wait(local[0], &op), -EDEADLK);
	tern_release(local[0]);
	CHECK_IS(which, 99);
	CHECK_IS(op.pending, 1);
	send(0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	tern_hold(local[0]);
	CHECK_IS(tern_op_wait_any(local[0], ops, 1, &which), 0); /* nothing to wait for */
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	tern_release(local[0]);
	local_close();
}

TEST(one_handle_counts_operations_of_whatever_layer)
{
	static char from[100000], to[100000];
	tern_op op = TERN_OP;
	tern_addr a;
	local_open(2);
	memset(from, 5, sizeof from);
	REQUIRE(tern_register(local[1], to, sizeof to, &a) == 0);
	receive(0, &op);
	receive(1, &op);
	CHECK_IS(tern_put_start(local[0], a, from, sizeof from, &op), 0);
	CHECK_IS(tern_send_start(local[0], 1, 7, from, sizeof from, 0, &op), 0);
	send(1);
	send(0);
	static char got[100000];
	tern_op ro = TERN_OP;
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 7 }, got, sizeof got,
				 NULL, &ro),
		 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK(memcmp(to, from, sizeof to) == 0 && memcmp(got, from, sizeof got) == 0);
	CHECK(words[0] == 100 && words[1] == 101);
	local_close();
}

TEST(a_handle_keeps_the_first_error_and_gives_it_once)
{
	tern_op op = TERN_OP;
	char small;
	local_open(2);
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 1, .id = 1 }, &small, 1, NULL,
				 &op),
		 0);
	receive(2, &op);
	receive(3, &op);
	send(1);
	tern_poll(local[0]);
	CHECK_IS(tern_op_test(local[0], &op), 0); /* others are pending */
	CHECK_IS(tern_op_cancel(local[0], &op), 0);
	CHECK_IS(tern_op_test(local[0], &op), -EMSGSIZE);
	CHECK_IS(tern_op_test(local[0], &op), 1);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	local_close();
}

TEST(ready_looks_at_a_handle_and_does_nothing_else)
{
	tern_op op = TERN_OP, other = TERN_OP;
	uint64_t value = 7, got[2] = { 0 };
	local_polled();
	local_open(2);
	CHECK_IS(tern_op_ready(&op), 1);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 1 }, got, 4, NULL, &op),
		 0);
	CHECK_IS(tern_op_ready(&op), 0);
	CHECK_IS(tern_send_start(local[0], 1, 1, &value, 8, 0, &other), 0);
	CHECK_IS(tern_op_ready(&other), 1);
	CHECK_IS(tern_op_ready(&op), 0); /* it has come, and nobody has served it */
	while (!tern_op_ready(&op))
		tern_poll(local[1]);   /* a network takes its time */
	CHECK_IS(op.error, -EMSGSIZE); /* which is left for whoever waits */
	CHECK_IS(tern_op_wait(local[1], &op), -EMSGSIZE);
	tern_poll(local[0]);
	local_close();
}
