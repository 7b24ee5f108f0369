/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 240 */
/* Gathered items among endpoints of one process: words, order, rules, memory, when they leave. */
#include <errno.h>
#include <tern/async.h>
#include <tern/coll.h>
#include <tern/mem.h>

#include "post/post.h"

#include "lib/local.h"

enum { TAKE, ASK, ANSWER, PASS, ODD, TELL };
enum { SIZE = 4, MANY = 5000 };

static _Atomic unsigned came, answered, wrong;
static _Atomic int code;                         /* of what a handler has tried */
static uint64_t next_of[LOCAL_MOST][LOCAL_MOST]; /* [receiver][sender] */

/* Items have a number that counts up, by sender and receiver. */
static void take(tern *t, const tern_msg *m)
{
	uint64_t *next = &next_of[tern_rank(t)][tern_msg_src(m)];
	if (tern_msg_count(m) != 2 || tern_msg_word(m, 0) != (*next)++ ||
	    tern_msg_word(m, 1) != ~tern_msg_word(m, 0) || tern_msg_data(m, NULL))
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&came, 1);
}

static void ask(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, ANSWER, tern_msg_word(m, 0), tern_msg_word(m, 1)), 0);
	int rc = tern_reply(t, m, ANSWER, 0);
	if (rc != -EALREADY)
		atomic_store(&code, rc);
}

static void answer(tern *t, const tern_msg *m)
{
	uint64_t *next = &next_of[tern_rank(t)][tern_msg_src(m)];
	if (tern_msg_word(m, 0) != (*next)++)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&answered, 1);
}

static void posts_open(uint32_t n)
{
	local_open(n);
	local_on(TAKE, take);
	local_on(ASK, ask);
	local_on(ANSWER, answer);
}

static void flush_all(void)
{
	for (uint32_t r = 0; r < local_size; r++)
		CHECK_IS(tern_post_flush(local[r]), 0);
	for (int quiet = 0; quiet < 3; quiet++)
		quiet = local_settle() ? 0 : quiet;
}

TEST(every_item_comes_once_and_in_order)
{
	posts_open(SIZE);
	for (uint64_t i = 0; i < MANY; i++)
		for (uint32_t a = 0; a < SIZE; a++)
			for (uint32_t b = 0; b < SIZE; b++)
				REQUIRE(tern_post(local[a], b, TAKE, i, ~i) == 0);
	flush_all();
	CHECK_IS(came, MANY * SIZE * SIZE);
	CHECK_IS(wrong, 0);
	local_close();
}

TEST(an_item_has_0_to_6_words_of_any_kind_of_number)
{
	const uint64_t words[] = { 11, 12, 13, 14, 15, 16 };
	posts_open(2);
	local_on(TELL, note_request);
	for (unsigned n = 0; n <= 6; n++) {
		unsigned before = requests.count;
		CHECK_IS(tern_post_array(local[0], 1, TELL, n, words), 0);
		CHECK_IS(tern_post_array(local[0], 1, TELL, n, words), 0);
		flush_all();
		CHECK_IS(requests.count, before + 2);
		CHECK(requests.words == n && requests.src == 0 && requests.rank == 1 &&
		      !requests.has_payload);
		CHECK(memcmp(requests.word, words, n * sizeof *words) == 0);
	}
	CHECK_IS(tern_post(local[0], 1, TELL), 0);
	CHECK_IS(tern_post(local[0], 1, TELL, 1, 2.5), 0);
	flush_all();
	CHECK(requests.words == 2 && requests.word[0] == 1 &&
	      tern_double_word_(requests.word[1]) == 2.5);
	local_close();
}

static _Atomic unsigned kinds[8];

static void count_kind(tern *t, const tern_msg *m)
{
	(void)t;
	unsigned n = tern_msg_count(m);
	for (unsigned i = 0; i < n; i++)
		if (tern_msg_word(m, i) != tern_msg_handler(m) + i)
			atomic_fetch_add(&wrong, 1);
	if (tern_msg_handler(m) == 10 + n)
		atomic_fetch_add(&kinds[n], 1);
}

