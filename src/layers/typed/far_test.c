/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends to a rank whose memory the sender cannot map: what they promise, and many senders at once.
 * offer_test.c tests the receiver's side.
 */
#include "lib/handed.h"
#include "lib/typed_far.h"

/* -- What a send does -------------------------------------------------------------------------- */

TEST(a_message_to_a_far_rank_lands_in_its_buffer)
{
	static const size_t lens[] = {
		0, 1, 7, 64, 4096, TERN_PAYLOAD_MAX, TERN_PAYLOAD_MAX + 1, 9000, 19999, BYTES, BYTES
	};
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++) {
		uint32_t src = 99;
		size_t len = 99;
		chance_fill(data, lens[i], i);
		int rc = tern_buf_send(local[0], OWNER, TYPE, data, lens[i]);
		if (!CHECK_IS(rc, 0))
			printf("    %zu: %s\n", lens[i], tern_strerror(rc));
		unsigned char *p = handed_buf(local[OWNER], TYPE, 0, &src, &len);
		REQUIRE(p);
		CHECK(src == 0 && len == lens[i] && chance_filled(p, len, i));
		CHECK_IS(tern_buf_free(local[OWNER], p), 0);
	}
	local_close();
}

TEST(a_far_send_says_what_a_near_one_says)
{
	open_far();
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), -ENXIO);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, TERN_BUF_REFUSE) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES + 1), -EMSGSIZE);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), -ENOBUFS);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES), -ENOBUFS);
	CHECK_IS(send_tried(0, TYPE, 1), -ENOBUFS);
	CHECK_IS(next(TYPE), 1);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES), 0);
	CHECK_IS(next(TYPE), BYTES);
	CHECK_IS(tern_buf_close(local[OWNER], TYPE), 0);
	CHECK_IS(send_tried(0, TYPE, 1), -ENXIO);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 2 * BYTES, 1, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES + 1), 0); /* as it is now */
	local_close_one(OWNER);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), -ESHUTDOWN);
	local_close();
}

TEST(nothing_lands_but_what_has_a_buffer)
{
	static const size_t lens[] = { 10, 10000 };
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	for (unsigned round = 0; round < 6; round++) {
		size_t len = lens[round % 2];
		for (int i = 0; i < COUNT; i++)
			CHECK_IS(send_now(0, TYPE, len), 0);
		CHECK_IS(send_now(0, TYPE, len), -EAGAIN);
		CHECK_IS(next(TYPE), len);
		CHECK_IS(send_now(0, TYPE, len), 0);
		CHECK_IS(send_now(0, TYPE, len), -EAGAIN);
		for (int i = 0; i < COUNT; i++)
			CHECK_IS(next(TYPE), len);
		CHECK_IS(next(TYPE), -1);
	}
	local_close();
}

static void free_one(tern *t, void *arg)
{
	CHECK_IS(tern_buf_free(t, arg), 0);
}

TEST(a_send_that_waits_goes_on_when_a_buffer_is_given_back)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	for (int i = 0; i < 4; i++) {
		size_t len = i % 2 ? 10000 : 10;
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, len), 0);
		void *p = handed_buf(local[OWNER], TYPE, 0, NULL, NULL);
		CHECK_IS(tern_defer(local[OWNER], free_one, p), 0);
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, len), 0);
		CHECK_IS(send_now(0, TYPE, 1), -EAGAIN);
		CHECK_IS(next(TYPE), len);
	}
	local_close();
}

TEST(a_handle_is_told_that_a_message_was_refused)
{
	open_far();
	tern_op op = TERN_OP;
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 5, TERN_BUF_NOWAIT, &op), 0);
	CHECK_IS(send_ends(0, &op), -ENXIO);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, TERN_BUF_REFUSE) == 0);
	for (int i = 0; i < 2; i++) {
		size_t len = i ? BYTES : 5;
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, len), 0);
		CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, len, 0, &op), 0);
		CHECK_IS(send_ends(0, &op), -ENOBUFS);
		CHECK(sentence_has(-ENOBUFS, "rank 1") && sentence_has(-ENOBUFS, "type 4"));
		CHECK_IS(next(TYPE), len);
	}
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES + 1, 0, &op), 0);
	CHECK_IS(send_ends(0, &op), -EMSGSIZE);
	local_close();
}

