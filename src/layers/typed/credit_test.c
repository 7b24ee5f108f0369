/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits of senders who cannot map their receiver's memory: shares, what is asked for and not
 * used, and closing a type of which somebody has credits.
 */
#include "../../../tests/handed.h"
#include "../../../tests/typed_far.h"

enum { MANY = 64 };

/* -- Shares ------------------------------------------------------------------------------------ */

TEST(a_sender_that_has_a_share_sends_without_asking_and_its_credits_return)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 8, MANY, 0) == 0);
	stream(0, TYPE);
	uint32_t share = type_queue_at(TYPE)->far[0].share;
	CHECK_IS(share, MANY / 2 / (RANKS - 1));
	CHECK_IS(far_at(0, TYPE)->credits, share);
	for (int round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < share; i++)
			CHECK_IS(send_now(0, TYPE, 1), 0);
		CHECK(!far_at(0, TYPE)->asked[false]);
		local_settle();
		for (uint32_t i = 0; i < share; i++)
			CHECK_IS(next(TYPE), 1);
		local_settle();
		CHECK_IS(far_at(0, TYPE)->credits, share);
	}
	local_close();
}

TEST(credits_return_though_buffers_were_not_free_when_they_were_used)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 8, COUNT, 0) == 0);
	stream(0, TYPE);
	while (send_tried(NEAR, TYPE, 1) == 0)
		;
	CHECK_IS(send_now(0, TYPE, 2), 0);
	local_settle();
	CHECK_IS(far_at(0, TYPE)->credits, 0);
	CHECK_IS(next(TYPE), 1);
	local_settle();
	CHECK_IS(far_at(0, TYPE)->credits, 1);
	local_close();
}

TEST(a_buffer_of_a_further_call_fills_a_share_too)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 8, COUNT, 0) == 0);
	stream(0, TYPE);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 8, COUNT, 0) == 0);
	while (send_tried(NEAR, TYPE, 1) == 0)
		;
	CHECK_IS(send_now(0, TYPE, 2), 0);
	local_settle();
	CHECK_IS(far_at(0, TYPE)->credits, 0);
	void *p = NULL; /* those of the first call are kept */
	do
		p = handed_buf(local[OWNER], TYPE, TERN_BUF_NOWAIT, NULL, NULL);
	while (p && buf_slot_at(typed_of(local[OWNER]), p)->queue == type_queue_at(TYPE));
	REQUIRE(p);
	CHECK_IS(tern_buf_free(local[OWNER], p), 0);
	local_settle();
	CHECK_IS(far_at(0, TYPE)->credits, 1);
	local_close();
}

TEST(a_share_that_is_not_used_goes_back_and_comes_again_with_the_next_question)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 8, MANY, 0) == 0);
	stream(0, TYPE);
	CHECK(free_buffers(TYPE) < MANY);
	far_hasty(0);
	for (int i = 0; i < 3; i++)
		local_settle();
	CHECK_IS(free_buffers(TYPE), MANY);
	CHECK_IS(far_at(0, TYPE)->credits, 0);
	CHECK(!typed_of(local[0])->watched); /* it may rest */
	for (int i = 0; i < MANY; i++)       /* nothing is kept for it */
		CHECK_IS(send_tried(SECOND, TYPE, 1), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_IS(next(TYPE), 1);
	typed_of(local[0])->idle_ns = UINT64_MAX;
	CHECK_IS(send_tried(0, TYPE, 1), 0);
	CHECK_IS(next(TYPE), 1);
	local_settle();
	CHECK(far_at(0, TYPE)->credits > 1);
	local_close();
}

TEST(others_find_half_of_the_buffers_free_though_far_ranks_have_shares)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 8, MANY, 0) == 0);
	REQUIRE(tern_buf_alloc(local[OWNER], OTHER, 8, 3, 0) == 0);
	stream(0, TYPE);
	stream(SECOND, TYPE);
	stream(0, OTHER);
	CHECK_IS(send_tried(SECOND, OTHER, 1), 0); /* asks: the half that is shared out is gone */
	CHECK_IS(type_queue_at(OTHER)->far[SECOND].share, 0);
	CHECK(free_buffers(TYPE) >= MANY / 2);
	CHECK_IS(send_tried(NEAR, TYPE, 1), 0);
	for (int i = 1; i < MANY / 2; i++)
		CHECK_IS(send_now(NEAR, TYPE, 1), 0);
	local_close();
}