TEST(items_of_several_kinds_travel_together)
{
	posts_open(2);
	for (unsigned n = 0; n <= 6; n++)
		local_on(10 + n, count_kind);
	for (unsigned i = 0; i < 7000; i++) {
		uint64_t id = 10 + i % 7, w[6] = { id, id + 1, id + 2, id + 3, id + 4, id + 5 };
		REQUIRE(tern_post_array(local[0], 1, (unsigned)id, i % 7, w) == 0);
	}
	flush_all();
	for (unsigned n = 0; n <= 6; n++)
		CHECK_IS(kinds[n], 1000);
	CHECK_IS(wrong, 0);
	local_close();
}

static void take_any(tern *t, const tern_msg *m)
{
	uint64_t *next = &next_of[tern_rank(t)][tern_msg_src(m)];
	if (tern_msg_word(m, 0) != (*next)++ || tern_msg_count(m) != 1 + tern_msg_handler(m) % 6)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&came, 1);
}

/* Runs of one kind are of any length. */
TEST(items_of_several_kinds_are_handled_in_the_order_of_the_posts)
{
	posts_open(2);
	for (unsigned id = 10; id < 20; id++)
		local_on(id, take_any);
	unsigned dice = 1, id = 10;
	for (uint64_t i = 0; i < MANY; i++) {
		const uint64_t w[6] = { i };
		dice = dice * 1103515245 + 12345;
		id = dice >> 16 & 3 ? id : 10 + (dice >> 20) % 10;
		REQUIRE(tern_post_array(local[0], 1, id, 1 + id % 6, w) == 0);
	}
	flush_all();
	CHECK_IS(came, MANY);
	CHECK_IS(wrong, 0);
	local_close();
}

TEST(an_item_is_answered_by_an_item_and_answers_come_in_order)
{
	posts_open(2);
	for (uint64_t i = 0; i < MANY; i++)
		REQUIRE(tern_post(local[0], 1, ASK, i, i) == 0);
	flush_all();
	CHECK_IS(answered, MANY);
	CHECK_IS(wrong, 0);
	CHECK_IS(code, 0); /* a second answer is refused */
	local_close();
}

/* -- When items leave -------------------------------------------------------------------------- */

TEST(items_leave_when_the_rank_polls_in_vain)
{
	local_polled();
	posts_open(2);
	CHECK_IS(tern_post(local[0], 1, TAKE, 0, ~0ull), 0);
	CHECK_IS(tern_poll(local[1]), 0);
	CHECK_IS(came, 0);
	CHECK(tern_poll(local[0]) >= 0);
	CHECK_IS(tern_poll(local[1]), 1);
	CHECK_IS(came, 1);
	local_close();
}

static void burst(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

TEST(items_leave_though_a_rank_always_has_something_to_handle)
{
	local_polled();
	posts_open(2);
	local_on(TELL, burst);
	CHECK_IS(tern_post(local[0], 1, TAKE, 0, ~0ull), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_IS(tern_request(local[1], 0, TELL, 1, 2), 0);
		CHECK(tern_poll(local[0]) >= 1);
	}
	CHECK_IS(came, 1); /* rank 1 has looked when it sent */
	local_close();
}

TEST(a_full_buffer_leaves_by_itself)
{
	local_polled();
	posts_open(2);
	for (uint64_t i = 0; i <= GATHER_WORDS / 2; i++)
		CHECK_IS(tern_post(local[0], 1, TAKE, i, ~i), 0);
	CHECK_IS(tern_poll(local[1]), 1);
	CHECK_IS(came, (GATHER_WORDS - 1) / 2);
	local_close();
}

static void note_order(tern *t, const tern_msg *m)
{
	(void)t;
	if (atomic_load(&came) != MANY)
		atomic_fetch_add(&wrong, 1);
	if (tern_msg_word(m, 0) != 1)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&answered, 1);
}

TEST(a_request_sent_after_a_flush_is_handled_after_the_items)
{
	posts_open(2);
	local_on(TELL, note_order);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_IS(tern_post(local[0], 1, TAKE, i, ~i), 0);
	CHECK_IS(tern_post_flush(local[0]), 0);
	CHECK_IS(tern_request(local[0], 1, TELL, 1, 2), 0);
	flush_all();
	CHECK(answered == 1 && wrong == 0 && came == MANY);
	local_close();
}

