/* SPDX-License-Identifier: BSD-3-Clause */
/* What order promises: within a type, and across types. */
#include <errno.h>

#include "../../../tests/chance.h"
#include "../../../tests/handed.h"
#include "../../../tests/local.h"
#include "typed/typed.h"

enum { ONE, TWO, THREE, LONG = 4 << 20, COUNT = 8 };

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

TEST(across_types_a_message_waits_until_those_before_it_are_received)
{
	local_open(2);
	open_type(ONE, LONG, TERN_BUF_ORDER_ALL);
	open_type(TWO, 100, TERN_BUF_ORDER_ALL);
	open_type(THREE, 100, 0);
	for (unsigned type = ONE; type <= THREE; type++)
		known(type);
	CHECK_IS(send_len(0, ONE, 1), 0);
	CHECK_IS(send_len(0, TWO, 2), 0);
	CHECK_IS(send_len(0, TWO, 3), 0);
	CHECK_IS(send_len(0, ONE, 4), 0);
	CHECK_IS(send_len(0, THREE, 5), 0);
	CHECK_IS(next(TWO), -1);
	CHECK_IS(next(THREE), 5); /* it has no part in the order */
	CHECK_IS(next(ONE), 1);
	CHECK_IS(next(ONE), -1);
	CHECK_IS(next(TWO), 2);
	CHECK_IS(next(ONE), -1);
	CHECK_IS(next(TWO), 3);
	CHECK_IS(next(ONE), 4);
	local_close();
}

TEST(across_types_a_short_message_does_not_overtake_a_long_one)
{
	local_open(3);
	open_type(ONE, LONG, TERN_BUF_ORDER_ALL);
	open_type(TWO, 100, TERN_BUF_ORDER_ALL | TERN_BUF_ORDER);
	known(ONE);
	known(TWO);
	tern_op op = TERN_OP;
	start_long(0, ONE, &op);
	CHECK_IS(send_len(0, TWO, 5), 0);
	CHECK_IS(send_len(2, TWO, 6), 0);
	CHECK_IS(next(TWO), 6); /* another sender's */
	CHECK_IS(next(TWO), -1);
	end_long(0, &op);
	CHECK_IS(next(TWO), -1);
	CHECK_IS(next(ONE), LONG);
	CHECK_IS(next(TWO), 5);
	local_close();
}

TEST(sends_that_are_refused_leave_no_hole)
{
	local_open(2);
	open_type(ONE, 100, TERN_BUF_ORDER | TERN_BUF_REFUSE);
	open_type(TWO, 100, TERN_BUF_ORDER_ALL | TERN_BUF_REFUSE);
	for (unsigned type = ONE; type <= TWO; type++) {
		for (int round = 0; round < 3; round++) {
			for (size_t i = 0; i < COUNT; i++)
				CHECK_IS(send_len(0, type, i), 0);
			CHECK_IS(send_len(0, type, 9), -ENOBUFS);
			CHECK_IS(send_len(0, type, 101), -EMSGSIZE);
			for (size_t i = 0; i < COUNT; i++)
				CHECK_IS(next(type), i);
			CHECK_IS(next(type), -1);
		}
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

TEST(a_type_that_is_closed_no_longer_stands_in_the_way_of_others)
{
	local_open(2);
	for (int round = 0; round < 3; round++) {
		open_type(ONE, 100, TERN_BUF_ORDER_ALL);
		if (round == 0)
			open_type(TWO, 100, TERN_BUF_ORDER_ALL);
		CHECK_IS(send_len(0, ONE, 1), 0);
		CHECK_IS(send_len(0, TWO, 2), 0);
		CHECK_IS(send_len(0, ONE, 3), 0);
		CHECK_IS(send_len(0, ONE, 4), 0);
		CHECK_IS(send_len(0, TWO, 5), 0);
		local_settle();
		CHECK_IS(next(TWO), -1);
		CHECK_IS(tern_buf_close(local[1], ONE), 0);
		CHECK_IS(next(TWO), 2);
		CHECK_IS(next(TWO), 5);
		CHECK_IS(next(TWO), -1);
	}
	local_close();
}

TEST(a_type_with_a_message_behind_one_that_is_landing_stays_open)
{
	local_open(2);
	open_type(ONE, LONG, TERN_BUF_ORDER_ALL);
	open_type(TWO, 100, TERN_BUF_ORDER_ALL);
	known(ONE);
	known(TWO);
	tern_op op = TERN_OP;
	start_long(0, ONE, &op);
	CHECK_IS(send_len(0, TWO, 5), 0);
	CHECK(tern_poll(local[1]) >= 0);
	CHECK_IS(tern_buf_close(local[1], TWO), -EBUSY);
	end_long(0, &op);
	CHECK(tern_poll(local[1]) >= 0);
	CHECK_IS(tern_buf_close(local[1], TWO), 0);
	CHECK_IS(next(ONE), LONG);
	CHECK_IS(send_len(0, ONE, 6), 0);
	CHECK_IS(next(ONE), 6);
	local_close();
}

/* -- A sender that leaves ---------------------------------------------------------------------- */

static void leave_in_the_middle(unsigned flags)
{
	tern_op op = TERN_OP;
	local_open(3);
	open_type(ONE, LONG, flags);
	open_type(TWO, 100, flags);
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

TEST(of_a_sender_that_leaves_a_beginning_of_what_it_sent_is_received)
{
	leave_in_the_middle(TERN_BUF_ORDER);
	leave_in_the_middle(TERN_BUF_ORDER_ALL);
}

/* -- Streams on their own: any order of arrival ------------------------------------------------ */

static void shuffle(unsigned *a, unsigned n, struct chance *c)
{
	for (unsigned i = n; i > 1; i--) {
		unsigned j = chance_below(c, i), swap = a[i - 1];
		a[i - 1] = a[j];
		a[j] = swap;
	}
}

TEST(whatever_the_order_of_arrival_slots_join_by_number_and_none_twice)
{
	enum { LETTERS = 60 };
	struct chance c = { check_seed() };
	local_open(2);
	REQUIRE(tern_buf_alloc(local[1], ONE, 1, LETTERS + 1, TERN_BUF_ORDER) == 0);
	struct typed *y = typed_of(local[1]);
	struct type_queue *s = y->queue[ONE];
	for (unsigned round = 0; round < 200; round++) {
		unsigned number[LETTERS], joined = 0, expected = 0;
		bool here[LETTERS + 1] = { false };
		s->stream[0] = (struct stream){ 0, NULL, NULL };
		for (unsigned i = 0; i < LETTERS; i++)
			number[i] = i;
		shuffle(number, LETTERS, &c);
		for (unsigned i = 0; i < LETTERS; i++) {
			s->slot[i] = (struct buf_slot){ .queue = s,
							.number = number[i],
							.type = ONE,
							.cancelled = chance_one_in(&c, 10) };
			expected += !s->slot[i].cancelled;
			CHECK(order_arrived(y, &s->stream[0], &s->slot[i], false));
			here[number[i]] = true;
			s->slot[LETTERS] =
				(struct buf_slot){ .queue = s,
						   .number = number[chance_below(&c, i + 1)] };
			CHECK(!order_arrived(y, &s->stream[0], &s->slot[LETTERS], false));
			unsigned first_missing = 0;
			while (here[first_missing])
				first_missing++;
			CHECK_IS(s->stream[0].next, first_missing);
		}
		for (uint64_t last = 0; s->first; joined++) {
			struct buf_slot *l = buf_slot_pop(s);
			CHECK(!l->cancelled && (joined == 0 || l->number > last));
			last = l->number;
		}
		CHECK_IS(joined, expected);
	}
}