TEST(a_long_message_that_a_short_one_follows_is_received_first)
{
	open_far();
	tern_op op[3] = { TERN_OP, TERN_OP, TERN_OP };
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT,
			       TERN_BUF_ORDER | TERN_BUF_REFUSE) == 0);
	for (size_t i = 0; i < 3; i++)
		CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, i ? i : BYTES, 0, &op[i]),
			 0);
	for (int i = 0; i < 3; i++)
		CHECK_IS(send_ends(0, &op[i]), 1); /* none is refused for standing behind another */
	CHECK_IS(next(TYPE), BYTES);
	CHECK_IS(next(TYPE), 1);
	CHECK_IS(next(TYPE), 2);
	local_close();
}

TEST(a_handle_ends_when_the_message_has_landed)
{
	open_far();
	tern_op first = TERN_OP, second = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 8, 8 * COUNT, 0) == 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 5, 0, &first), 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 5, 0, &second), 0);
	tern_poll(local[0]);
	CHECK_IS(tern_op_test(local[0], &second), 0); /* its receiver has not looked */
	local_settle();
	CHECK_IS(tern_op_test(local[0], &second), 1);
	CHECK_IS(tern_op_test(local[0], &first), 1);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 5, 0, &first), 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 5, 0, &second), 0);
	job_rank_ended(&local[0]->own->group->job, OWNER, SIGKILL);
	int rc = 0;
	while (rc == 0)
		rc = tern_op_test(local[0], &first);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK_IS(tern_op_wait(local[0], &second), -EOWNERDEAD);
}

TEST(at_most_so_many_messages_are_under_way_to_far_ranks)
{
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 5), 0);
	void *all[TERN_BUF_SENDS_MAX];
	struct pool_of *records = &typed_of(local[0])->outgoing;
	for (unsigned i = 0; i < TERN_BUF_SENDS_MAX; i++)
		REQUIRE((all[i] = record_take(records)) != NULL);
	int rc = tern_buf_send_start(local[0], OWNER, TYPE, data, 5, TERN_BUF_NOWAIT, &op);
	CHECK_IS(rc, -EAGAIN);
	CHECK(sentence_has(rc, "TERN_BUF_SENDS_MAX"));
	CHECK_IS(op.pending, 0);
	for (unsigned i = 0; i < TERN_BUF_SENDS_MAX; i++)
		record_give(records, all[i]);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 5), 0);
	local_close();
}

/* There is no memory for the first block. */
static int take_none(struct net *net, size_t len, struct block **out)
{
	(void)net, (void)len, (void)out;
	return -ENOMEM;
}

TEST(a_send_that_finds_no_block_leaves_no_trace)
{
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	int (*take)(struct net *, size_t, struct block **) = blind.take;
	blind.take = take_none;
	int rc = tern_buf_send_start(local[0], OWNER, TYPE, data, 10, TERN_BUF_NOWAIT, &op);
	CHECK(rc == -ENOMEM || rc == -EAGAIN);
	blind.take = take;
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 10), 0);
	CHECK_IS(next(TYPE), 10);
	CHECK_IS(next(TYPE), -1);
	local_close();
}

TEST(under_a_hold_a_far_send_needs_a_handle)
{
	open_far();
	tern_op op[2] = { TERN_OP, TERN_OP };
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	tern_hold(local[0]);
	for (int i = 0; i < 2; i++) {
		size_t len = i ? BYTES : 5;
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, len), -EDEADLK);
		CHECK_IS(send_now(0, TYPE, len), -EAGAIN);
		CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, len, 0, &op[i]), 0);
	}
	tern_release(local[0]);
	CHECK_IS(send_ends(0, &op[0]), 1);
	CHECK_IS(send_ends(0, &op[1]), 1);
	CHECK_IS(next(TYPE), 5);
	CHECK_IS(next(TYPE), BYTES);
	CHECK_IS(next(TYPE), -1);
	local_close();
}

static void hold_here(tern *t, const tern_msg *m)
{
	(void)m;
	tern_hold(t);
}

TEST(a_hold_that_a_handler_leaves_in_the_middle_of_a_send_begins_when_it_returns)
{
	open_far();
	local_on(1, hold_here);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, sizeof data, COUNT, 0) == 0);
	CHECK_IS(tern_request(local[NEAR], 0, 1), 0);
	chance_fill(data, sizeof data, 5);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, sizeof data), 0);
	CHECK(held(local[0]->own));
	tern_release(local[0]);
	unsigned char *p = handed_buf(local[OWNER], TYPE, 0, NULL, NULL);
	CHECK(p && chance_filled(p, sizeof data, 5));
	CHECK(!typed_of(local[0])->moving);
	local_close();
}