TEST(a_request_sent_before_an_item_is_handled_before_it)
{
	local_polled();
	posts_open(2);
	local_on(TELL, note_request);
	CHECK_IS(tern_request(local[0], 1, TELL, 7, 8), 0);
	CHECK_IS(tern_post(local[0], 1, TELL, 9), 0);
	flush_all();
	CHECK(requests.count == 2 && requests.word[0] == 9);
	local_close();
}

TEST(closing_sends_what_was_posted)
{
	posts_open(2);
	CHECK_IS(tern_post(local[0], 1, TAKE, 0, ~0ull), 0);
	local_close_one(0);
	local_settle();
	CHECK_IS(came, 1);
	local_close();
}

/* -- Memory ------------------------------------------------------------------------------------ */

static void count_item(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	atomic_fetch_add(&came, 1);
}

TEST(the_oldest_buffer_leaves_when_all_are_open)
{
	local_polled();
	enum { RANKS = 40, OPEN = 16 };
	posts_open(RANKS);
	struct post *p = post_of(local[0]);
	p->most = OPEN;
	for (uint64_t i = 0; i < 3; i++)
		for (uint32_t r = 0; r < RANKS; r++)
			REQUIRE(tern_post(local[0], r, TAKE, i, ~i) == 0);
	CHECK(p->opened <= OPEN);
	flush_all();
	CHECK(came == 3 * RANKS && wrong == 0);
	local_close();
}

/*
 * One rank posts to as many ranks as a job may have, more items than fit into its buffers: what it
 * takes is what docs/posts.md says.
 */
TEST(posts_to_1024_ranks_take_bounded_memory)
{
	check_skip_crowd(TERN_RANKS_MAX);
	local_polled();
	enum { ITEMS = 150 };
	tern **all = calloc(TERN_RANKS_MAX, sizeof(tern *));
	setenv("TERN_HEAP", "4M", 1); /* sanitizers have no addresses for 1,024 of 1 GiB */
	REQUIRE(all && tern_open_local(TERN_RANKS_MAX, all) == 0);
	const struct post *p = post_of(all[0]);
	for (uint32_t r = 0; r < TERN_RANKS_MAX; r++)
		CHECK_IS(tern_on(all[r], TAKE, count_item), 0);
	for (uint64_t i = 0; i < ITEMS; i++)
		for (uint32_t r = 1; r < TERN_RANKS_MAX; r++)
			REQUIRE(tern_post(all[0], r, TAKE, i, ~i) == 0);
	CHECK(p->opened <= GATHERS_OPEN && p->queued <= QUEUED_LONG);
	size_t bytes = 0;
	for (void *chunk = p->made; chunk; chunk = *(void **)chunk)
		bytes += CHUNK_BYTES;
	CHECK(bytes <= 2 << 20);
	CHECK(p->slots <= SLOTS_MOST);
	CHECK(sizeof *p->out <= 64);
	CHECK_IS(tern_post_flush(all[0]), 0);
	for (uint32_t r = 1; r < TERN_RANKS_MAX; r++)
		CHECK(tern_poll(all[r]) >= 0);
	CHECK_IS(came, ITEMS * (TERN_RANKS_MAX - 1));
	for (uint32_t r = 0; r < TERN_RANKS_MAX; r++)
		CHECK_IS(tern_close(all[r]), 0);
	unsetenv("TERN_HEAP");
	free(all);
}

static void pass_on(tern *t, const tern_msg *m)
{
	int rc = tern_post(t, 2, TAKE, tern_msg_word(m, 0), ~tern_msg_word(m, 0));
	if (rc)
		atomic_store(&code, rc);
}

/*
 * Rank 0 posts to rank 1, whose handlers post to rank 2, which takes nothing: rank 0 is told to
 * wait before the queues of rank 1 get long.
 */
