/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Senders that cannot map their receiver's memory. Here they only believe so: shared memory is made
 * to say that it is none, for some of the ranks, so that everything but the network is as it would
 * be far away.
 */
#include <errno.h>

#include "../../tests/chance.h"
#include "../../tests/local.h"
#include "base/clock.h"
#include "typed/send.h"

enum { TYPE = 4, OTHER = 5, BYTES = 20000, COUNT = 4, OWNER = 1, NEAR = 2, SECOND = 3, RANKS = 4 };

static unsigned char data[300000];
static struct net_ops blind;

/* From now on `rank` sees the memory of no other. */
static void far_away(uint32_t rank)
{
	struct endpoint *e = local[rank]->own;
	for (unsigned i = 0; i < e->nets; i++)
		if (strcmp(e->net[i]->ops->name, "shm") == 0) {
			blind = *e->net[i]->ops;
			blind.provides &= ~(unsigned)PROVIDES_SHARED;
			e->net[i]->ops = &blind;
		}
}

/* Ranks 0 and 3 are far from rank 1, and rank 2 is near. */
static void open_far(void)
{
	setenv("TERN_NET", "shm", 1);
	local_polled();
	local_open(RANKS);
	far_away(0);
	far_away(OWNER);
	far_away(SECOND);
}

static struct type_queue *type_queue_at(unsigned type)
{
	return typed_of(local[OWNER])->queue[type];
}

static unsigned free_buffers(unsigned type)
{
	struct bufpool *k = &type_queue_at(type)->pool;
	unsigned n = 0;
	for (uint32_t i = 0; i < k->count; i++)
		n += bufpool_is(k, i, BUFPOOL_FREE, 0);
	return n;
}

static int send_now(uint32_t from, unsigned type, size_t len)
{
	return tern_bufsend(local[from], OWNER, type, data, len, TERN_NOWAIT, NULL);
}

/* What a program does that does not want to wait, for a while. */
static int send_tried(uint32_t from, unsigned type, size_t len)
{
	int rc = -EAGAIN;
	for (int i = 0; i < 200 && rc == -EAGAIN; i++) {
		rc = send_now(from, type, len);
		local_settle();
	}
	return rc;
}

/* The same, long enough for others to be asked for what they have. */
static int send_urged(uint32_t from, unsigned type, size_t len)
{
	uint64_t until = clock_ns() + UINT64_C(100000000000);
	int rc = -EAGAIN;
	while (rc == -EAGAIN && clock_ns() < until)
		rc = send_tried(from, type, len);
	return rc;
}

/* The length of the next message, or -1. */
static long long next(unsigned type)
{
	size_t len;
	void *p = tern_bufreceive(local[OWNER], type, TERN_NOWAIT, NULL, &len);
	if (!p)
		return -1;
	CHECK_IS(tern_buffree(local[OWNER], p), 0);
	return (long long)len;
}

/* Lets `from` borrow ahead: it sends a while, and stops. */
static void stream(uint32_t from, unsigned type)
{
	for (int i = 0; i < 20; i++) {
		CHECK_IS(tern_bufsend(local[from], OWNER, type, data, 1, 0, NULL), 0);
		local_settle();
		CHECK_IS(next(type), 1);
	}
	local_settle();
	CHECK(type_queue_at(type)->borrower[from].lent > 0);
}

/*
 * Lets `from` have a cell of the spill, and not use it: the only buffer of the type is taken by
 * what it sent before.
 */
static void idle_cell(uint32_t from, unsigned type)
{
	unsigned before = free_buffers(KEY_SPILL);
	CHECK_IS(send_tried(from, type, 64), 0);
	CHECK_IS(send_now(from, type, 64), -EAGAIN);
	local_settle();
	CHECK_IS(free_buffers(KEY_SPILL), before - 1);
}

/* -- What a send does -------------------------------------------------------------------------- */

