/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens when no buffer is free: each policy, and the spill. */
#include <errno.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "typed/typed.h"

enum { TYPE = 9, OTHER = 10, BYTES = 20000, COUNT = 2 };

static unsigned char data[BYTES];
static unsigned sent, received;

static int send_next(unsigned type, size_t len)
{
	chance_fill(data, len, sent);
	int rc = tern_buf_send_start(local[0], 1, type, data, len, TERN_BUF_NOWAIT, NULL);
	sent += rc == 0;
	return rc;
}

/* Until it is taken or refused for good, or the receiver has nothing more to say. */
static int send_settled(unsigned type, size_t len)
{
	int rc = -EAGAIN;
	for (int i = 0; i < 8 && rc == -EAGAIN; i++) {
		local_settle();
		rc = send_next(type, len);
	}
	return rc;
}

static unsigned char *receive_next(unsigned type)
{
	size_t len;
	unsigned char *p = handed_buf(local[1], type, TERN_BUF_NOWAIT, NULL, &len);
	if (p)
		CHECK(chance_filled(p, len, received++));
	return p;
}

static bool of_type(unsigned type, const void *p)
{
	const struct buf_slot *l = buf_slot_at(typed_of(local[1]), p);
	return l && l->queue == typed_of(local[1])->queue[type];
}

TEST(a_type_that_waits_takes_the_message_when_a_buffer_is_free)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_WAIT), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_IS(send_settled(TYPE, 100), 0);
	CHECK_IS(send_settled(TYPE, 100), -EAGAIN);
	unsigned char *p = receive_next(TYPE);
	CHECK_IS(send_settled(TYPE, 100), -EAGAIN); /* the program has it */
	CHECK_IS(tern_buf_free(local[1], p), 0);
	CHECK_IS(send_settled(TYPE, 100), 0);
	local_close();
}

TEST(a_type_that_refuses_takes_messages_again_when_a_buffer_is_free)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_REFUSE), 0);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < COUNT; i++)
			CHECK_IS(send_settled(TYPE, BYTES), 0);
		CHECK_IS(send_settled(TYPE, 1), -ENOBUFS);
		CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 1),
			 -ENOBUFS); /* it does not wait either */
		CHECK(strstr(tern_strerror(-ENOBUFS), "rank 1") &&
		      strstr(tern_strerror(-ENOBUFS), "type 9"));
		for (int i = 0; i < COUNT; i++)
			CHECK_IS(tern_buf_free(local[1], receive_next(TYPE)), 0);
		CHECK(receive_next(TYPE) == NULL);
	}
	local_close();
}

TEST(a_spilled_message_is_received_in_its_place_and_takes_a_buffer_that_is_free_by_then)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL), 0);
	for (size_t i = 0; i < 10; i++)
		CHECK_IS(send_settled(TYPE, i * 900), 0); /* small cells and large ones */
	local_settle();
	for (int i = 0; i < 10; i++) {
		unsigned char *p = receive_next(TYPE);
		REQUIRE(p);
		CHECK(of_type(TYPE, p));
		CHECK_IS(tern_buf_free(local[1], p), 0);
	}
	CHECK(receive_next(TYPE) == NULL);
	local_close();
}

TEST(a_spilled_message_is_received_where_it_lies_if_the_program_has_every_buffer)
{
	unsigned char *p[6];
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL), 0);
	for (int i = 0; i < 6; i++)
		CHECK_IS(send_settled(TYPE, 700), 0);
	for (int i = 0; i < 6; i++) {
		p[i] = receive_next(TYPE);
		REQUIRE(p[i]);
		CHECK(of_type(i < COUNT ? TYPE : KEY_SPILL + 1, p[i]));
	}
	CHECK_IS(tern_buf_close(local[1], TYPE), -EBUSY);
	for (int i = 5; i >= 0; i--)
		CHECK_IS(tern_buf_free(local[1], p[i]), 0);
	CHECK_IS(tern_buf_free(local[1], p[5]), -EINVAL);
	CHECK_IS(tern_buf_close(local[1], TYPE), 0);
	local_close();
}

static unsigned fill_spill(unsigned type, size_t len)
{
	unsigned n = 0;
	while (send_settled(type, len) == 0)
		n++;
	return n;
}

TEST(the_spill_is_bounded_and_comes_back_whole)
{
	setenv("TERN_SPILL", "64K", 1);
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL), 0);
	for (int round = 0; round < 4; round++) {
		CHECK_IS(fill_spill(TYPE, 8192), COUNT + 4); /* half of it in cells of 8K */
		CHECK_IS(send_next(TYPE, 513), -EAGAIN);
		CHECK(strstr(tern_strerror(-EAGAIN), "spill") != NULL);
		CHECK_IS(fill_spill(TYPE, 512), 64);
		while (received < sent)
			CHECK_IS(tern_buf_free(local[1], receive_next(TYPE)), 0);
		CHECK(receive_next(TYPE) == NULL);
	}
	local_close();
}

TEST(the_spill_is_for_all_types_together_and_only_for_those_that_ask)
{
	setenv("TERN_SPILL", "64K", 1);
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL), 0);
	CHECK_IS(tern_buf_alloc(local[1], OTHER, BYTES, COUNT, TERN_BUF_SPILL), 0);
	CHECK_IS(tern_buf_alloc(local[1], OTHER + 1, BYTES, COUNT, 0), 0);
	CHECK_IS(fill_spill(TYPE, 8192), COUNT + 4);
	CHECK_IS(fill_spill(OTHER, 8192), COUNT);
	CHECK_IS(fill_spill(OTHER + 1, 512), COUNT);
	CHECK_IS(fill_spill(OTHER, 512), 64);
	local_close();
}

