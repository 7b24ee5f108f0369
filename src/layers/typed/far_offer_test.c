/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offers of senders who cannot map their receiver's memory, at the receiver: those that wait for a
 * buffer, their order, closing a type, and ranks that leave.
 */
#include "lib/handed.h"
#include "lib/typed_far.h"

/* -- What waits for a buffer ------------------------------------------------------------------- */

TEST(what_finds_no_buffer_waits_and_lands_in_order_when_one_is_given_back)
{
	enum { MESSAGES = 40 };
	tern_op op[MESSAGES];
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MESSAGES; i++) { /* short ones and long ones */
			op[i] = (tern_op)TERN_OP;
			size_t len = i % 5 == 4 ? 10000 + (size_t)i : (size_t)i;
			CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, len,
						     TERN_BUF_NOWAIT, &op[i]),
				 0);
			if (i % 7 == round)
				local_settle();
		}
		for (int i = 0; i < MESSAGES; i++) {
			long long len = -1;
			for (int n = 0; n < 1000 && len < 0; n++) {
				local_settle();
				len = next(TYPE);
			}
			CHECK_IS(len, i % 5 == 4 ? 10000 + i : i);
		}
		for (int i = 0; i < MESSAGES; i++)
			CHECK_IS(send_ends(0, &op[i]), 1);
		CHECK_IS(next(TYPE), -1);
		CHECK_IS(free_buffers(TYPE), COUNT);
		CHECK(!typed_of(local[OWNER])->offers && !typed_of(local[OWNER])->waiting);
	}
	local_close();
}

TEST(nobody_waits_for_the_message_of_another)
{
	open_far();
	tern_op large = TERN_OP, small = TERN_OP, other = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 100, 1, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 100), 0);
	send_waits(0, TYPE, BYTES - 1, &large);
	send_waits(0, TYPE, 10, &small); /* behind it */
	send_waits(SECOND, TYPE, 11, &other);
	void *kept = handed_buf(local[OWNER], TYPE, 0, NULL, NULL);
	CHECK_IS(next(TYPE), 100); /* the small buffer is free */
	CHECK_IS(send_ends(SECOND, &other), 1);
	CHECK_IS(next(TYPE), 11);
	local_settle();
	CHECK(large.pending && small.pending);
	CHECK_IS(tern_buf_free(local[OWNER], kept), 0);
	CHECK_IS(send_ends(0, &large), 1);
	CHECK_IS(next(TYPE), BYTES - 1);
	CHECK_IS(send_ends(0, &small), 1);
	CHECK_IS(next(TYPE), 10);
	local_close();
}

TEST(a_buffer_that_a_handler_gives_back_or_a_further_call_adds_is_used)
{
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 100, 1, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
	send_waits(0, TYPE, 2, &op);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 50, 1, 0) == 0);
	CHECK_IS(send_ends(0, &op), 1);
	CHECK_IS(next(TYPE), 1);
	CHECK_IS(next(TYPE), 2);
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
			CHECK_IS(send_now(0, TYPE, 500), 0);
		CHECK_IS(send_now(0, TYPE, 500), -EAGAIN);
		for (unsigned i = 0; i < BUFFERS + CELLS; i++)
			CHECK_IS(next(TYPE), 500);
		CHECK_IS(next(TYPE), -1);
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
			CHECK_IS(send_now(0, TYPE, BYTES), 0);
		CHECK_IS(send_now(0, TYPE, BYTES), -EAGAIN);
		for (int i = 0; i < CELLS; i++)
			CHECK_IS(next(TYPE), BYTES);
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
	CHECK(sentence_has(-EMSGSIZE, "101 bytes") && sentence_has(-EMSGSIZE, "have 100"));
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 5000, 2, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 101), 0);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 100), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES + 1), -EMSGSIZE);
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
	tern_op op[2] = { TERN_OP, TERN_OP };
	struct typed *y = typed_of(local[OWNER]);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES, 0, &op[0]), 0);
	CHECK(tern_poll(local[OWNER]) >= 0); /* it is told a place */
	CHECK_IS(free_buffers(TYPE), 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 1, 0, &op[1]), 0);
	CHECK(tern_poll(local[OWNER]) >= 0); /* it waits */
	CHECK_IS(y->waiting, 1);
	job_rank_ended(&local[OWNER]->own->group->job, 0, SIGKILL);
	for (int i = 0; i < 5; i++)
		CHECK(tern_poll(local[OWNER]) >= 0);
	CHECK_IS(free_buffers(TYPE), 1);
	CHECK(!y->offers && !y->waiting);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
}

TEST(what_comes_from_a_rank_after_it_was_forgotten_is_dropped_without_a_word)
{
	open_far();
	tern_op op[2] = { TERN_OP, TERN_OP };
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER) == 0);
	struct typed *y = typed_of(local[OWNER]);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 5, 0, &op[0]), 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES, 0, &op[1]), 0);
	local[OWNER]->own->site.peer[0].lost = true; /* a network may have kept these back */
	typed_layer.lost(y, 0);
	for (int i = 0; i < 5; i++)
		CHECK(tern_poll(local[OWNER]) >= 0);
	CHECK_IS(next(TYPE), -1);
	CHECK(free_buffers(TYPE) == COUNT && !y->offers);
}

/* -- Closing ----------------------------------------------------------------------------------- */

