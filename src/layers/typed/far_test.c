/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends to a rank whose memory the sender cannot map: what they promise, messages that no good peer
 * sends, and many senders at once. credit_test.c tests the credits that they have.
 */
#include "../../../tests/handed.h"
#include "../../../tests/typed_far.h"

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
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, lens[i]), 0);
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

TEST(a_refusal_that_nobody_waited_for_is_not_believed_later)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, TERN_BUF_REFUSE) == 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
	CHECK_IS(send_now(0, TYPE, 1), -EAGAIN);
	local_settle(); /* it is refused, and the program has given up */
	CHECK_IS(next(TYPE), 1);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 1), 0);
	local_close();
}

TEST(nothing_is_accepted_but_what_has_a_buffer)
{
	static const size_t lens[] = { 10, 10000 };
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	for (unsigned round = 0; round < 6; round++) {
		size_t len = lens[round % 2];
		int accepted = 0;
		while (send_tried(0, TYPE, len) == 0)
			accepted++;
		CHECK_IS(accepted,
			 COUNT - (len > TERN_PAYLOAD_MAX)); /* its share is for short ones */
		CHECK_IS(next(TYPE), len);
		CHECK_IS(send_urged(0, TYPE, len), 0);
		CHECK_IS(send_tried(0, TYPE, len), -EAGAIN);
		for (int i = 0; i < accepted; i++)
			CHECK_IS(next(TYPE), len);
		CHECK_IS(next(TYPE), -1);
		far_hasty(0); /* what it asked for last goes back */
		for (int i = 0; i < 5; i++)
			local_settle();
		typed_of(local[0])->idle_ns = UINT64_MAX;
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
	typed_of(local[0])->idle_ns = TYPED_IDLE_NS; /* the last try asks, and does not use it */
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	for (int i = 0; i < 4; i++) {
		size_t len = i % 2 ? 10000 : 10;
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, len), 0);
		void *p = handed_buf(local[OWNER], TYPE, 0, NULL, NULL);
		CHECK_IS(tern_defer(local[OWNER], free_one, p), 0);
		CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, len), 0);
		CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 1, TERN_BUF_NOWAIT, NULL),
			 -EAGAIN);
		local_settle();
		CHECK_IS(next(TYPE), len);
	}
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

TEST(at_most_so_many_short_messages_to_a_far_rank_are_told_of)
{
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	for (unsigned i = 0; i < 3; i++) { /* handles are told in order, and their places reused */
		CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 5, 0, &op), 0);
		struct landings *l = typed_of(local[0])->route[OWNER]->landings;
		local_settle();
		CHECK_IS(tern_op_test(local[0], &op), 1);
		CHECK_IS(next(TYPE), 5);
		CHECK_IS(l->sent, l->landed);
		l->sent = l->landed = UINT32_MAX; /* the next wraps */
	}
	struct landings *l = typed_of(local[0])->route[OWNER]->landings;
	l->sent = l->landed + TERN_BUF_SENDS_MAX; /* as if so many were under way */
	int rc = tern_buf_send_start(local[0], OWNER, TYPE, data, 5, TERN_BUF_NOWAIT, &op);
	CHECK_IS(rc, -EAGAIN);
	CHECK(sentence_has(rc, "TERN_BUF_SENDS_MAX"));
	CHECK_IS(op.pending, 0);
	l->landed = l->sent;
	local_close();
}

TEST(under_a_hold_a_far_send_takes_what_it_has_and_waits_for_nothing)
{
	open_far();
	tern_op op = TERN_OP;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	stream(0, TYPE);
	tern_hold(local[0]);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 5), 0);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, BYTES), -EDEADLK);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES, TERN_BUF_NOWAIT, &op),
		 -EAGAIN);
	while (send_now(0, TYPE, 5) == 0)
		;
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 5), -EDEADLK);
	tern_release(local[0]);
	local_close();
}

static void hold_here(tern *t, const tern_msg *m)
{
	(void)m;
	tern_hold(t);
}

TEST(a_hold_that_is_left_in_the_middle_of_a_far_send_ends_it)
{
	open_far();
	local_on(1, hold_here);
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, sizeof data, COUNT, 0) == 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 20000, TERN_BUF_NOWAIT, NULL),
		 -EAGAIN);
	local_settle();
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, 20000, TERN_BUF_NOWAIT, NULL),
		 -EAGAIN);
	local_settle(); /* there is a buffer now */
	CHECK_IS(tern_request(local[NEAR], 0, 1), 0);
	chance_fill(data, sizeof data, 5);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, sizeof data), -EDEADLK);
	tern_release(local[0]);
	for (int i = 0; i < 100; i++)
		local_settle();
	unsigned char *p = handed_buf(local[OWNER], TYPE, TERN_BUF_NOWAIT, NULL, NULL);
	CHECK(p && chance_filled(p, sizeof data, 5)); /* it was under way */
	CHECK(!typed_of(local[0])->moving);
	local_close();
}

