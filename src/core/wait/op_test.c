/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles that call a function when nothing is pending any more. */
#include <errno.h>
#include <tern/send.h>

#include "lib/local.h"

enum { ASK, MANY = 3 * TERN_DEFER_MAX };

static _Atomic unsigned called;
static _Atomic uint64_t order;

static void count_call(tern *t, tern_op *op)
{
	CHECK_IS(op->pending, 0);
	CHECK(!in_handler(t->own));
	if (op->arg)
		atomic_store(&order, 10 * atomic_load(&order) + *(uint64_t *)op->arg);
	atomic_fetch_add(&called, 1);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, note_request);
	for (uint32_t r = 0; r < n; r++)
		CHECK_IS(tern_poll(local[r]), 0);
	called = 0;
	order = 0;
}

static void receive(uint32_t id, uint64_t *word, tern_op *op)
{
	tern_match match = { .rank = 1, .id = id };
	CHECK_IS(tern_recv_start(local[0], &match, word, sizeof *word, NULL, op), 0);
}

static void send(uint32_t id)
{
	uint64_t word = id;
	CHECK_IS(tern_send(local[1], 0, id, &word, sizeof word), 0);
}

TEST(done_is_called_once_when_the_last_of_several_operations_has_ended)
{
	uint64_t word[3];
	tern_op op = { .done = count_call };
	ranks_open(2);
	for (uint32_t i = 0; i < 3; i++)
		receive(i, &word[i], &op);
	send(0);
	send(1);
	local_settle();
	CHECK_IS(called, 0);
	send(2);
	local_settle();
	CHECK_IS(called, 1);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(called, 1);
	receive(7, &word[0], &op); /* and again, with the next one */
	send(7);
	local_settle();
	CHECK_IS(called, 2);
	local_close();
}

TEST(done_is_called_for_an_operation_that_fails)
{
	uint64_t word;
	tern_op op = { .done = count_call };
	ranks_open(2);
	receive(0, &word, &op);
	CHECK_IS(tern_op_cancel(local[0], &op), 0);
	local_settle();
	CHECK_IS(called, 1);
	CHECK_IS(op.error, -ECANCELED);
	local_close();
}

/* Neither within the call that starts and ends the operation, nor under a hold. */
TEST(done_of_an_operation_that_ends_at_once_is_called_by_the_next_poll)
{
	uint64_t word = 5;
	tern_op op = { .done = count_call };
	local_polled();
	ranks_open(2);
	CHECK_IS(tern_send_start(local[0], 1, 3, &word, sizeof word, 0, &op), 0);
	CHECK_IS(op.pending, 0);
	CHECK_IS(called, 0);
	tern_hold(local[0]);
	(void)!tern_poll(local[0]);
	CHECK_IS(called, 0);
	tern_release(local[0]);
	(void)!tern_poll(local[0]);
	CHECK_IS(called, 1);
	local_close();
}

static uint64_t again_word;

static void start_again(tern *t, tern_op *op)
{
	(void)t;
	if (atomic_fetch_add(&called, 1) < 3)
		CHECK_IS(tern_send_start(t, 1, 4, &again_word, sizeof again_word, 0, op), 0);
}

TEST(done_may_start_the_next_operation_with_its_handle)
{
	tern_op op = { .done = start_again };
	ranks_open(2);
	CHECK_IS(tern_send_start(local[0], 1, 4, &again_word, sizeof again_word, 0, &op), 0);
	local_settle();
	CHECK_IS(called, 4);
	local_close();
}

TEST(any_number_of_handles_are_told_of_in_order_whatever_is_deferred)
{
	static tern_op op[MANY];
	static uint64_t digit[] = { 1, 2, 3 };
	uint64_t word = 1;
	local_polled();
	ranks_open(2);
	for (int i = 0; i < MANY; i++) {
		op[i] = (tern_op){ .done = count_call, .arg = i < 3 ? &digit[i] : NULL };
		/* To itself: it ends at once, or when the receive below takes it. */
		CHECK_IS(tern_send_start(local[0], 0, 6, &word, sizeof word, 0, &op[i]), 0);
	}
	for (int i = 0; i < MANY; i++)
		CHECK_IS(tern_recv(local[0], 0, 6, &word, sizeof word, NULL), 0);
	local_settle();
	CHECK_IS(called, MANY);
	CHECK_IS(order, 123);
	local_close();
}

static void nothing(tern *t, void *arg)
{
	(void)t, (void)arg;
}

TEST(a_handle_that_is_to_be_told_takes_no_place_of_a_deferred_function)
{
	uint64_t word = 1;
	tern_op op = { .done = count_call };
	local_polled();
	ranks_open(2);
	CHECK_IS(tern_send_start(local[0], 1, 6, &word, sizeof word, 0, &op), 0);
	for (int i = 0; i < TERN_DEFER_MAX; i++)
		CHECK_IS(tern_defer(local[0], nothing, NULL), 0);
	CHECK_IS(tern_defer(local[0], nothing, NULL), -EAGAIN);
	local_settle();
	CHECK_IS(called, 1);
	for (int i = 0; i < TERN_DEFER_MAX; i++)
		CHECK_IS(tern_defer(local[0], nothing, NULL), 0);
	local_settle();
	CHECK_IS(tern_send_start(local[0], 1, 6, &word, sizeof word, 0, &op), 0);
	local_settle();
	CHECK_IS(called, 2);
	local_close();
}