static void close_it(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_buf_close(t, TYPE), 0);
}

TEST(a_sender_that_waits_for_a_buffer_of_a_type_that_is_closed_is_told)
{
	open_far();
	local_on(1, close_it);
	for (int i = 0; i < 4; i++) {
		tern_op op = TERN_OP;
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
		send_waits(0, TYPE, i % 2 ? BYTES : 1, &op);
		if (i / 2) /* in a handler */
			CHECK_IS(tern_request(local[NEAR], OWNER, 1), 0);
		else
			CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
		int rc = send_ends(0, &op);
		CHECK_IS(rc, -ENXIO);
		CHECK(sentence_has(rc, "tern_buf_alloc()"));
	}
	local_close();
}

TEST(a_type_into_which_a_far_rank_may_put_a_long_message_stays_open)
{
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES, 0, &op), 0);
	CHECK(tern_poll(local[OWNER]) >= 0);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), -EBUSY);
	CHECK_IS(send_ends(0, &op), 1);
	CHECK_IS(next(TYPE), BYTES);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	local_close();
}

TEST(what_lands_in_the_spill_after_its_type_was_closed_is_dropped)
{
	open_far();
	for (int round = 0; round < 3; round++) {
		tern_op op = TERN_OP;
		REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 0, TERN_BUF_SPILL) == 0);
		CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES, 0, &op), 0);
		CHECK(tern_poll(local[OWNER]) >= 0); /* it is told a cell */
		CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
		CHECK_IS(send_ends(0, &op), 1);
		local_settle();
		CHECK_IS(free_buffers(KEY_SPILL + 2), 2);
		CHECK(!typed_of(local[OWNER])->offers);
	}
	local_close();
}

TEST(a_sender_knows_of_the_closing_with_its_next_message)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), -ENXIO);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 2 * BYTES, COUNT, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 2 * BYTES), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 2 * BYTES + 1), -EMSGSIZE);
	local_close();
}

/* -- What no good peer sends ------------------------------------------------------------------- */

static void refused(uint32_t at, const char *why)
{
	int rc = 0;
	for (int i = 0; i < 3 && rc >= 0; i++)
		rc = tern_poll(local[at]);
	CHECK_IS(rc, -EBADMSG);
	CHECK(sentence_has(rc, why));
}

static void offers(const struct offer_msg *w, size_t len, unsigned n)
{
	uint64_t words[OFFER_WORDS];
	memcpy(words, w, sizeof *w);
	CHECK_IS(layer_request(local[0]->own, OWNER, TYPED_OFFER, len ? data : NULL, len, n, words),
		 0);
}

TEST(an_offer_that_no_good_peer_makes_is_refused)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	struct offer_msg w = { .type = TYPE, .len = 10 };
	offers(&w, 9, OFFER_WORDS);
	refused(OWNER, "not as long as it says");
	offers(&w, 0, OFFER_WORDS);
	refused(OWNER, "not as long as it says");
	offers(&w, 10, 1);
	refused(OWNER, "not as long as it says");
	w.len = BYTES; /* a long one brings nothing */
	offers(&w, 10, OFFER_WORDS);
	refused(OWNER, "not as long as it says");
	CHECK_IS(free_buffers(TYPE), COUNT);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 10), 0); /* all is as it was */
	CHECK_IS(next(TYPE), 10);
	local_close();
}

TEST(offers_that_wait_take_bounded_memory)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 10), 0);
	for (unsigned i = 0; i < TERN_BUF_SENDS_MAX + 10; i++) {
		struct offer_msg w = { .type = TYPE, .len = BYTES, .id = i };
		offers(&w, 0, OFFER_WORDS);
		CHECK(tern_poll(local[OWNER]) >= 0);
	}
	CHECK_IS(typed_of(local[OWNER])->waiting, TERN_BUF_SENDS_MAX);
	refused(0, "not asked"); /* the answers to the others */
	local_close();
}

TEST(an_answer_that_nobody_waits_for_changes_nothing)
{
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 10), 0);
	send_waits(0, TYPE, 10, &op);
	const struct outgoing *o = NULL;
	for (unsigned i = 0; !o; i++)
		o = record_at(&typed_of(local[0])->outgoing, i);
	uint32_t id = record_name(o);
	const struct answer_msg bad[] = {
		{ .id = id + 1 },
		{ .id = id + (1 << 16) },
		{ .id = id, .placed = 1, .at = handed_addr(local[0], handed_alloc(local[0], 8)) },
	};
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint64_t words[ANSWER_WORDS];
		memcpy(words, &bad[i], sizeof words);
		CHECK_IS(layer_request(local[OWNER]->own, 0, TYPED_ANSWER, NULL, 0, ANSWER_WORDS,
				       words),
			 0);
		refused(0, "not asked");
		memcpy(words, &(struct answer_msg){ .id = id }, sizeof words);
		CHECK_IS(layer_request(local[i ? NEAR : OWNER]->own, 0, TYPED_ANSWER, NULL, 0,
				       i ? ANSWER_WORDS : 1, words),
			 0);
		refused(0, "not asked"); /* another rank's, or too short */
	}
	CHECK_IS(op.pending, 1);
	CHECK_IS(next(TYPE), 10);
	CHECK_IS(send_ends(0, &op), 1);
	CHECK_IS(next(TYPE), 10);
	local_close();
}