/* -- What no good peer sends ------------------------------------------------------------------- */

TEST(a_credit_message_says_what_was_written_into_it)
{
	struct chance c = { check_seed() };
	local_open(1);
	for (int i = 0; i < 100; i++) {
		struct credit_msg s = { .type = chance_next(&c) & 0xff,
					.flags = chance_next(&c) & 0xff,
					.generation = (uint32_t)chance_next(&c),
					.count = chance_next(&c) & 0xffff,
					.key = chance_next(&c) & 0xffff,
					.index = (uint32_t)chance_next(&c),
					.value = chance_next(&c),
					.bytes = chance_next(&c) };
		tern_msg m = { .head = CREDIT_WORDS };
		struct credit_msg r = { 0 };
		credit_msg_write(&s, m.word);
		CHECK(credit_msg_read(&m, &r) && r.type == s.type && r.flags == s.flags &&
		      r.generation == s.generation && r.count == s.count && r.key == s.key &&
		      r.index == s.index && r.value == s.value && r.bytes == s.bytes);
	}
	local_close();
}

static void refused(uint32_t at, const char *why)
{
	int rc = 0;
	for (int i = 0; i < 3 && rc >= 0; i++)
		rc = tern_poll(local[at]);
	CHECK_IS(rc, -EBADMSG);
	CHECK(sentence_has(rc, why));
}

static void brings(const struct notice *n, size_t len, const char *why)
{
	uint64_t words[BROUGHT_WORDS] = { 0 };
	notice_write(n, words);
	CHECK_IS(layer_request(local[0]->own, OWNER, TYPED_BROUGHT, len ? data : NULL, len,
			       BROUGHT_WORDS, words),
		 0);
	refused(OWNER, why);
}

TEST(a_message_without_a_credit_is_refused)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, 100, COUNT, 0) == 0);
	stream(0, TYPE);
	const struct notice good = { .type = TYPE,
				     .key = TYPE,
				     .generation = type_queue_at(TYPE)->pool.generation,
				     .len = 10 };
	struct notice n = good;
	brings(&n, 9, "not as long as it says");
	brings(&n, 0, "not as long as it says");
	n.len = 101;
	brings(&n, 101, "longer");
	n = good;
	n.order = TERN_BUF_ORDER;
	brings(&n, 10, "order");
	uint64_t words[BROUGHT_WORDS] = { 0 };
	CHECK_IS(layer_request(local[0]->own, OWNER, TYPED_BROUGHT, NULL, 0, 1, words), 0);
	refused(OWNER, "too little");
	notice_write(&(struct notice){ .type = TYPE, .generation = good.generation }, words);
	CHECK_IS(layer_request(local[SECOND]->own, OWNER, TYPED_BROUGHT, NULL, 0, BROUGHT_WORDS,
			       words),
		 0);
	refused(OWNER, "no credit");
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 10), 0); /* all is as it was */
	local_settle();
	CHECK_IS(next(TYPE), 10);
	local_close();
}

static void msgs(uint32_t from, uint32_t to, unsigned id, const struct credit_msg *msg)
{
	uint64_t words[CREDIT_WORDS];
	credit_msg_write(msg, words);
	CHECK_IS(layer_request(local[from]->own, to, id, NULL, 0, CREDIT_WORDS, words), 0);
}

TEST(credit_messages_that_no_good_peer_writes_change_nothing)
{
	open_far();
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	stream(0, TYPE);
	unsigned free = free_buffers(TYPE);
	struct credit_msg s = { .type = TYPE,
				.generation = type_queue_at(TYPE)->pool.generation,
				.key = TYPE,
				.count = 1 };
	msgs(SECOND, OWNER, TYPED_RETURN, &s);
	refused(OWNER, "did not have");
	s.flags = CREDIT_LONG;
	for (uint32_t i = 0; i <= COUNT; i++) {
		s.index = i;
		msgs(0, OWNER, TYPED_RETURN, &s);
		refused(OWNER, "did not have");
	}
	s.generation++;
	msgs(0, OWNER, TYPED_RETURN, &s); /* of another use of the type */
	uint64_t word = 0;
	CHECK_IS(layer_request(local[0]->own, OWNER, TYPED_ASK, NULL, 0, 1, &word), 0);
	refused(OWNER, "asks for nothing");
	CHECK_IS(layer_request(local[OWNER]->own, 0, TYPED_CREDIT, NULL, 0, 1, &word), 0);
	refused(0, "gives nothing");
	s = (struct credit_msg){ .type = 200, .generation = 77, .count = 3 };
	msgs(OWNER, SECOND, TYPED_CREDIT, &s); /* who knows nothing of that */
	local_settle();
	CHECK_IS(free_buffers(TYPE), free);
	CHECK_IS(tern_buf_send(local[0], OWNER, TYPE, data, 10), 0);
	local_close();
}