/* -- TERN_CHECK -------------------------------------------------------------------------------- */

TEST(with_the_check_what_is_changed_under_way_or_after_it_was_given_back_is_noticed)
{
	setenv("TERN_CHECK", "1", 1);
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES, 0, &op), 0);
	data[BYTES - 1] ^= 1;
	CHECK_IS(send_ends(0, &op), -EBADMSG);
	local_settle();
	CHECK_IS(next(TYPE), -1);
	for (int i = 0; i < 2; i++) {
		size_t len = i ? 10 : BYTES;
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, len),
			 0); /* its buffer is free again */
		char *p = handed_buf(local[OWNER], TYPE, 0, NULL, NULL);
		REQUIRE(p);
		CHECK_IS(tern_buf_free(local[OWNER], p), 0);
		p[3] ^= 1;
		CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, len, 0, &op), 0);
		CHECK_IS(tern_poll(local[OWNER]), -EBADMSG);
		CHECK_IS(send_ends(0, &op), 1);
		CHECK_IS(next(TYPE), len);
	}
	local_close();
}

/* -- Everything at once ------------------------------------------------------------------------ */

enum { TYPES = 5, LAST = 250 };
static const struct {
	size_t bytes;
	unsigned count, flags;
} kind[TYPES] = {
	{ 3000, 3, TERN_BUF_WAIT | TERN_BUF_ORDER },
	{ BYTES, 2, TERN_BUF_WAIT },
	{ 9000, 2, TERN_BUF_SPILL },
	{ 400, 1, TERN_BUF_SPILL | TERN_BUF_ORDER },
	{ 12000, 2, TERN_BUF_REFUSE | TERN_BUF_ORDER },
};

static uint32_t sent[RANKS][TYPES], got[RANKS][TYPES];

static unsigned took;

static bool receive_random(struct chance *c)
{
	unsigned type = chance_below(c, TYPES);
	uint32_t src, number;
	void *p = handed_buf(local[OWNER], type, TERN_BUF_NOWAIT, &src, NULL);
	if (!p)
		return false;
	memcpy(&number, p, sizeof number);
	CHECK_IS(number, got[src][type]++);
	CHECK_IS(tern_buf_free(local[OWNER], p), 0);
	took++;
	return true;
}

static void send_random(struct chance *c, uint32_t from)
{
	unsigned type = chance_below(c, TYPES);
	uint32_t *number = &sent[from][type];
	bool refuses = kind[type].flags & TERN_BUF_REFUSE;
	size_t most = chance_one_in(c, 4) ? kind[type].bytes : 300;
	size_t len = sizeof *number + chance_below(c, (uint32_t)(most - sizeof *number));
	if (*number == LAST)
		return;
	memcpy(data, number, sizeof *number);
	static tern_op op[RANKS];
	int rc = tern_buf_send_start(local[from], OWNER, type, data, len, TERN_BUF_NOWAIT,
				     chance_one_in(c, 2) ? &op[from] : NULL);
	while (!rc && op[from].pending) { /* `data` is the message's */
		receive_random(c);
		tern_poll(local[from]);
		tern_poll(local[OWNER]);
	}
	rc = rc ? rc : op[from].error;
	op[from].error = 0;
	CHECK(rc == 0 || rc == -EAGAIN || (rc == -ENOBUFS && refuses));
	*number += rc == 0;
}

TEST(near_and_far_ranks_send_at_once_and_everything_arrives_in_order)
{
	static const uint32_t from[] = { 0, NEAR, SECOND };
	struct chance c = { check_seed() };
	setenv("TERN_SPILL", "32K", 1);
	open_far();
	for (unsigned type = 0; type < TYPES; type++)
		REQUIRE(tern_buf_alloc(local[OWNER], type, kind[type].bytes, kind[type].count,
				       kind[type].flags) == 0);
	unsigned total = 3 * TYPES * LAST;
	while (took < total) {
		send_random(&c, from[chance_below(&c, 3)]);
		if (chance_one_in(&c, 3))
			receive_random(&c);
		if (chance_one_in(&c, 5))
			tern_poll(local[chance_below(&c, RANKS)]);
	}
	for (unsigned type = 0; type < TYPES; type++) {
		int rc;
		while ((rc = tern_buf_close(local[OWNER], type)) == -EBUSY)
			local_settle(); /* the buffer of a long message that was not sent is back */
		CHECK_IS(rc, 0);        /* no buffer has got lost */
	}
	local_close();
}