TEST(a_message_to_a_far_rank_lands_in_its_buffer)
{
	static const size_t lens[] = {
		0, 1, 7, 64, 4096, TERN_PAYLOAD_MAX, TERN_PAYLOAD_MAX + 1, 9000, 19999, BYTES, BYTES
	};
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++) {
		uint32_t src = 99;
		size_t len = 99;
		chance_fill(data, lens[i], i);
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, lens[i], 0, NULL), 0);
		unsigned char *p = tern_bufreceive(local[OWNER], TYPE, 0, &src, &len);
		REQUIRE(p);
		CHECK(src == 0 && len == lens[i] && chance_filled(p, len, i));
		CHECK_IS(tern_buffree(local[OWNER], p), 0);
	}
	local_close();
}

TEST(a_far_send_says_what_a_near_one_says)
{
	open_far();
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), -ENXIO);
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 1, TERN_BUF_REFUSE) == 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, BYTES + 1, 0, NULL), -EMSGSIZE);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), -ENOBUFS);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, BYTES, 0, NULL), -ENOBUFS);
	CHECK_IS(send_tried(0, TYPE, 1), -ENOBUFS);
	CHECK_IS(next(TYPE), 1);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, BYTES, 0, NULL), 0);
	CHECK_IS(next(TYPE), BYTES);
	CHECK_IS(tern_bufclose(local[OWNER], TYPE), 0);
	CHECK_IS(send_tried(0, TYPE, 1), -ENXIO);
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, 2 * BYTES, 1, 0) == 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, BYTES + 1, 0, NULL),
		 0); /* as it is now */
	local_close_one(OWNER);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), -ESHUTDOWN);
	local_close();
}

TEST(a_refusal_that_nobody_waited_for_is_not_believed_later)
{
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 1, TERN_BUF_REFUSE) == 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), 0);
	CHECK_IS(send_now(0, TYPE, 1), -EAGAIN);
	local_settle(); /* it is refused, and the program has given up */
	CHECK_IS(next(TYPE), 1);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), 0);
	local_close();
}

TEST(nothing_is_accepted_but_what_has_a_buffer)
{
	static const size_t lens[] = { 10, 10000 };
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	for (unsigned round = 0; round < 6; round++) {
		size_t len = lens[round % 2];
		for (int i = 0; i < COUNT; i++)
			CHECK_IS(send_tried(0, TYPE, len), 0);
		CHECK_IS(send_tried(0, TYPE, len), -EAGAIN);
		CHECK_IS(next(TYPE), len);
		CHECK_IS(send_tried(0, TYPE, len), 0);
		CHECK_IS(send_tried(0, TYPE, len), -EAGAIN);
		for (int i = 0; i < COUNT; i++)
			CHECK_IS(next(TYPE), len);
		CHECK_IS(next(TYPE), -1);
		local_settle();
	}
	local_close();
}

static void free_one(tern *t, void *arg)
{
	CHECK_IS(tern_buffree(t, arg), 0);
}

TEST(a_send_that_waits_goes_on_when_a_buffer_is_given_back)
{
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	for (int i = 0; i < 4; i++) {
		size_t len = i % 2 ? 10000 : 10;
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, len, 0, NULL), 0);
		void *p = tern_bufreceive(local[OWNER], TYPE, 0, NULL, NULL);
		CHECK_IS(tern_defer(local[OWNER], free_one, p), 0);
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, len, 0, NULL), 0);
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, TERN_NOWAIT, NULL), -EAGAIN);
		local_settle();
		CHECK_IS(next(TYPE), len);
	}
	local_close();
}

TEST(a_name_is_answered_for_when_the_message_has_landed)
{
	open_far();
	tern_mid first, second;
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 5, 0, &first), 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 5, 0, &second), 0);
	tern_poll(local[0]);
	CHECK_IS(tern_bufdone(local[0], second), 0); /* its receiver has not looked */
	local_settle();
	CHECK_IS(tern_bufdone(local[0], second), 1);
	CHECK_IS(tern_bufdone(local[0], first), 1);
	CHECK_IS(tern_bufdone(local[0], second + 1), -EINVAL);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 5, 0, &first), 0);
	job_rank_ended(&local[0]->own->group->job, OWNER, SIGKILL);
	int rc = 0;
	while (rc == 0)
		rc = tern_bufdone(local[0], first);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(sentence_has(rc, "rank 1"));
}