/* -- TERN_CHECK -------------------------------------------------------------------------------- */

/* Sends, and says whether the owner was told that a free buffer had been written to. */
static bool complained(size_t len)
{
	bool told = false;
	int rc = -EAGAIN;
	for (int i = 0; i < 200 && (rc == -EAGAIN || !told); i++) {
		rc = rc == -EAGAIN ? send_now(0, TYPE, len) : rc;
		told |= tern_poll(local[OWNER]) == -EBADMSG;
		CHECK(tern_poll(local[0]) >= 0);
	}
	return told && CHECK_IS(rc, 0);
}

TEST(with_the_check_what_is_changed_under_way_or_after_it_was_given_back_is_noticed)
{
	setenv("TERN_CHECK", "1", 1);
	open_far();
	tern_op op = TERN_OP;
	int rc;
	REQUIRE(tern_buf_alloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	CHECK_IS(tern_buf_send_start(local[0], OWNER, TYPE, data, BYTES, 0, &op), 0);
	data[BYTES - 1] ^= 1;
	while ((rc = tern_op_test(local[0], &op)) == 0)
		local_settle();
	CHECK_IS(rc, -EBADMSG);
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
		CHECK(complained(len));
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
	{ BYTES, 2, TERN_BUF_WAIT | TERN_BUF_ORDER_ALL },
	{ 9000, 2, TERN_BUF_SPILL | TERN_BUF_ORDER_ALL },
	{ 400, 1, TERN_BUF_SPILL | TERN_BUF_ORDER },
	{ 12000, 2, TERN_BUF_REFUSE | TERN_BUF_ORDER },
};

struct head {
	uint32_t number, all;
};

static struct head sent[RANKS][TYPES], got[RANKS][TYPES];
static uint32_t sent_all[RANKS], got_all[RANKS];

static unsigned send_random(struct chance *c, uint32_t from)
{
	unsigned type = chance_below(c, TYPES);
	struct head *h = &sent[from][type];
	size_t most = chance_one_in(c, 4) ? kind[type].bytes : 300;
	size_t len = sizeof *h + chance_below(c, (uint32_t)(most - sizeof *h));
	if (h->number == LAST)
		return 0;
	h->all = sent_all[from];
	memcpy(data, h, sizeof *h);
	static tern_op op[RANKS];
	int rc = tern_buf_send_start(local[from], OWNER, type, data, len, TERN_BUF_NOWAIT,
				     &op[from]);
	CHECK(rc == 0 || rc == -EAGAIN || (rc == -ENOBUFS && kind[type].flags & TERN_BUF_REFUSE));
	if (rc)
		return 0;
	while (len > TERN_PAYLOAD_MAX && op[from].pending && tern_poll(local[from]) >= 0)
		tern_poll(local[OWNER]);
	h->number++;
	sent_all[from] += (kind[type].flags & TERN_BUF_ORDER_ALL) != 0;
	return 1;
}

static unsigned receive_random(struct chance *c)
{
	unsigned type = chance_below(c, TYPES);
	uint32_t src;
	struct head h;
	void *p = handed_buf(local[OWNER], type, TERN_BUF_NOWAIT, &src, NULL);
	if (!p)
		return 0;
	memcpy(&h, p, sizeof h);
	CHECK_IS(h.number, got[src][type].number++);
	if (kind[type].flags & TERN_BUF_ORDER_ALL)
		CHECK_IS(h.all, got_all[src]++);
	CHECK_IS(tern_buf_free(local[OWNER], p), 0);
	return 1;
}

TEST(near_and_far_ranks_send_at_once_and_everything_arrives_in_order)
{
	static const uint32_t from[] = { 0, NEAR, SECOND };
	struct chance c = { check_seed() };
	setenv("TERN_SPILL", "32K", 1);
	open_far();
	for (uint32_t r = 0; r < RANKS; r++)
		typed_of(local[r])->idle_ns = TYPED_IDLE_NS;
	for (unsigned type = 0; type < TYPES; type++)
		REQUIRE(tern_buf_alloc(local[OWNER], type, kind[type].bytes, kind[type].count,
				       kind[type].flags) == 0);
	unsigned took = 0, total = 3 * TYPES * LAST;
	while (took < total) {
		send_random(&c, from[chance_below(&c, 3)]);
		if (chance_one_in(&c, 3))
			took += receive_random(&c);
		if (chance_one_in(&c, 5))
			tern_poll(local[chance_below(&c, RANKS)]);
	}
	for (unsigned type = 0; type < TYPES; type++) {
		int rc;
		while ((rc = tern_buf_close(local[OWNER], type)) == -EBUSY)
			local_settle(); /* a buffer for a long message that was not sent comes back
					 */
		CHECK_IS(rc, 0);        /* no buffer has got lost */
	}
	local_close();
}