TEST(who_posts_to_a_rank_whose_queues_are_long_waits)
{
	local_polled();
	local_open(4);
	local_on(TAKE, take);
	local_on(PASS, pass_on);
	local_on(TELL, burst);
	struct post *at = post_of(local[1]);
	tern_hold(local[2]);
	uint64_t i = 0;
	int rc = 0;
	for (; !rc && i < 1000000; i++) {
		if (i % 100 == 0) {
			CHECK(tern_poll(local[1]) >= 0);
			CHECK(tern_poll(local[0]) >= 0);
		}
		tern_hold(local[0]); /* so that it is told instead of waiting */
		rc = tern_post(local[0], 1, PASS, i);
		tern_release(local[0]);
	}
	CHECK_IS(rc, -EAGAIN);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK(at->queued >= QUEUED_LONG && at->queued < 2 * QUEUED_LONG);
	/* Who has not posted there is not told, and is as soon as it does. */
	CHECK(at->out[0].paced && !at->out[1].paced && !at->out[2].paced && !at->out[3].paced);
	CHECK_IS(tern_post(local[3], 1, TELL), 0);
	CHECK_IS(tern_post_flush(local[3]), 0);
	CHECK(tern_poll(local[1]) >= 0 && tern_poll(local[3]) >= 0);
	CHECK(at->out[3].paced && post_of(local[3])->out[1].overloaded);
	tern_release(local[2]);
	flush_all();
	CHECK_IS(came, i - 1);
	CHECK(!post_of(local[0])->out[1].overloaded && !post_of(local[3])->out[1].overloaded &&
	      !at->pacing);
	CHECK_IS(tern_post(local[0], 1, PASS, i - 1), 0);
	flush_all();
	CHECK(came == i && wrong == 0 && code == 0);
	local_close();
}

static void pass_many(tern *t, const tern_msg *m)
{
	(void)m;
	for (uint64_t i = 0; i < 100000 && !code; i++) {
		int rc = tern_post(t, 2, TELL, 1, 2, 3, 4, 5, 6);
		if (rc && !CHECK(sentence_has(rc, "wait to leave")))
			break;
		if (rc)
			atomic_store(&code, rc);
	}
}

TEST(a_handler_that_posts_without_end_is_refused)
{
	local_polled();
	local_open(3);
	local_on(TELL, burst);
	local_on(PASS, pass_many);
	tern_hold(local[2]);
	for (int i = 0; i < 100; i++)
		CHECK_IS(tern_post(local[0], 1, PASS), 0);
	CHECK_IS(tern_post_flush(local[0]), 0);
	CHECK(tern_poll(local[1]) >= 0);
	CHECK_IS(code, -ENOBUFS);
	/* The poll has sent what rank 2 has slots for. */
	CHECK_IS(post_of(local[1])->queued, QUEUED_MOST - SLOTS_EACH);
	tern_release(local[2]);
	flush_all();
	local_close();
}

/* -- Rules ------------------------------------------------------------------------------------- */

static void try_odd(tern *t, const tern_msg *m)
{
	const tern_msg *kept;
	char byte = 0;
	void *claimed;
	CHECK_IS(tern_request(t, 0, TAKE, 1), -EPERM);
	CHECK(sentence_has(-EPERM, "try_odd"));
	CHECK_IS(tern_post(t, tern_size(t), TAKE, 1), -ERANGE);
	CHECK_IS(tern_post_flush(t), -EPERM);
	CHECK_IS(tern_reply_data(t, m, ANSWER, &byte, 1, 1), -ENOTSUP);
	CHECK(sentence_has(-ENOTSUP, "up to 6 words"));
	CHECK_IS(tern_reply_claim(t, m, 8, TERN_CLAIM_ANY, &claimed), -ENOTSUP);
	CHECK_IS(tern_reply(t, m, ANSWER, 1, 2, 3, 4, 5, 6, 7), -ENOTSUP);
	CHECK_IS(tern_msg_keep(t, m, &kept), 0);
	CHECK(tern_msg_word(kept, 0) == tern_msg_word(m, 0) && tern_msg_src(kept) == 0);
	CHECK_IS(tern_msg_drop(t, kept), 0);
	CHECK_IS(tern_poll_replies(t), 0);
	CHECK_IS(tern_reply(t, m, ANSWER, atomic_load(&came), 2, 3, 4, 5, 6), 0);
	atomic_fetch_add(&came, 1);
}

TEST(what_an_items_handler_may_not_do_is_refused_with_a_sentence)
{
	local_polled();
	posts_open(2);
	local_on(ODD, try_odd);
	CHECK_IS(tern_post(local[0], 1, ODD, 5), 0);
	CHECK_IS(tern_post(local[0], 1, ODD, 6), 0);
	flush_all();
	CHECK(came == 2 && answered == 2 && wrong == 0);
	local_close();
}