TEST(the_numbers_in_names_wrap)
{
	enum { NAMES = 6 };
	open_far();
	tern_mid mid[NAMES];
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 2 * NAMES, 0) == 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 5, 0, &mid[0]), 0);
	local_settle();
	struct route *r = typed_of(local[0])->route[OWNER];
	r->named = r->landed = (UINT64_C(1) << 40) - NAMES / 2;
	for (unsigned i = 0; i < NAMES; i++) {
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 5, 0, &mid[i]), 0);
		tern_poll(local[0]);
		CHECK_IS(tern_bufdone(local[0], mid[i]), 0);
		local_settle();
		for (unsigned k = 0; k <= i; k++)
			CHECK_IS(tern_bufdone(local[0], mid[k]), 1);
		CHECK_IS(tern_bufdone(local[0], mid[i] + 1), -EINVAL);
	}
	local_close();
}

TEST(under_a_hold_a_far_send_takes_what_it_has_and_waits_for_nothing)
{
	open_far();
	tern_mid mid;
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	stream(0, TYPE);
	tern_hold(local[0]);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 5, 0, NULL), 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, BYTES, 0, NULL), -EDEADLK);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, BYTES, TERN_NOWAIT, &mid), -EAGAIN);
	while (send_now(0, TYPE, 5) == 0)
		;
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 5, 0, NULL), -EDEADLK);
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
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, sizeof data, COUNT, 0) == 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 20000, TERN_NOWAIT, NULL), -EAGAIN);
	local_settle();
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 20000, TERN_NOWAIT, NULL), -EAGAIN);
	local_settle(); /* there is a buffer now */
	CHECK_IS(tern_request(local[NEAR], 0, 1), 0);
	chance_fill(data, sizeof data, 5);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, sizeof data, 0, NULL), -EDEADLK);
	tern_release(local[0]);
	for (int i = 0; i < 100; i++)
		local_settle();
	unsigned char *p = tern_bufreceive(local[OWNER], TYPE, TERN_NOWAIT, NULL, NULL);
	CHECK(p && chance_filled(p, sizeof data, 5)); /* it was under way */
	CHECK(!outgoing_any(typed_of(local[0])));
	local_close();
}

/* -- What is lent and not used ----------------------------------------------------------------- */

TEST(what_a_far_rank_has_and_does_not_use_goes_to_another_that_needs_it)
{
	static const uint32_t others[] = { SECOND, NEAR, OWNER };
	for (unsigned n = 0; n < 3; n++) {
		open_far();
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
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
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
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
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
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
static int take_none(struct net *net, struct block **out)
{
	(void)net, (void)out;
	return -ENOMEM;
}

TEST(a_buffer_for_a_long_message_that_a_short_one_failed_to_use_comes_back)
{
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	for (int i = 0; i < 2; i++) { /* for the type, for a buffer */
		CHECK_IS(send_now(0, TYPE, BYTES), -EAGAIN);
		local_settle();
	}
	int (*take)(struct net *, struct block **) = blind.take;
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
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, 8, MANY, 0) == 0);
	CHECK_IS(tern_bufsend(local[NEAR], OWNER, TYPE, data, 1, 0, NULL), 0);
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
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_REFUSE) == 0);
	for (int i = 0; i < 20; i++) {
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), 0);
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
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_SPILL) == 0);
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
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
		REQUIRE(tern_bufalloc(local[OWNER], OTHER, 64, 1, TERN_BUF_SPILL) == 0);
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
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
	REQUIRE(tern_bufalloc(local[OWNER], OTHER, 4096, 1, TERN_BUF_SPILL) == 0);
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
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, 1024, 1, TERN_BUF_SPILL) == 0);
		idle_cell(0, TYPE);
		CHECK_IS(tern_defer(local[others[n]], send_small, NULL), 0);
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1000, 0, NULL), 0);
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
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, 1024, 1, TERN_BUF_SPILL) == 0);
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
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	REQUIRE(tern_bufalloc(local[OWNER], OTHER, BYTES, 1, 0) == 0);
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
	CHECK_IS(tern_bufclose(local[OWNER], TYPE), 0);
	CHECK(!typed_of(local[OWNER])->draining);
}

