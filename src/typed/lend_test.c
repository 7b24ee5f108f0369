/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers that are lent to senders who cannot map their receiver's memory: who gets what is not
 * used, and closing a type of which something is lent.
 */
#include "../../tests/handed.h"
#include "../../tests/typed_far.h"

/* -- What is lent and not used ----------------------------------------------------------------- */

TEST(what_a_far_rank_has_and_does_not_use_goes_to_another_that_needs_it)
{
	static const uint32_t others[] = { SECOND, NEAR, OWNER };
	for (unsigned n = 0; n < 3; n++) {
		open_far();
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
		stream(0, TYPE);
		for (int i = 0; i < COUNT; i++)
			CHECK_IS(send_urged(others[n], TYPE, n == 0 && i % 2 ? 10000 : 10), 0);
		CHECK_IS(send_tried(others[n], TYPE, 10), -EAGAIN);
		CHECK_IS(send_tried(0, TYPE, 10), -EAGAIN);
		local_close();
	}
}

TEST(a_buffer_for_a_long_message_that_is_not_sent_goes_to_another_that_needs_it)
{
	static const uint32_t others[] = { SECOND, NEAR, OWNER };
	for (unsigned n = 0; n < 3; n++) {
		open_far();
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
		for (int i = 0; i < 2; i++) { /* for the type, for a buffer */
			CHECK_IS(send_now(0, TYPE, BYTES), -EAGAIN);
			local_settle();
		}
		CHECK_IS(free_buffers(TYPE), 0);
		CHECK_IS(send_urged(others[n], TYPE, 10), 0);
		CHECK(!bufpool_lends(&type_queue_at(TYPE)->pool));
		local_close();
	}
}

TEST(a_buffer_for_a_long_message_that_is_not_sent_is_good_for_a_short_one)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK_IS(send_now(0, TYPE, BYTES), -EAGAIN);
		local_settle();
	}
	CHECK_IS(send_now(0, TYPE, 10), 0);
	local_settle();
	CHECK_IS(next(TYPE), 10);
	CHECK_IS(send_tried(0, TYPE, 10), 0);
	local_close();
}

/* There is no memory for the first block. */
static int take_none(struct net *net, size_t len, struct block **out)
{
	(void)net, (void)len, (void)out;
	return -ENOMEM;
}

TEST(a_buffer_for_a_long_message_that_a_short_one_failed_to_use_comes_back)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	for (int i = 0; i < 2; i++) { /* for the type, for a buffer */
		CHECK_IS(send_now(0, TYPE, BYTES), -EAGAIN);
		local_settle();
	}
	int (*take)(struct net *, size_t, struct block **) = blind.take;
	blind.take = take_none;
	CHECK_IS(send_now(0, TYPE, 10), -ENOMEM);
	blind.take = take;
	CHECK_IS(send_urged(SECOND, TYPE, 10), 0);
	local_close();
}

TEST(others_find_half_of_the_buffers_free_though_one_has_sent_much)
{
	enum { MANY = 40 };
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 8, MANY, 0) == 0);
	CHECK_IS(tern_buf_send(local[NEAR], OWNER, TYPE, data, 1), 0);
	CHECK_IS(next(TYPE), 1);
	stream(0, TYPE);
	CHECK(free_buffers(TYPE) >= MANY / 2);
	for (int i = 0; i < MANY / 2; i++)
		CHECK_IS(send_now(NEAR, TYPE, 1), 0);
	local_close();
}

TEST(a_type_that_refuses_lends_nothing_ahead)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_REFUSE) == 0);
	for (int i = 0; i < 20; i++) {
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
		CHECK_IS(next(TYPE), 1);
		local_settle();
		CHECK_IS(free_buffers(TYPE), COUNT);
	}
	local_close();
}

TEST(the_spill_is_lent_too_and_is_bounded)
{
	enum { CELLS = 32 + 2 /* of 32K: half small, half large */ };
	setenv("TERN_SPILL", "32K", 1);
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_SPILL) == 0);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < COUNT + CELLS; i++)
			CHECK_IS(send_tried(round % 2 && i % 3 ? NEAR : 0, TYPE, 500), 0);
		CHECK_IS(send_tried(0, TYPE, 500), -EAGAIN);
		for (unsigned i = 0; i < COUNT + CELLS; i++)
			CHECK_IS(next(TYPE), 500);
		CHECK_IS(next(TYPE), -1);
		local_settle();
		while (next(TYPE) >= 0) /* of whoever had tried last */
			;
	}
	local_close();
}

