/* SPDX-License-Identifier: BSD-3-Clause */
/* What order promises. */
#include <errno.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "typed/typed.h"

enum { ONE, LONG = 4 << 20, COUNT = 8 };

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

/* With order it has landed when the call returns. */
static void start_long(uint32_t from, unsigned type, unsigned flags)
{
	tern_flag landed = 0;
	tern_op op = { .flag = &landed };
	CHECK_IS(tern_buf_send_start(local[from], 1, type, data, LONG, flags, &op), 0);
	CHECK_IS(op.pending, 0);
	CHECK_IS(op.error, 0);
	CHECK_IS(landed, 1);
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
	start_long(0, ONE, 0);
	CHECK_IS(send_len(0, ONE, 5), 0);
	CHECK_IS(send_len(0, ONE, 6), 0);
	CHECK_IS(next(ONE), LONG);
	CHECK_IS(next(ONE), 5);
	CHECK_IS(next(ONE), 6);
	CHECK_IS(next(ONE), -1);
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
	uint32_t taken;
	local_open(3);
	open_type(ONE, LONG, TERN_BUF_ORDER);
	known(ONE);
	CHECK_IS(send_len(0, ONE, 1), 0);
	CHECK_IS(send_len(0, ONE, 2), 0);
	CHECK(bufpool_take(&typed_of(local[0])->target[1][ONE].pool, 0, &taken)); /* unannounced */
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

TEST(what_is_sent_behind_a_long_message_comes_in_order_under_a_hold_too)
{
	local_open(2);
	open_type(ONE, LONG, TERN_BUF_ORDER);
	known(ONE);
	start_long(0, ONE, TERN_BUF_NOWAIT);
	tern_hold(local[0]);
	start_long(0, ONE, 0);
	CHECK_IS(send_len(0, ONE, 7), 0);
	tern_release(local[0]);
	CHECK_IS(next(ONE), LONG);
	CHECK_IS(next(ONE), LONG);
	CHECK_IS(next(ONE), 7);
	CHECK_IS(next(ONE), -1);
	local_close();
}