TEST(a_wrong_post_is_refused_with_a_sentence)
{
	const uint64_t words[8] = { 0 };
	posts_open(2);
	CHECK_IS(tern_post(local[0], 2, TAKE, 1), -ERANGE);
	CHECK(sentence_has(-ERANGE, "rank 2"));
	CHECK_IS(tern_post(local[0], 1, 77, 1), -ENXIO);
	CHECK(sentence_has(-ENXIO, "handler 77"));
	CHECK_IS(tern_post(local[0], 1, TERN_HANDLER_MAX, 1), -ERANGE);
	CHECK_IS(tern_post(local[0], 1, TAKE, 1, 2, 3, 4, 5, 6, 7), -E2BIG);
	CHECK(sentence_has(-E2BIG, "at most 6"));
	CHECK_IS(tern_post_array(local[0], 1, TAKE, 8, words), -E2BIG);
	/* Though its number and that of its words together look like the kind that is open. */
	CHECK_IS(tern_post_array(local[0], 1, ANSWER, 2, words), 0);
	CHECK_IS(tern_post_array(local[0], 1, TAKE, (ANSWER - TAKE) << TERN_ID_SHIFT | 2, words),
		 -E2BIG);
	tern_hold(local[0]);
	CHECK_IS(tern_post_flush(local[0]), -EDEADLK);
	tern_release(local[0]);
	local_close();
}

TEST(a_rank_that_has_left_is_named)
{
	posts_open(3);
	CHECK_IS(tern_post(local[0], 2, TAKE, 0, ~0ull), 0);
	local_close_one(2);
	int rc = 0;
	for (int i = 0; !rc && i < 1000000; i++) {
		CHECK(tern_poll(local[0]) >= 0);
		rc = tern_post(local[0], 2, TAKE, 0, ~0ull);
	}
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(sentence_has(rc, "rank 2"));
	CHECK_IS(tern_post(local[0], 1, TAKE, 0, ~0ull), 0);
	rc = tern_post_flush(local[0]); /* tells that items were dropped, if some were */
	CHECK(rc == 0 || rc == -ESHUTDOWN);
	CHECK_IS(tern_post_flush(local[0]), 0);
	local_settle();
	local_close();
}

TEST(a_worker_does_not_post)
{
	local_open(2);
	local_on(TAKE, take);
	tern *worker;
	REQUIRE(tern_worker_open(local[0], &worker) == 0);
	if (worker != local[0])
		CHECK_IS(tern_post(worker, 1, TAKE, 1, 2), -ENOTSUP);
	CHECK_IS(tern_close(worker), 0);
	local_close();
}

TEST(garbage_in_a_batch_is_dropped_with_a_sentence)
{
	const uint64_t bad[][2] = {
		{ UINT64_C(2) << RUN_COUNT_SHIFT | 0x80 | 2, 0 }, /* more items than there are */
		{ UINT64_C(1) << RUN_COUNT_SHIFT | 0x80 | 9, 0 }, /* of 9 words */
		{ UINT64_C(1) << RUN_COUNT_SHIFT | TERN_HANDLER_MAX << TERN_ID_SHIFT | 0x81, 0 },
		{ UINT64_MAX, 0 },
	};
	local_polled();
	posts_open(2);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK_IS(layer_request(local[0]->own, 1, POST_BATCH, bad[i], 16, 0, bad[i]), 0);
		CHECK_IS(tern_poll(local[1]), -EBADMSG);
		CHECK(sentence_has(-EBADMSG, "from rank 0"));
	}
	/* Slots that are none: of another rank, not there, too long, not where slots begin. */
	const uint64_t none[][2] = {
		{ UINT64_C(1) << 48, 2 },
		{ 1 << 30, 2 },
		{ 0, GATHER_WORDS + 1 },
		{ 8, 2 },
	};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		CHECK_IS(layer_request(local[0]->own, 1, POST_SLOT, NULL, 0, 2, none[i]), 0);
		CHECK_IS(tern_poll(local[1]), -EBADMSG);
		CHECK(sentence_has(-EBADMSG, "from rank 0"));
	}
	CHECK_IS(layer_request(local[0]->own, 1, POST_BATCH, NULL, 0, 0, bad[0]), 0);
	CHECK_IS(tern_poll(local[1]), 1);
	CHECK_IS(came, 0);
	local_close();
}
