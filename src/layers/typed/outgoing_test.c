/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long messages: moved in pieces, waited for, overtaken, and noticed when they change on their way.
 */
#include <errno.h>

#include "core/layers.h"
#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "typed/typed.h"

enum { TYPE = 3, LONG = 4 << 20, COUNT = 4 };

static unsigned char data[LONG];

static void open_pair(unsigned flags)
{
	local_open(2);
	REQUIRE(tern_buf_alloc(local[1], TYPE, LONG, COUNT, flags) == 0);
	REQUIRE(tern_buf_send(local[0], 1, TYPE, "", 0) == 0); /* so that it knows the buffers */
	REQUIRE(tern_buf_free(local[1], handed_buf(local[1], TYPE, 0, NULL, NULL)) == 0);
	chance_fill(data, LONG, 77);
}

/* Starts one that does not end within the call. */
static void start_long(tern_op *op)
{
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, data, LONG, 0, op), 0);
	CHECK_IS(op->pending, 1);
}

static int until_done(tern_op *op)
{
	int rc;
	while ((rc = tern_op_test(local[0], op)) == 0)
		;
	return rc;
}

static size_t next_length(void)
{
	size_t len = SIZE_MAX;
	void *p = handed_buf(local[1], TYPE, TERN_BUF_NOWAIT, NULL, &len);
	if (p)
		CHECK_IS(tern_buf_free(local[1], p), 0);
	return len;
}

TEST(a_long_message_arrives_whole_with_and_without_a_handle)
{
	tern_op op = TERN_OP;
	static const size_t lens[] = { LONG_BYTES, LONG_BYTES + 1, 300000, LONG - 1, LONG };
	open_pair(0);
	for (unsigned i = 0; i < 10; i++) {
		size_t len = lens[i / 2], got;
		if (i % 2) {
			CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, data, len, 0, &op), 0);
			CHECK_IS(until_done(&op), 1);
		} else {
			CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, len), 0);
		}
		unsigned char *p = handed_buf(local[1], TYPE, 0, NULL, &got);
		REQUIRE(p);
		CHECK_IS(got, len);
		CHECK(chance_filled(p, len, 77));
		CHECK_IS(tern_buf_free(local[1], p), 0);
	}
	local_close();
}

static int told;

static void count_told(tern *t, tern_op *op)
{
	(void)t;
	CHECK_IS(op->pending, 0);
	told++;
}

TEST(one_handle_counts_long_and_short_messages_and_tells_of_each)
{
	tern_flag landed = 0;
	tern_op op = { .flag = &landed, .done = count_told };
	open_pair(0);
	told = 0;
	start_long(&op);
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, data, LONG, 0, &op), 0);
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, data, 5, 0, &op), 0);
	CHECK_IS(landed, 1); /* the short one is complete on return */
	CHECK_IS(op.pending, 2);
	CHECK_IS(told, 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK_IS(landed, 3);
	CHECK_IS(tern_poll(local[0]), 0);
	CHECK_IS(told, 1);
	CHECK_IS(next_length(), 5);
	CHECK_IS(next_length(), LONG);
	CHECK_IS(next_length(), LONG);
	local_close();
}

TEST(nothing_is_received_of_a_long_message_before_it_has_landed)
{
	open_pair(0);
	tern_op op = TERN_OP;
	start_long(&op);
	CHECK_IS(tern_poll(local[1]), 0);
	CHECK(next_length() == SIZE_MAX);
	CHECK_IS(tern_buf_close(local[1], TYPE), -EBUSY);
	CHECK_IS(until_done(&op), 1);
	CHECK_IS(next_length(), LONG);
	local_close();
}

TEST(a_short_message_overtakes_a_long_one)
{
	open_pair(0);
	tern_op op = TERN_OP;
	start_long(&op);
	CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 5), 0);
	CHECK_IS(next_length(), 5);
	CHECK_IS(until_done(&op), 1);
	CHECK_IS(next_length(), LONG);
	local_close();
}

TEST(at_most_so_many_long_messages_are_under_way)
{
	tern_op op = TERN_OP;
	enum { BYTES = LONG_BYTES * 2 };
	local_open(2);
	REQUIRE(tern_buf_alloc(local[1], TYPE, BYTES, TERN_BUF_SENDS_MAX + 2, 0) == 0);
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, data, BYTES, 0, &op), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	void *all[TERN_BUF_SENDS_MAX];
	struct pool_of *records = &typed_of(local[0])->outgoing;
	for (unsigned i = 0; i < TERN_BUF_SENDS_MAX; i++)
		REQUIRE((all[i] = record_take(records)) != NULL);
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, data, BYTES, TERN_BUF_NOWAIT, &op),
		 -EAGAIN);
	CHECK(strstr(tern_strerror(-EAGAIN), "TERN_BUF_SENDS_MAX") != NULL);
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 10), 0); /* a short one is not of them */
	for (unsigned i = 0; i < TERN_BUF_SENDS_MAX; i++)
		record_give(records, all[i]);
	for (unsigned i = 0; i < TERN_BUF_SENDS_MAX; i++)
		CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, data, BYTES, 0, &op), 0);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	unsigned n = 0;
	while (next_length() != SIZE_MAX)
		n++;
	CHECK_IS(n, TERN_BUF_SENDS_MAX + 2);
	local_close();
}

TEST(a_long_message_whose_receiver_dies_fails_with_its_name)
{
	open_pair(0);
	tern_op op = TERN_OP;
	start_long(&op);
	job_rank_ended(&local[0]->own->group->job, 1, SIGKILL);
	int rc = until_done(&op);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	CHECK_IS(tern_op_test(local[0], &op), 1); /* once */
	CHECK(!typed_of(local[0])->moving);
}