TEST(what_comes_from_a_rank_after_it_was_forgotten_is_dropped_without_a_word)
{
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER) == 0);
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
	char *before = tern_alloc(local[OWNER], 64);
	for (unsigned round = 0; round < 50; round++) {
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, 100 + round, 1 + round,
				      round % 2 ? TERN_BUF_ORDER : 0) == 0);
		stream(0, TYPE);
		CHECK_IS(tern_bufclose(local[OWNER], TYPE), 0);
		if (round % 3)
			local_settle();
	}
	CHECK_IS(send_tried(0, TYPE, 1), -ENXIO);
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK(!typed_of(local[OWNER])->draining); /* everything has come back */
	CHECK((char *)tern_alloc(local[OWNER], 64) - before < 2 << 20);
	local_close();
}

TEST(a_cell_of_the_spill_that_is_lent_for_a_type_comes_back_though_that_is_closed_and_opened_at_once)
{
	setenv("TERN_SPILL", "512", 1); /* one */
	open_far();
	for (int round = 0; round < 3; round++) {
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
		idle_cell(0, TYPE);
		CHECK_IS(tern_bufclose(local[OWNER], TYPE), 0);
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, 64, 1, TERN_BUF_SPILL) == 0);
		local_settle();
		CHECK_IS(free_buffers(KEY_SPILL), 1);
		CHECK_IS(send_tried(0, TYPE, 64), 0);
		CHECK_IS(send_tried(0, TYPE, 64), 0);
		CHECK_IS(tern_bufclose(local[OWNER], TYPE), 0);
	}
	local_close();
}

TEST(a_sender_that_has_something_and_could_know_of_the_closing_sends_nothing)
{
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	stream(0, TYPE);
	CHECK_IS(tern_bufclose(local[OWNER], TYPE),
		 0); /* what it says of that has come, and was not looked at */
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), -ENXIO);
	local_close();
}

static void make_longer(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_bufclose(t, TYPE), 0);
	CHECK_IS(tern_bufalloc(t, TYPE, 2 * BYTES, COUNT, 0), 0);
}

TEST(what_a_sender_knows_of_buffers_that_are_too_short_is_asked_again)
{
	open_far();
	local_on(1, make_longer);
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	stream(0, TYPE);
	CHECK_IS(tern_request(local[NEAR], OWNER, 1), 0);
	poll_inlet(local[OWNER]->own, &local[OWNER]->own->site.bell); /* the handler, and no more */
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 2 * BYTES, 0, NULL), 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 2 * BYTES + 1, 0, NULL), -EMSGSIZE);
	local_close();
}

TEST(a_type_into_which_a_far_rank_may_put_a_long_message_stays_open)
{
	open_far();
	tern_mid mid;
	int rc;
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, BYTES, 0, &mid), 0);
	CHECK_IS(tern_bufclose(local[OWNER], TYPE), -EBUSY);
	while ((rc = tern_bufdone(local[0], mid)) == 0)
		local_settle();
	CHECK_IS(rc, 1);
	CHECK_IS(next(TYPE), BYTES);
	CHECK_IS(send_now(0, TYPE, BYTES),
		 -EAGAIN); /* asks for a buffer, and thinks better of it */
	local_settle();
	CHECK_IS(tern_bufclose(local[OWNER], TYPE), -EBUSY);
	local_settle();
	CHECK_IS(tern_bufclose(local[OWNER], TYPE), 0);
	local_close();
}

TEST(a_message_that_comes_for_a_type_that_was_closed_is_dropped_and_leaves_no_hole)
{
	open_far();
	tern_mid mid = 0;
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER_ALL) == 0);
	REQUIRE(tern_bufalloc(local[OWNER], OTHER, BYTES, COUNT, TERN_BUF_ORDER_ALL) == 0);
	stream(0, TYPE);
	stream(0, OTHER);
	for (int with_long = 0; with_long < 2; with_long++) {
		if (with_long)
			CHECK_IS(tern_bufsend(local[0], OWNER, OTHER, data, BYTES, 0, &mid), 0);
		CHECK_IS(send_now(0, TYPE, 2), 0);
		CHECK_IS(tern_bufclose(local[OWNER], TYPE), 0); /* the message is under way */
		CHECK_IS(tern_bufsend(local[0], OWNER, OTHER, data, 3, 0, NULL), 0);
		for (int i = 0; i < 50; i++)
			local_settle();
		if (with_long)
			CHECK_IS(next(OTHER), BYTES);
		CHECK_IS(next(OTHER), 3);
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, TERN_BUF_ORDER_ALL) == 0);
		CHECK(!typed_of(local[OWNER])->draining);
		stream(0, TYPE);
		stream(0, OTHER);
	}
	CHECK_IS(tern_bufdone(local[0], mid), 1);
	local_close();
}

