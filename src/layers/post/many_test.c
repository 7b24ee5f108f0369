/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 240 */
/*
 * Full buffers in the common case, items of a rank for itself, how much is kept back, and handlers
 * that take many items in a call.
 */
#include <errno.h>

#include "post/post.h"

#include "lib/local.h"

enum { TAKE, OTHER, TELL, MANY_TAKE, PASS, PLAIN };
enum { SIZE = 4, MANY = 5000 };

static _Atomic unsigned came, calls, wrong;
static _Atomic int code;
static uint64_t next_of[LOCAL_MOST][LOCAL_MOST]; /* [receiver][sender] */

static void note(tern *t, uint32_t src, uint64_t number)
{
	if (number != next_of[tern_rank(t)][src]++)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&came, 1);
}

static void take(tern *t, const tern_msg *m)
{
	note(t, tern_msg_src(m), tern_msg_word(m, 0));
}

/* Items of two words: a number that counts up, by sender and receiver, and its complement. */
static void take_many(tern *t, const tern_msg *m, const uint64_t *words, size_t count)
{
	unsigned n = tern_msg_count(m);
	if (tern_msg_word(m, 0) != words[0] || tern_msg_handler_arg(t, m) != &calls)
		atomic_fetch_add(&wrong, 1);
	for (size_t i = 0; i < count; i++, words += n) {
		note(t, tern_msg_src(m), words[0]);
		if (n == 2 && words[1] != ~words[0])
			atomic_fetch_add(&wrong, 1);
	}
	atomic_fetch_add(&calls, 1);
}

static void many_open(uint32_t n)
{
	local_open(n);
	local_on(TAKE, take);
	local_on(OTHER, take);
	for (uint32_t r = 0; r < n; r++)
		CHECK_IS(tern_post_on(local[r], MANY_TAKE, take_many, &calls), 0);
}

static void flush_all(void)
{
	for (uint32_t r = 0; r < local_size; r++)
		CHECK_IS(tern_post_flush(local[r]), 0);
	for (int quiet = 0; quiet < 3; quiet++)
		quiet = local_settle() ? 0 : quiet;
}

/* -- Items for oneself ------------------------------------------------------------------------- */

/* Posts to itself behind its own items: with another kind, and the same. */
static void take_and_pass(tern *t, const tern_msg *m)
{
	uint64_t i = tern_msg_word(m, 0);
	take(t, m);
	if (i % MANY == 0) /* like any handler */
		CHECK_IS(tern_request(t, 0, TAKE, i), -EPERM);
	if (i < MANY)
		return;
	CHECK_IS(tern_post(t, tern_rank(t), OTHER, next_of[0][1]++), 0);
}

static void count_other(tern *t, const tern_msg *m)
{
	(void)t;
	if (tern_msg_word(m, 0) != next_of[1][0]++)
		atomic_fetch_add(&wrong, 1);
}

TEST(a_ranks_own_items_are_handled_in_order_though_their_handlers_post_to_it)
{
	many_open(1);
	local_on(TAKE, take_and_pass);
	local_on(OTHER, count_other);
	for (uint64_t i = 0; i < 4 * MANY; i++)
		REQUIRE(tern_post(local[0], 0, TAKE, i) == 0);
	flush_all();
	CHECK_IS(came, 4 * MANY);
	CHECK_IS(next_of[1][0], 3 * MANY);
	CHECK_IS(wrong, 0);
	local_close();
}

static void tell(tern *t, const tern_msg *m)
{
	(void)t;
	if (tern_msg_word(m, 0) != atomic_load(&came))
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&calls, 1);
}

/* A buffer of 255 items is full at the next one. */
TEST(a_request_to_oneself_is_handled_before_items_that_are_posted_later)
{
	local_polled();
	many_open(1);
	local_on(TELL, tell);
	uint64_t sent = 0;
	for (uint64_t i = 0; i < MANY; i++) {
		/* Where the items before have been handled, all of them are. */
		if (i % (GATHER_WORDS - 1) == 0 && atomic_load(&came) == i) {
			CHECK_IS(tern_request(local[0], 0, TELL, i, 0), 0);
			sent++;
		}
		REQUIRE(tern_post(local[0], 0, TAKE, i) == 0);
	}
	flush_all();
	CHECK(came == MANY && calls == sent && sent > 0);
	CHECK_IS(wrong, 0);
	local_close();
}

TEST(under_a_hold_ones_own_items_wait)
{
	local_polled();
	many_open(1);
	for (uint64_t i = 0; i < 10; i++) /* the ring to oneself is there */
		REQUIRE(tern_post(local[0], 0, TAKE, i) == 0);
	flush_all();
	CHECK_IS(came, 10);
	tern_hold(local[0]);
	int rc = 0;
	uint64_t i = 10;
	while (!(rc = tern_post(local[0], 0, TAKE, i)) && i < MANY * 10)
		i++;
	CHECK_IS(rc, -EAGAIN);
	CHECK_IS(came, 10);
	tern_release(local[0]);
	flush_all();
	CHECK_IS(came, i);
	CHECK_IS(tern_post(local[0], 0, TAKE, i), 0); /* leaves by polls alone, as ever */
	for (int polls = 0; polls < 3; polls++)
		CHECK(tern_poll(local[0]) >= 0);
	CHECK_IS(came, i + 1);
	CHECK_IS(wrong, 0);
	local_close();
}