TEST(an_idle_cell_of_the_spill_goes_to_whoever_needs_one_for_another_type)
{
	static const uint32_t others[] = { 0, SECOND, NEAR, OWNER };
	setenv("TERN_SPILL", "512", 1); /* one */
	for (unsigned n = 0; n < 4; n++) {
		open_far();
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
		REQUIRE(tern_buf_alloc(local[OWNER], OTHER, 64, 1, TERN_BUF_SPILL) == 0);
		idle_cell(0, OTHER);
		CHECK_IS(send_tried(others[n], TYPE, 64), 0);
		CHECK_IS(send_urged(others[n], TYPE, 64), 0);
		CHECK(!bufpool_lends(&type_queue_at(KEY_SPILL)->pool) &&
		      !bufpool_lends(&type_queue_at(OTHER)->pool));
		CHECK_IS(send_tried(0, OTHER, 64), -EAGAIN);
		local_close();
	}
}

TEST(an_idle_cell_of_the_spill_is_asked_back_though_its_borrower_sends_other_messages_all_the_time)
{
	setenv("TERN_SPILL", "512", 1); /* one */
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
	REQUIRE(tern_buf_alloc(local[OWNER], OTHER, 4096, 1, TERN_BUF_SPILL) == 0);
	idle_cell(0, OTHER);
	CHECK_IS(next(OTHER), 64);
	CHECK_IS(send_tried(NEAR, TYPE, 64), 0);
	int rc = -EAGAIN;
	for (int i = 0; i < 2000 && rc == -EAGAIN; i++) { /* many times as long as that takes */
		CHECK_IS(send_tried(0, OTHER, 4096), 0);
		CHECK_IS(next(OTHER), 4096);
		rc = send_now(NEAR, TYPE, 64);
	}
	CHECK_IS(rc, 0);
	local_close();
}

/* Rank 0 is waiting meanwhile. */
static void send_small(tern *t, void *arg)
{
	(void)arg;
	CHECK_IS(send_urged(tern_rank(t), TYPE, 64), 0);
	CHECK_IS(next(TYPE), 64); /* whose buffer is what rank 0 waits for */
}

TEST(a_send_that_waits_keeps_nothing_that_is_too_small_for_it)
{
	static const uint32_t others[] = { SECOND, NEAR };
	setenv("TERN_SPILL", "512", 1); /* one */
	for (unsigned n = 0; n < 2; n++) {
		open_far();
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 1024, 1, TERN_BUF_SPILL) == 0);
		idle_cell(0, TYPE);
		CHECK_IS(tern_defer(local[others[n]], send_small, NULL), 0);
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1000), 0);
		local_settle();
		CHECK_IS(next(TYPE), 64);
		CHECK_IS(next(TYPE), 1000);
		local_close();
	}
}

TEST(a_send_that_waits_keeps_a_buffer_rather_than_a_cell_and_is_asked_for_it_again)
{
	setenv("TERN_SPILL", "512", 1); /* one */
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 1024, 1, TERN_BUF_SPILL) == 0);
	idle_cell(0, TYPE);
	CHECK_IS(next(TYPE), 64);
	uint64_t claim[] = { TYPE, type_queue_at(TYPE)->pool.generation, 1000 };
	CHECK_IS(layer_request(local[0]->own, OWNER, TYPED_CLAIM, NULL, 0, 3, claim), 0);
	local_settle();
	struct lease_cache *h = typed_of(local[0])->route[OWNER]->part[0][TYPE].cache;
	CHECK(h->count == 2 && lease_place(h->lease[0]) == LEASE_SMALL);
	struct sending s = { .len = 64 };
	h->waiting[false] = &s;
	CHECK_IS(send_urged(SECOND, TYPE, 64), 0);
	CHECK(h->count == 1 && lease_place(h->lease[0]) == LEASE_TYPE);
	h->waiting[false] = NULL; /* it has failed */
	CHECK_IS(send_urged(SECOND, TYPE, 64), 0);
	local_close();
}

TEST(what_was_lent_to_a_rank_that_dies_comes_back)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	REQUIRE(tern_buf_alloc(local[OWNER], OTHER, BYTES, 1, 0) == 0);
	stream(0, TYPE);
	CHECK_IS(send_now(0, OTHER, BYTES), -EAGAIN);
	local_settle();
	CHECK_IS(send_now(0, OTHER, BYTES), -EAGAIN); /* it gets a buffer, and does not use it */
	local_settle();
	CHECK(free_buffers(TYPE) < COUNT && free_buffers(OTHER) == 0);
	job_rank_ended(&local[OWNER]->own->group->job, 0, SIGKILL);
	for (int i = 0; i < 5; i++)
		CHECK(tern_poll(local[OWNER]) >= 0);
	CHECK_IS(free_buffers(TYPE), COUNT);
	CHECK_IS(free_buffers(OTHER), 1);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	CHECK(!typed_of(local[OWNER])->draining);
}