TEST(messages_of_up_to_64_kib_are_spilled_and_longer_ones_wait_for_a_buffer)
{
	enum { LONGEST = 64 << 10 };
	static unsigned char block[LONGEST + 1];
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, LONGEST + 1, 1, TERN_BUF_SPILL), 0);
	CHECK_IS(tern_buf_send(local[0], 1, TYPE, block, LONGEST + 1), 0);
	unsigned spilled = 0;
	int rc;
	for (;; spilled++) {
		block[LONGEST - 1] = (unsigned char)(spilled + 1);
		for (int i = 0; i < 5; i++) {
			rc = tern_buf_send_start(local[0], 1, TYPE, block, LONGEST, TERN_BUF_NOWAIT,
						 NULL);
			local_settle();
			if (rc != -EAGAIN)
				break;
		}
		if (rc)
			break;
	}
	CHECK_IS(rc, -EAGAIN);
	CHECK_IS(spilled, 2); /* half of 256K */
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, block, LONGEST + 1, TERN_BUF_NOWAIT, NULL),
		 -EAGAIN);
	for (unsigned i = 0; i <= spilled; i++) {
		size_t len;
		unsigned char *q = handed_buf(local[1], TYPE, 0, NULL, &len);
		REQUIRE(q);
		CHECK(i ? len == LONGEST && q[LONGEST - 1] == i : len == LONGEST + 1);
		CHECK_IS(tern_buf_free(local[1], q), 0);
	}
	CHECK_IS(tern_buf_send(local[0], 1, TYPE, block, LONGEST + 1), 0);
	local_close();
}

TEST(a_type_without_buffers_lives_in_the_spill)
{
	setenv("TERN_SPILL", "64K", 1);
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 8192, 0, TERN_BUF_SPILL), 0);
	CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 8193), -EMSGSIZE);
	for (int round = 0; round < 3; round++) {
		CHECK_IS(fill_spill(TYPE, 8192), 4);
		CHECK_IS(fill_spill(TYPE, 512), 64);
		while (received < sent)
			CHECK_IS(tern_buf_free(local[1], receive_next(TYPE)), 0);
	}
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 64, 0, TERN_BUF_SPILL), -EINVAL);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 8192, 1, TERN_BUF_SPILL), 0); /* later it has one */
	CHECK_IS(fill_spill(TYPE, 8192), 5);
	CHECK_IS(tern_buf_close(local[1], TYPE), 0);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 8, 0, 0), -EINVAL);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, 8193, 0, TERN_BUF_SPILL),
		 -EINVAL); /* no such cell */
	local_close();
}

TEST(a_spill_of_nothing_spills_nothing)
{
	static const char *const text[] = { "0", "100", "512", "8192" };
	static const unsigned cells[] = { 0, 0, 1, 16 };
	for (int i = 0; i < 4; i++) {
		setenv("TERN_SPILL", text[i], 1);
		local_open(2);
		CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL), 0);
		CHECK_IS(fill_spill(TYPE, 500), COUNT + cells[i]);
		received = sent;
		local_close();
	}
}

TEST(closing_a_type_drops_what_it_has_in_the_spill)
{
	setenv("TERN_SPILL", "64K", 1);
	local_open(2);
	for (int round = 0; round < 5; round++) {
		CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL), 0);
		CHECK_IS(fill_spill(TYPE, 8192), COUNT + 4);
		CHECK_IS(tern_buf_close(local[1], TYPE), 0);
	}
	local_close();
}

TEST(what_reaches_the_spill_after_its_type_was_closed_is_dropped)
{
	static const unsigned flags[] = { 0, TERN_BUF_ORDER };
	setenv("TERN_SPILL", "64K", 1);
	for (int i = 0; i < 2; i++) {
		local_open(2);
		sent = received = 0;
		CHECK_IS(tern_buf_alloc(local[1], OTHER, BYTES, COUNT, TERN_BUF_SPILL | flags[i]),
			 0);
		for (int round = 0; round < 10; round++) {
			CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT,
						TERN_BUF_SPILL | flags[i]),
				 0);
			for (int n = 0; n < COUNT + 1; n++)
				CHECK_IS(send_settled(TYPE, 8000), 0);
			local_settle();
			CHECK_IS(send_next(TYPE, 8000), 0); /* under way */
			CHECK_IS(tern_buf_close(local[1], TYPE), 0);
			CHECK(tern_poll(local[1]) >= 0);
		}
		received = sent;
		CHECK_IS(send_settled(OTHER, 10), 0); /* and does not stand in anybody's way */
		CHECK_IS(tern_buf_free(local[1], receive_next(OTHER)), 0);
		CHECK_IS(fill_spill(OTHER, 8192), COUNT + 4);
		local_close();
	}
}

TEST(spilled_messages_keep_their_order)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL | TERN_BUF_ORDER), 0);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 7; i++)
			CHECK_IS(send_settled(TYPE, 600), 0);
		for (int i = 0; i < 7; i++)
			CHECK_IS(tern_buf_free(local[1], receive_next(TYPE)), 0);
	}
	local_close();
}

TEST(what_a_sender_that_left_had_in_the_spill_is_received)
{
	local_open(2);
	CHECK_IS(tern_buf_alloc(local[1], TYPE, BYTES, COUNT, TERN_BUF_SPILL), 0);
	for (int i = 0; i < 9; i++)
		CHECK_IS(send_settled(TYPE, 600), 0);
	local_close_one(0);
	local_settle();
	for (int i = 0; i < 9; i++)
		CHECK_IS(tern_buf_free(local[1], receive_next(TYPE)), 0);
	local_close();
}