/* -- How much is kept back --------------------------------------------------------------------- */

static uint64_t open_items(const struct post *p)
{
	uint64_t items = 0;
	for (const struct gather *b = p->oldest; b; b = b->next)
		items += (uint64_t)(tern_post_lane_(&p->e->t->lane[b->rank])->next - b->run) - 1;
	return items;
}

TEST(a_rank_keeps_back_no_more_than_its_limit)
{
	static const uint32_t limits[] = { 8, 30, 64, 1024, 100000, 16 };
	local_polled();
	many_open(SIZE);
	const struct post *p = post_of(local[0]);
	uint64_t number[SIZE] = { 0 }, dice = 1, most, all = 0;
	for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
		CHECK_IS(tern_post_limit(local[0], limits[k]), 0);
		most = 0;
		for (unsigned i = 0; i < 20000; i++, all++) {
			dice = dice * 6364136223846793005u + 1442695040888963407u;
			uint32_t to = (uint32_t)(dice >> 33) % SIZE;
			REQUIRE(tern_post(local[0], to, TAKE, number[to]++) == 0);
			most = open_items(p) > most ? open_items(p) : most;
			if (i % 50 == 0)
				for (uint32_t r = 1; r < SIZE; r++)
					CHECK(tern_poll(local[r]) >= 0);
		}
		uint64_t could = limits[k] < 1000 ? limits[k] : 1000;
		CHECK(most <= limits[k] && most >= could / 2);
	}
	flush_all();
	CHECK(came == all && wrong == 0);
	local_close();
}

static void limit_here(tern *t, const tern_msg *m)
{
	(void)m;
	atomic_store(&code, tern_post_limit(t, 100));
}

static void *post_elsewhere(void *arg)
{
	atomic_store(&code, tern_post(arg, 0, TAKE, 0));
	return NULL;
}

TEST(where_calls_are_checked_another_thread_may_not_post)
{
	pthread_t thread;
	setenv("TERN_CHECK", "1", 1);
	local_polled();
	many_open(1);
	CHECK_IS(tern_post(local[0], 0, TAKE, 0), 0);
	REQUIRE(pthread_create(&thread, NULL, post_elsewhere, local[0]) == 0);
	pthread_join(thread, NULL);
	CHECK_IS(code, -EPERM);
	flush_all();
	CHECK_IS(came, 1);
	local_close();
}

/* Its ring is full. */
TEST(a_source_that_could_not_be_told_to_wait_is_told_later)
{
	local_polled();
	many_open(2);
	struct post *p = post_of(local[0]);
	struct outbox *o = &p->out[1];
	o->source = true;
	p->queued = QUEUED_LONG;
	tern_hold(local[0]);
	while (tern_request(local[0], 1, TAKE, next_of[0][0]) == 0)
		next_of[0][0]++;
	CHECK(pace_tell(p) == 0 && p->paces && !o->paced);
	while (tern_poll(local[1]) > 0)
		;
	CHECK(pace_tell(p) == 1 && !p->paces && o->paced);
	CHECK_IS(tern_poll(local[1]), 1);
	CHECK(post_of(local[1])->out[0].overloaded);
	p->queued = 0;
	CHECK_IS(pace_tell(p), 1);
	tern_release(local[0]);
	local_close();
}

TEST(a_wrong_limit_is_refused_with_a_sentence)
{
	tern *worker;
	many_open(2);
	local_on(TELL, limit_here);
	CHECK_IS(tern_post_limit(local[0], 7), -EINVAL);
	CHECK(sentence_has(-EINVAL, "given 7 words"));
	CHECK_IS(tern_post(local[0], 1, TELL), 0);
	flush_all();
	CHECK_IS(code, -EPERM);
	REQUIRE(tern_worker_open(local[0], &worker) == 0);
	if (worker != local[0])
		CHECK_IS(tern_post_limit(worker, 100), -ENOTSUP);
	CHECK_IS(tern_close(worker), 0);
	CHECK_IS(tern_post_limit(local[0], 8), 0);
	CHECK_IS(tern_post_limit(local[0], 0), 0);
	CHECK_IS(post_of(local[0])->room, GATHER_WORDS);
	local_close();
}

/* -- Many in a call ---------------------------------------------------------------------------- */

TEST(many_items_come_in_one_call_and_in_order)
{
	many_open(SIZE);
	for (uint64_t i = 0; i < MANY; i++)
		for (uint32_t a = 0; a < SIZE; a++)
			for (uint32_t b = 0; b < SIZE; b++)
				REQUIRE(tern_post(local[a], b, MANY_TAKE, i, ~i) == 0);
	flush_all();
	CHECK_IS(came, MANY * SIZE * SIZE);
	CHECK_IS(wrong, 0);
	CHECK(calls <= came / 8);
	local_close();
}