TEST(a_sender_that_waits_for_a_buffer_of_a_type_that_is_closed_is_told)
{
	open_far();
	for (int i = 0; i < 2; i++) {
		size_t len = i ? BYTES : 1;
		REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 1, 0, NULL), 0);
		CHECK_IS(send_tried(0, TYPE, len), -EAGAIN);
		CHECK_IS(tern_bufclose(local[OWNER], TYPE), 0);
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, len, 0, NULL), -ENXIO);
	}
	local_close();
}

/* -- What no good peer sends ------------------------------------------------------------------- */

TEST(a_lease_message_says_what_was_written_into_it)
{
	struct chance c = { check_seed() };
	local_open(1);
	for (int i = 0; i < 100; i++) {
		struct lease_msg s = { .type = chance_next(&c) & 0xff,
				       .flags = chance_next(&c) & 0xff,
				       .generation = (uint32_t)chance_next(&c),
				       .count = chance_below(&c, LEASE_MSG_LEASES + 1) };
		for (unsigned n = 0; n < s.count; n++)
			s.lease[n] = (uint32_t)chance_next(&c);
		tern_msg m = { .head = LEASE_MSG_WORDS };
		struct lease_msg r = { 0 };
		lease_msg_write(&s, m.word);
		CHECK(lease_msg_read(&m, &r) && r.type == s.type && r.flags == s.flags &&
		      r.generation == s.generation && r.count == s.count &&
		      memcmp(r.lease, s.lease, sizeof s.lease) == 0);
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

TEST(a_message_into_what_was_not_lent_is_refused)
{
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	REQUIRE(tern_bufalloc(local[OWNER], OTHER, BYTES, COUNT, TERN_BUF_SPILL) == 0);
	stream(0, TYPE);
	const struct target *to = &typed_of(local[0])->route[OWNER]->part[0][TYPE];
	const struct notice good = { .type = TYPE,
				     .key = TYPE,
				     .generation = to->pool.generation,
				     .len = 10,
				     .index = lease_index(to->cache->lease[0]) };
	struct notice n = good;
	brings(&n, 9, "not as long as it says");
	brings(&n, 0, "not as long as it says");
	n.index = COUNT;
	brings(&n, 10, "not lent");
	n.index = UINT32_MAX;
	brings(&n, 10, "not lent");
	n = good;
	n.generation++;
	brings(&n, 10, "not lent");
	n = good;
	n.key = OTHER;
	brings(&n, 10, "not lent");
	n.key = KEY_SPILL;
	brings(&n, 10, "not lent");
	n.key = 0xfff;
	brings(&n, 10, "not lent");
	n = good;
	n.order = TERN_BUF_ORDER;
	brings(&n, 10, "order");
	uint64_t words[BROUGHT_WORDS] = { 0 };
	CHECK_IS(layer_request(local[0]->own, OWNER, TYPED_BROUGHT, NULL, 0, 1, words), 0);
	refused(OWNER, "too little");
	CHECK_IS(layer_request(local[SECOND]->own, OWNER, TYPED_BROUGHT, NULL, 0, BROUGHT_WORDS,
			       words),
		 0);
	refused(OWNER, "not lent");
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 10, 0, NULL), 0); /* all is as it was */
	local_settle();
	CHECK_IS(next(TYPE), 10);
	local_close();
}

static void msgs(uint32_t from, uint32_t to, unsigned id, const struct lease_msg *msg)
{
	uint64_t words[LEASE_MSG_WORDS];
	lease_msg_write(msg, words);
	CHECK_IS(layer_request(local[from]->own, to, id, NULL, 0, LEASE_MSG_WORDS, words), 0);
}