TEST(a_type_that_refuses_has_no_shares)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_REFUSE) == 0);
	for (int i = 0; i < 20; i++) {
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
		local_settle();
		CHECK_IS(next(TYPE), 1);
		CHECK_IS(free_buffers(TYPE), COUNT);
	}
	local_close();
}

/* -- What is asked for ------------------------------------------------------------------------- */

TEST(what_a_far_rank_asked_for_and_does_not_use_goes_to_another_that_needs_it)
{
	static const uint32_t others[] = { SECOND, NEAR, OWNER };
	for (unsigned n = 0; n < 6; n++) {
		open_far();
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
		ask_only(0, TYPE, n % 2 ? BYTES : 10);
		CHECK_IS(free_buffers(TYPE), 0);
		CHECK_IS(send_tried(others[n / 2], TYPE, 10), -EAGAIN);
		far_hasty(0);
		CHECK_IS(send_tried(others[n / 2], TYPE, 10), 0);
		CHECK_IS(next(TYPE), 10);
		local_close();
	}
}

/* There is no memory for the first block. */
static int take_none(struct net *net, size_t len, struct block **out)
{
	(void)net, (void)len, (void)out;
	return -ENOMEM;
}

TEST(a_credit_that_a_send_failed_to_use_is_there_for_the_next)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK_IS(send_now(0, TYPE, 10), -EAGAIN); /* for the type */
	local_settle();
	int (*take)(struct net *, size_t, struct block **) = blind.take;
	blind.take = take_none;
	CHECK_IS(send_now(0, TYPE, 10), -ENOMEM);
	blind.take = take;
	CHECK_IS(send_now(0, TYPE, 10), 0);
	local_close();
}

TEST(the_spill_is_for_far_senders_too_and_is_bounded)
{
	enum { CELLS = 32 + 2 /* of 32K: half small, half large */, BUFFERS = 4 };
	setenv("TERN_SPILL", "32K", 1);
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 500, BUFFERS, TERN_BUF_SPILL) == 0);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < BUFFERS + CELLS; i++)
			CHECK_IS(send_tried(0, TYPE, 500), 0);
		CHECK_IS(send_tried(0, TYPE, 500), -EAGAIN);
		for (unsigned i = 0; i < BUFFERS + CELLS; i++)
			CHECK_IS(next(TYPE), 500);
		CHECK_IS(next(TYPE), -1);
		local_settle();
		while (next(TYPE) >= 0) /* of whoever had tried last */
			;
	}
	local_close();
}

TEST(a_long_message_of_a_far_rank_is_spilled_too_and_its_cell_comes_back)
{
	enum { CELLS = 2 /* of 256K: half in cells of 64K */ };
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 0, TERN_BUF_SPILL) == 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < CELLS; i++)
			CHECK_IS(send_tried(0, TYPE, BYTES), 0);
		CHECK_IS(send_tried(0, TYPE, BYTES), -EAGAIN);
		local_settle();
		for (int i = 0; i < CELLS; i++)
			CHECK_IS(next(TYPE), BYTES);
		local_settle(); /* it has the place that it asked for last */
		CHECK_IS(free_buffers(KEY_SPILL + 2), CELLS - 1);
		if (round == 1) {
			CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
			REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 0, TERN_BUF_SPILL) == 0);
		}
		far_hasty(0);
		for (int i = 0; i < 3; i++)
			local_settle();
		typed_of(local[0])->idle_ns = UINT64_MAX;
		CHECK_IS(free_buffers(KEY_SPILL + 2), CELLS);
	}
	local_close();
}

TEST(a_far_rank_sends_into_buffers_of_further_calls)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 100, 2, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 100), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 101), -EMSGSIZE);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 5000, 2, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 101),
		 0); /* the length is asked about */
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 100), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES + 1), -EMSGSIZE);
	local_settle();
	long long sum = 0;
	for (int i = 0; i < 4; i++)
		sum += next(TYPE);
	CHECK_IS(sum, 100 + 101 + BYTES + 100);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	local_close();
}

/* -- Ranks that leave -------------------------------------------------------------------------- */