/* Kinds that are handled in either way alternate, of 1 and 2 words. */
TEST(items_of_both_kinds_of_handlers_keep_their_order)
{
	many_open(2);
	for (uint64_t i = 0; i < MANY; i++) {
		int rc = i % 7 < 3   ? tern_post(local[0], 1, TAKE, i)
			 : i % 7 < 5 ? tern_post(local[0], 1, MANY_TAKE, i, ~i)
				     : tern_post(local[0], 1, MANY_TAKE, i);
		REQUIRE(rc == 0);
	}
	flush_all();
	CHECK(came == MANY && wrong == 0);
	local_close();
}

TEST(a_request_to_a_handler_of_many_is_one_item)
{
	many_open(2);
	CHECK_IS(tern_request(local[0], 1, MANY_TAKE, 0, ~UINT64_C(0)), 0);
	CHECK_IS(tern_request(local[0], 1, MANY_TAKE, 1), 0);
	flush_all();
	CHECK(came == 2 && calls == 2 && wrong == 0);
	CHECK_IS(tern_on(local[1], MANY_TAKE, take), 0); /* takes its place */
	CHECK_IS(tern_post(local[0], 1, MANY_TAKE, 2, ~UINT64_C(2)), 0);
	flush_all();
	CHECK(came == 3 && calls == 2 && wrong == 0);
	local_close();
}

/* Answers by posting; a reply is refused. */
static void pass_many(tern *t, const tern_msg *m, const uint64_t *words, size_t count)
{
	const tern_msg *kept;
	atomic_store(&code, tern_reply(t, m, TAKE, 1));
	CHECK_IS(tern_msg_keep(t, m, &kept), 0);
	CHECK(tern_msg_word(kept, 0) == words[0] && tern_msg_src(kept) == tern_msg_src(m));
	CHECK_IS(tern_msg_drop(t, kept), 0);
	for (size_t i = 0; i < count; i++)
		CHECK_IS(tern_post(t, tern_msg_src(m), TAKE, words[i]), 0);
}

TEST(a_handler_of_many_answers_by_posting)
{
	many_open(2);
	for (uint32_t r = 0; r < 2; r++)
		CHECK_IS(tern_post_on(local[r], PASS, pass_many, NULL), 0);
	for (uint64_t i = 0; i < MANY; i++)
		REQUIRE(tern_post(local[0], 1, PASS, i) == 0);
	flush_all();
	CHECK(came == MANY && wrong == 0);
	CHECK_IS(code, -EALREADY);
	local_close();
}

TEST(a_wrong_handler_of_many_is_refused_with_a_sentence)
{
	many_open(2);
	CHECK_IS(tern_post_on(local[0], MANY_TAKE, NULL, NULL), -EINVAL);
	CHECK(sentence_has(-EINVAL, "no function"));
	CHECK_IS(tern_post_on(local[0], TERN_HANDLER_MAX, pass_many, NULL), -ERANGE);
	CHECK_IS(post_of(local[0])->dropped, 0); /* behind the last place */
	CHECK_IS(tern_post_on(local[0], TERN_HANDLER_MAX + MANY_TAKE, pass_many, NULL), -ERANGE);
	CHECK(post_of(local[0])->many[MANY_TAKE] == take_many);
	local_close();
}

/* -- Many ranks -------------------------------------------------------------------------------- */

enum { CROWD = 512, FRIENDS = 16, EACH = 10 };

static unsigned char next_out[CROWD][CROWD], next_in[CROWD][CROWD];

/* Numbered by sender and receiver. */
static void count_item(tern *t, const tern_msg *m)
{
	unsigned char *next = &next_in[tern_rank(t)][tern_msg_src(m)];
	if (tern_msg_word(m, 0) != (*next)++)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&came, 1);
}

TEST(five_hundred_and_twelve_ranks_post_to_each_other)
{
	static tern *all[CROWD];
	check_skip_crowd(CROWD);
	local_polled();
	setenv("TERN_HEAP", "4M", 1); /* sanitizers have no addresses for 512 of 1 GiB */
	REQUIRE(tern_open_local(CROWD, all) == 0);
	for (uint32_t r = 0; r < CROWD; r++)
		CHECK_IS(tern_on(all[r], TAKE, count_item), 0);
	for (unsigned i = 0; i < EACH; i++)
		for (uint32_t r = 0; r < CROWD; r++)
			for (uint32_t k = 0; k < FRIENDS; k++) {
				uint32_t to = (r + k * k * 31) % CROWD;
				REQUIRE(tern_post(all[r], to, TAKE, next_out[r][to]++) == 0);
			}
	for (uint32_t r = 0; r < CROWD; r++)
		CHECK_IS(tern_post_flush(all[r]), 0);
	for (uint32_t r = 0; r < CROWD; r++)
		CHECK(tern_poll(all[r]) >= 0);
	CHECK_IS(came, CROWD * FRIENDS * EACH);
	CHECK_IS(wrong, 0);
	for (uint32_t r = 0; r < CROWD; r++)
		CHECK_IS(tern_close(all[r]), 0);
	unsetenv("TERN_HEAP");
}
