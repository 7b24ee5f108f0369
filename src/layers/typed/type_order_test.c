/* SPDX-License-Identifier: BSD-3-Clause */
/* What order promises. */
#include <errno.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "typed/typed.h"

enum { ONE, TWO, LONG = 4 << 20, COUNT = 8 };

static char data[LONG];

static void open_type(unsigned type, size_t bytes, unsigned flags)
{
	int rc = tern_buf_alloc(local[1], type, bytes, COUNT, flags);
	if (rc)
		printf("    %s\n", tern_strerror(rc));
	REQUIRE(rc == 0);
}

static int send_len(uint32_t from, unsigned type, size_t len)
{
	return tern_buf_send(local[from], 1, type, data, len);
}

static void start_long(uint32_t from, unsigned type, tern_op *op)
{
	CHECK_IS(tern_buf_send_start(local[from], 1, type, data, LONG, 0, op), 0);
	CHECK_IS(op->pending, 1);
}

static void end_long(uint32_t from, tern_op *op)
{
	int rc;
	while ((rc = tern_op_test(local[from], op)) == 0)
		;
	CHECK_IS(rc, 1);
}

/* The length of the next message of a type, or -1. */
static long long next(unsigned type)
{
	size_t len;
	void *p = handed_buf(local[1], type, TERN_BUF_NOWAIT, NULL, &len);
	if (!p)
		return -1;
	CHECK_IS(tern_buf_free(local[1], p), 0);
	return (long long)len;
}

static void known(unsigned type)
{
	CHECK_IS(send_len(0, type, 0), 0);
	CHECK_IS(next(type), 0);
}

TEST(with_order_a_short_message_does_not_overtake_a_long_one)
{
	local_open(2);
	open_type(ONE, LONG, TERN_BUF_ORDER);
	known(ONE);
	tern_op op = TERN_OP;
	start_long(0, ONE, &op);
	CHECK_IS(send_len(0, ONE, 5), 0);
	CHECK_IS(send_len(0, ONE, 6), 0);
	CHECK_IS(next(ONE), -1);
	end_long(0, &op);
	CHECK_IS(next(ONE), LONG);
	CHECK_IS(next(ONE), 5);
	CHECK_IS(next(ONE), 6);
	CHECK_IS(next(ONE), -1);
	local_close();
}

TEST(the_order_of_one_sender_delays_no_other)
{
	local_open(3);
	open_type(ONE, LONG, TERN_BUF_ORDER);
	known(ONE);
	tern_op op = TERN_OP;
	start_long(0, ONE, &op);
	CHECK_IS(send_len(0, ONE, 5), 0);
	CHECK_IS(send_len(2, ONE, 7), 0);
	CHECK_IS(next(ONE), 7);
	CHECK_IS(next(ONE), -1);
	end_long(0, &op);
	CHECK_IS(next(ONE), LONG);
	CHECK_IS(next(ONE), 5);
	local_close();
}

TEST(the_order_of_one_type_delays_no_other)
{
	local_open(2);
	open_type(ONE, LONG, TERN_BUF_ORDER);
	open_type(TWO, 10, TERN_BUF_ORDER);
	known(ONE);
	known(TWO);
	tern_op op = TERN_OP;
	start_long(0, ONE, &op);
	CHECK_IS(send_len(0, TWO, 5), 0);
	CHECK_IS(next(TWO), 5);
	end_long(0, &op);
	local_close();
}

TEST(sends_that_are_refused_leave_no_hole)
{
	local_open(2);
	open_type(ONE, 100, TERN_BUF_ORDER | TERN_BUF_REFUSE);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < COUNT; i++)
			CHECK_IS(send_len(0, ONE, i), 0);
		CHECK_IS(send_len(0, ONE, 9), -ENOBUFS);
		CHECK_IS(send_len(0, ONE, 101), -EMSGSIZE);
		for (size_t i = 0; i < COUNT; i++)
			CHECK_IS(next(ONE), i);
		CHECK_IS(next(ONE), -1);
	}
	local_close();
}

/* -- Closing types that have an order ---------------------------------------------------------- */

TEST(an_order_begins_anew_with_its_type)
{
	local_open(2);
	for (int round = 0; round < 3; round++) {
		open_type(ONE, 100, TERN_BUF_ORDER);
		for (size_t i = 0; i < COUNT; i++)
			CHECK_IS(send_len(0, ONE, i), 0);
		CHECK_IS(next(ONE), 0);
		local_settle();
		CHECK_IS(tern_buf_close(local[1], ONE), 0);
	}
	local_close();
}

/* -- A sender that leaves ---------------------------------------------------------------------- */

TEST(of_a_sender_that_leaves_a_beginning_of_what_it_sent_is_received)
{
	tern_op op = TERN_OP;
	local_open(3);
	open_type(ONE, LONG, TERN_BUF_ORDER);
	open_type(TWO, 100, TERN_BUF_ORDER);
	known(ONE);
	known(TWO);
	CHECK_IS(send_len(0, ONE, 1), 0);
	CHECK_IS(send_len(0, ONE, 2), 0);
	start_long(0, ONE, &op);
	for (size_t i = 3; i < COUNT - 1; i++)
		CHECK_IS(send_len(0, ONE, i), 0);
	CHECK_IS(send_len(2, ONE, 9), 0);
	CHECK(tern_poll(local[1]) >= 0);
	local_close_one(0);
	local_settle();
	long long got[] = { next(ONE), next(ONE), next(ONE) };
	CHECK(got[0] + got[1] + got[2] == 12 && next(ONE) == -1); /* 1, 2 and, from the other, 9 */
	for (int i = 0; i < COUNT; i++)
		CHECK_IS(send_len(2, ONE, 1), 0); /* every buffer is there again */
	CHECK_IS(tern_buf_send_start(local[2], 1, ONE, data, 1, TERN_BUF_NOWAIT, NULL), -EAGAIN);
	local_close();
}

/* -- What stands behind a long message --------------------------------------------------------- */

TEST(what_stands_behind_a_long_message_is_accepted_at_once_and_comes_in_order)
{
	tern_flag landed = 0;
	tern_op op = TERN_OP, second = TERN_OP, told = { .flag = &landed };
	local_open(2);
	open_type(ONE, LONG, TERN_BUF_ORDER);
	known(ONE);
	start_long(0, ONE, &op);
	start_long(0, ONE, &second);
	CHECK_IS(send_len(0, ONE, 5), 0);
	CHECK_IS(tern_buf_send_start(local[0], 1, ONE, data, 6, TERN_BUF_NOWAIT, &told), 0);
	CHECK_IS(told.pending, 1);
	tern_hold(local[0]);
	CHECK_IS(send_len(0, ONE, 7), 0); /* nor under a hold */
	tern_release(local[0]);
	end_long(0, &second);
	CHECK_IS(op.pending, 0); /* the first is not behind the second */
	end_long(0, &told);
	CHECK_IS(landed, 1);
	CHECK_IS(next(ONE), LONG);
	CHECK_IS(next(ONE), LONG);
	for (int i = 5; i <= 7; i++)
		CHECK_IS(next(ONE), i);
	CHECK_IS(next(ONE), -1);
	for (int i = 0; i < COUNT; i++) /* and the quick way is open again */
		CHECK_IS(send_len(0, ONE, 1), 0);
	CHECK(typed_of(local[0])->target[1][ONE]->quick > 0);
	local_close();
}