TEST(what_comes_from_a_rank_after_it_was_forgotten_is_dropped_without_a_word)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER) == 0);
	stream(0, TYPE);
	struct typed *y = typed_of(local[OWNER]);
	CHECK_IS(send_now(0, TYPE, 5), 0);
	CHECK_IS(send_now(0, TYPE, BYTES), -EAGAIN); /* it asks too */
	local[OWNER]->own->site.peer[0].lost = true; /* a network may have kept these back */
	lend_forget(y, 0);
	bufpool_reclaim(&type_queue_at(TYPE)->pool, 0);
	order_lost(y, 0);
	for (int i = 0; i < 5; i++)
		CHECK(tern_poll(local[OWNER]) >= 0);
	CHECK_IS(next(TYPE), -1);
	CHECK(free_buffers(TYPE) == COUNT && y->due == 0);
}

/* -- Closing ----------------------------------------------------------------------------------- */

TEST(a_type_of_which_something_is_lent_can_be_closed_and_opened_again)
{
	open_far();
	char *before = handed_alloc(local[OWNER], 64);
	for (unsigned round = 0; round < 50; round++) {
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 100 + round, 1 + round,
				       round % 2 ? TERN_BUF_ORDER : 0) == 0);
		stream(0, TYPE);
		CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
		if (round % 3)
			local_settle();
	}
	CHECK_IS(send_tried(0, TYPE, 1), -ENXIO);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK(!typed_of(local[OWNER])->draining); /* everything has come back */
	CHECK((char *)handed_alloc(local[OWNER], 64) - before < 2 << 20);
	local_close();
}

TEST(a_cell_of_the_spill_that_is_lent_comes_back_though_its_type_is_closed_and_opened_at_once)
{
	setenv("TERN_SPILL", "512", 1); /* one */
	open_far();
	for (int round = 0; round < 3; round++) {
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
		idle_cell(0, TYPE);
		CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
		local_settle();
		CHECK_IS(free_buffers(KEY_SPILL), 1);
		CHECK_IS(send_tried(0, TYPE, 64), 0);
		CHECK_IS(send_tried(0, TYPE, 64), 0);
		CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	}
	local_close();
}

TEST(a_sender_that_has_something_and_could_know_of_the_closing_sends_nothing)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	stream(0, TYPE);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE),
		 0); /* what it says of that has come, and was not looked at */
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), -ENXIO);
	local_close();
}

static void make_longer(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_buf_close(t, TYPE), 0);
	CHECK_IS(tern_buf_alloc(t, TYPE, 2 * BYTES, COUNT, 0), 0);
}

TEST(what_a_sender_knows_of_buffers_that_are_too_short_is_asked_again)
{
	open_far();
	local_on(1, make_longer);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	stream(0, TYPE);
	CHECK_IS(tern_request(local[NEAR], OWNER, 1), 0);
	poll_inlet(local[OWNER]->own, &local[OWNER]->own->site.bell); /* the handler, and no more */
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 2 * BYTES), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 2 * BYTES + 1), -EMSGSIZE);
	local_close();
}

TEST(a_type_into_which_a_far_rank_may_put_a_long_message_stays_open)
{
	open_far();
	tern_op op = TERN_OP;
	int rc;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES, 0, &op), 0);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), -EBUSY);
	while ((rc = tern_op_test(local[0], &op)) == 0)
		local_settle();
	CHECK_IS(rc, 1);
	CHECK_IS(next(TYPE), BYTES);
	CHECK_IS(send_now(0, TYPE, BYTES),
		 -EAGAIN); /* asks for a buffer, and thinks better of it */
	local_settle();
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), -EBUSY);
	local_settle();
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	local_close();
}

TEST(a_message_that_comes_for_a_type_that_was_closed_is_dropped_and_leaves_no_hole)
{
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER_ALL) == 0);
	REQUIRE(tern_buf_alloc(local[OWNER], OTHER, BYTES, COUNT, TERN_BUF_ORDER_ALL) == 0);
	stream(0, TYPE);
	stream(0, OTHER);
	for (int with_long = 0; with_long < 2; with_long++) {
		if (with_long)
			CHECK_IS(tern_buf_send_start(local[0], OWNER, OTHER, data, BYTES, 0, &op),
				 0);
		CHECK_IS(send_now(0, TYPE, 2), 0);
		CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0); /* the message is under way */
		CHECK_IS(tern_buf_send(local[0], OWNER, OTHER, data, 3), 0);
		for (int i = 0; i < 50; i++)
			local_settle();
		if (with_long)
			CHECK_IS(next(OTHER), BYTES);
		CHECK_IS(next(OTHER), 3);
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER_ALL) == 0);
		CHECK(!typed_of(local[OWNER])->draining);
		stream(0, TYPE);
		stream(0, OTHER);
	}
	CHECK_IS(tern_op_test(local[0], &op), 1);
	local_close();
}

TEST(a_sender_that_waits_for_a_buffer_of_a_type_that_is_closed_is_told)
{
	open_far();
	for (int i = 0; i < 2; i++) {
		size_t len = i ? BYTES : 1;
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
		CHECK_IS(send_tried(0, TYPE, len), -EAGAIN);
		CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, len), -ENXIO);
	}
	local_close();
}