TEST(a_long_message_whose_sender_leaves_gives_its_buffer_back)
{
	open_pair(TERN_BUF_REFUSE);
	tern_op op = TERN_OP;
	start_long(&op);
	local_close_one(0);
	local_settle();
	for (unsigned i = 0; i < COUNT; i++)
		CHECK_IS(tern_buf_send(local[1], 1, TYPE, data, 1), 0);
	CHECK_IS(tern_buf_send(local[1], 1, TYPE, data, 1), -ENOBUFS);
	local_close();
}

TEST(what_a_sender_had_announced_before_it_left_is_received)
{
	open_pair(TERN_BUF_REFUSE);
	for (unsigned i = 0; i < COUNT; i++)
		CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 10 + i), 0);
	local_close_one(0);
	for (unsigned i = 0; i < COUNT; i++)
		CHECK_IS(next_length(), 10 + i);
	CHECK(next_length() == SIZE_MAX);
	CHECK_IS(tern_buf_close(local[1], TYPE), 0);
	local_close();
}

TEST(what_a_sender_had_written_when_it_died_before_it_could_ring_is_received)
{
	open_pair(TERN_BUF_REFUSE);
	struct endpoint *e = local[1]->own;
	pollset_remove(
		&e->site,
		&e->site.peer[0].requests); /* it is not looked at, and nobody rings for it */
	e->site.peek = &e->site.bell;
	for (unsigned i = 0; i < COUNT; i++)
		CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 10 + i), 0);
	CHECK_IS(tern_poll(local[1]), 0);
	job_rank_ended(&e->group->job, 0, SIGKILL);
	for (int i = 0; i < 3; i++)
		CHECK(tern_poll(local[1]) >= 0);
	for (unsigned i = 0; i < COUNT; i++)
		CHECK_IS(next_length(), 10 + i);
	CHECK(next_length() == SIZE_MAX);
	CHECK_IS(tern_buf_close(local[1], TYPE), 0);
}

/* -- TERN_CHECK -------------------------------------------------------------------------------- */

static void change_under_way(size_t at)
{
	setenv("TERN_CHECK", "1", 1);
	open_pair(0);
	tern_op op = TERN_OP;
	start_long(&op);
	data[at] ^= 1;
	int rc = until_done(&op);
	CHECK_IS(rc, -EBADMSG);
	CHECK(strstr(tern_strerror(rc), "changed") != NULL);
	CHECK(next_length() == SIZE_MAX); /* it was not delivered, */
	for (unsigned i = 0; i < COUNT; i++)
		CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 1),
			 0); /* and its buffer is free again */
	CHECK_IS(tern_buf_send_start(local[0], 1, TYPE, data, 1, TERN_BUF_NOWAIT, NULL), -EAGAIN);
	for (unsigned i = 0; i < COUNT; i++)
		CHECK_IS(next_length(), 1);
	local_close();
}

TEST(data_that_is_changed_before_it_was_moved_is_noticed)
{
	change_under_way(LONG - 1);
}

TEST(data_that_is_changed_after_it_was_moved_is_noticed)
{
	change_under_way(0);
}

TEST(data_that_is_changed_and_changed_back_is_noticed_by_what_landed)
{
	setenv("TERN_CHECK", "1", 1);
	open_pair(0);
	tern_op op = TERN_OP;
	start_long(&op);
	data[LONG - 1] ^= 1;
	struct endpoint *e = local[0]->own;
	const struct outgoing *o = record_at(&typed_of(local[0])->outgoing, 0);
	while (o->op.pending) /* the data moves, and the notice is not sent */
		layer_table[LAYER_MEM]->progress(e->layer[LAYER_MEM]);
	data[LONG - 1] ^= 1;
	CHECK_IS(until_done(&op), -EBADMSG);
	local_close();
}

TEST(without_the_check_nobody_looks)
{
	setenv("TERN_CHECK", "0", 1);
	open_pair(0);
	tern_op op = TERN_OP;
	start_long(&op);
	data[0] ^= 1;
	CHECK_IS(until_done(&op), 1);
	CHECK_IS(next_length(), LONG);
	local_close();
}

TEST(a_buffer_that_is_written_to_after_it_was_given_back_is_noticed)
{
	static const size_t at[] = { 0, 500, 999 };
	setenv("TERN_CHECK", "1", 1);
	for (unsigned i = 0; i < 3; i++) {
		local_open(2);
		CHECK_IS(tern_buf_alloc(local[1], TYPE, 1000, 1, 0), 0);
		for (unsigned n = 0; n < 5;
		     n++) { /* nothing is said of those that were left alone */
			CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 999), 0);
			CHECK_IS(tern_buf_free(local[1], handed_buf(local[1], TYPE, 0, NULL, NULL)),
				 0);
		}
		CHECK(tern_poll(local[1]) >= 0);
		CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 100), 0);
		char *p = handed_buf(local[1], TYPE, 0, NULL, NULL);
		CHECK_IS(tern_buf_free(local[1], p), 0);
		p[at[i]] ^= 1;
		CHECK_IS(tern_buf_send(local[0], 1, TYPE, data, 100), 0);
		int rc = tern_poll(local[1]);
		CHECK_IS(rc, -EBADMSG);
		CHECK(strstr(tern_strerror(rc), "type 3") &&
		      strstr(tern_strerror(rc), "after it was given back"));
		CHECK(handed_buf(local[1], TYPE, 0, NULL, NULL) ==
		      p); /* the message is good all the same */
		local_close();
	}
}