TEST(lease_messages_that_no_good_peer_writes_change_nothing)
{
	open_far();
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, COUNT, 0) == 0);
	stream(0, TYPE);
	unsigned free = free_buffers(TYPE);
	const struct lease_cache *h = typed_of(local[0])->route[OWNER]->part[0][TYPE].cache;
	struct lease_msg s = { .type = TYPE,
			       .generation = type_queue_at(TYPE)->pool.generation,
			       .count = 1,
			       .lease = { h->lease[0] } };
	msgs(SECOND, OWNER, TYPED_RETURN, &s); /* another's */
	refused(OWNER, "did not have");
	s.lease[0] = lease_of(LEASE_LONG, lease_index(h->lease[0]));
	msgs(0, OWNER, TYPED_RETURN, &s);
	refused(OWNER, "did not have");
	for (unsigned place = 0; place < 4; place++) {
		s.lease[0] =
			lease_of((enum lease_place)place, (UINT32_C(1) << LEASE_INDEX_BITS) - 1);
		msgs(0, OWNER, TYPED_RETURN, &s);
		refused(OWNER, "did not have");
	}
	uint64_t claims[] = { TERN_TYPES_MAX, 1, 1 };
	CHECK_IS(layer_request(local[0]->own, OWNER, TYPED_CLAIM, NULL, 0, 3, claims), 0);
	refused(OWNER, "cannot be lent");
	s.count = LEASE_MSG_LEASES + 1;
	msgs(OWNER, 0, TYPED_LENT, &s);
	refused(0, "lends nothing");
	s = (struct lease_msg){ .type = 200, .generation = 77, .count = 3 };
	msgs(OWNER, SECOND, TYPED_LENT, &s); /* who knows nothing of that */
	msgs(OWNER, SECOND, TYPED_RECALL, &s);
	local_settle();
	CHECK_IS(free_buffers(TYPE), free);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, 10, 0, NULL), 0);
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
	tern_mid mid;
	int rc;
	REQUIRE(tern_bufalloc(local[OWNER], TYPE, BYTES, 1, 0) == 0);
	CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, BYTES, 0, &mid), 0);
	data[BYTES - 1] ^= 1;
	while ((rc = tern_bufdone(local[0], mid)) == 0)
		local_settle();
	CHECK_IS(rc, -EBADMSG);
	local_settle();
	CHECK_IS(next(TYPE), -1);
	for (int i = 0; i < 2; i++) {
		size_t len = i ? 10 : BYTES;
		CHECK_IS(tern_bufsend(local[0], OWNER, TYPE, data, len, 0, NULL),
			 0); /* its buffer is free again */
		char *p = tern_bufreceive(local[OWNER], TYPE, 0, NULL, NULL);
		REQUIRE(p);
		CHECK_IS(tern_buffree(local[OWNER], p), 0);
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
	tern_mid mid;
	int rc = tern_bufsend(local[from], OWNER, type, data, len, TERN_NOWAIT, &mid);
	CHECK(rc == 0 || rc == -EAGAIN || (rc == -ENOBUFS && kind[type].flags & TERN_BUF_REFUSE));
	if (rc)
		return 0;
	while (len > TERN_PAYLOAD_MAX && (rc = tern_bufdone(local[from], mid)) == 0)
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
	void *p = tern_bufreceive(local[OWNER], type, TERN_NOWAIT, &src, NULL);
	if (!p)
		return 0;
	memcpy(&h, p, sizeof h);
	CHECK_IS(h.number, got[src][type].number++);
	if (kind[type].flags & TERN_BUF_ORDER_ALL)
		CHECK_IS(h.all, got_all[src]++);
	CHECK_IS(tern_buffree(local[OWNER], p), 0);
	return 1;
}

TEST(near_and_far_ranks_send_at_once_and_everything_arrives_in_order)
{
	static const uint32_t from[] = { 0, NEAR, SECOND };
	struct chance c = { check_seed() };
	setenv("TERN_SPILL", "32K", 1);
	open_far();
	for (unsigned type = 0; type < TYPES; type++)
		REQUIRE(tern_bufalloc(local[OWNER], type, kind[type].bytes, kind[type].count,
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
		while ((rc = tern_bufclose(local[OWNER], type)) == -EBUSY)
			local_settle(); /* a buffer for a long message that was not sent comes back
					 */
		CHECK_IS(rc, 0);        /* no buffer has got lost */
	}
	local_close();
}