TEST(what_a_rank_had_that_dies_comes_back)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	REQUIRE(tern_buf_alloc(local[OWNER], OTHER, BYTES, 1, 0) == 0);
	stream(0, TYPE);
	ask_only(0, OTHER, BYTES);
	CHECK(free_buffers(TYPE) < COUNT && free_buffers(OTHER) == 0);
	job_rank_ended(&local[OWNER]->own->group->job, 0, SIGKILL);
	for (int i = 0; i < 5; i++)
		CHECK(tern_poll(local[OWNER]) >= 0);
	CHECK_IS(free_buffers(TYPE), COUNT);
	CHECK_IS(free_buffers(OTHER), 1);
	CHECK_IS(type_queue_at(TYPE)->shared, 0);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	CHECK_IS(tern_buf_close(local[OWNER], OTHER), 0);
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
	typed_layer.lost(y, 0);
	for (int i = 0; i < 5; i++)
		CHECK(tern_poll(local[OWNER]) >= 0);
	CHECK_IS(next(TYPE), -1);
	CHECK(free_buffers(TYPE) == COUNT && y->due == 0);
}

/* -- Closing ----------------------------------------------------------------------------------- */

TEST(a_type_of_which_somebody_has_credits_can_be_closed_and_opened_again)
{
	open_far();
	char *before = handed_alloc(local[OWNER], 64);
	for (unsigned round = 0; round < 50; round++) {
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 100 + round, 2 + round,
				       round % 2 ? TERN_BUF_ORDER : 0) == 0);
		stream(0, TYPE);
		CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
		if (round % 3)
			local_settle();
	}
	CHECK_IS(send_tried(0, TYPE, 1), -ENXIO);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK_IS(free_buffers(TYPE), COUNT);
	CHECK((char *)handed_alloc(local[OWNER], 64) - before < 2 << 20);
	local_close();
}

TEST(a_cell_of_the_spill_that_was_asked_for_comes_back_when_its_type_is_closed)
{
	setenv("TERN_SPILL", "512", 1); /* one */
	open_far();
	for (int round = 0; round < 3; round++) {
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
		CHECK_IS(send_tried(0, TYPE, 64), 0);
		ask_only(0, TYPE, 64);
		CHECK_IS(free_buffers(KEY_SPILL), 0);
		CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
		CHECK_IS(free_buffers(KEY_SPILL), 1);
	}
	local_close();
}

TEST(a_sender_that_has_a_credit_and_could_know_of_the_closing_sends_nothing)
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
	CHECK_IS(send_now(0, TYPE, BYTES), -EAGAIN); /* asks for a place, and thinks better of it */
	local_settle();
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), -EBUSY);
	far_hasty(0);
	local_settle();
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	local_close();
}

TEST(a_message_that_comes_for_a_type_that_was_closed_is_dropped_and_leaves_no_hole)
{
	open_far();
	tern_op op = TERN_OP;
	struct typed *y = typed_of(local[OWNER]);
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
		tern_poll(local[OWNER]);
		CHECK_IS(y->late[0], with_long); /* behind what is landing */
		for (int i = 0; i < 50; i++)
			local_settle();
		if (with_long)
			CHECK_IS(next(OTHER), BYTES);
		CHECK_IS(next(OTHER), 3);
		CHECK_IS(y->late[0], 0);
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER_ALL) == 0);
		stream(0, TYPE);
		stream(0, OTHER);
	}
	CHECK_IS(tern_op_test(local[0], &op), 1);
	local_close();
}

TEST(numbers_of_messages_that_came_too_late_take_bounded_memory)
{
	enum { MOST = 4096 };
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER_ALL) == 0);
	struct typed *y = typed_of(local[OWNER]);
	int rc = 0;
	for (uint64_t i = 0; i < MOST + 10 && rc >= 0; i++) {
		uint64_t words[BROUGHT_WORDS] = { 0 };
		notice_write(&(struct notice){ .type = OTHER,
					       .order = TERN_BUF_ORDER_ALL,
					       .number = i + 1 }, /* the first never comes */
			     words);
		while (layer_request(local[0]->own, OWNER, TYPED_BROUGHT, NULL, 0, BROUGHT_WORDS,
				     words))
			tern_poll(local[OWNER]);
		rc = tern_poll(local[OWNER]);
	}
	CHECK_IS(rc, -EBADMSG);
	CHECK_IS(y->late[0], MOST);
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
