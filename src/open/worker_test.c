/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers: threads of a rank that send through lanes of their own. */
#include <errno.h>
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/coll.h>
#include <tern/lock.h>
#include <tern/mem.h>
#include <tern/post.h>
#include <tern/send.h>
#include <tern/sequence.h>
#include <tern/thread.h>

#include "lib/local.h"
#include "net/udp/udp.h"
#include "tools/watch/watch.h"

enum { ASK = 2, TELL, DATA, DATA_BACK, THREADS = 4, RANKS = 2 };

/* What a worker has got back, and what the ranks have got from it. */
struct hand {
	tern *worker;
	tern_flag told;
	uint64_t next_told[RANKS];          /* written by the worker's handlers */
	_Atomic uint64_t next_asked[RANKS]; /* by those of each rank */
	_Atomic bool wrong;
};

static void hand_wrong(struct hand *h, bool wrong)
{
	if (wrong)
		h->wrong = true;
}

static struct hand hand[THREADS];
static unsigned rounds;
static _Atomic unsigned done;

/* The words: which worker, and the how manieth request from it to this rank. */
static void on_ask(tern *t, const tern_msg *m)
{
	struct hand *h = &hand[tern_msg_word(m, 0)];
	uint32_t me = tern_rank(t);
	hand_wrong(h, tern_msg_word(m, 1) != h->next_asked[me]++);
	hand_wrong(h, tern_msg_src(m) != tern_rank(h->worker) || t == h->worker);
	CHECK_IS(tern_reply(t, m, TELL, tern_msg_word(m, 0), tern_msg_word(m, 1)), 0);
}

static void on_tell(tern *t, const tern_msg *m)
{
	struct hand *h = &hand[tern_msg_word(m, 0)];
	hand_wrong(h, t != h->worker);
	hand_wrong(h, tern_msg_word(m, 1) != h->next_told[tern_msg_src(m)]++);
	tern_signal(t, &h->told, 1);
}

static void on_data(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	CHECK_IS(tern_reply_data(t, m, DATA_BACK, data, len, tern_msg_word(m, 0)), 0);
}

static void on_data_back(tern *t, const tern_msg *m)
{
	struct hand *h = &hand[tern_msg_word(m, 0)];
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	for (size_t i = 0; i < len; i++)
		hand_wrong(h, data[i] != (unsigned char)(tern_msg_word(m, 0) + len + i));
	tern_signal(t, &h->told, 1);
}

static void open_ranks(void)
{
	local_open(RANKS);
	local_on(ASK, on_ask);
	local_on(TELL, on_tell);
	local_on(DATA, on_data);
	local_on(DATA_BACK, on_data_back);
	atomic_store(&done, 0);
}

/* Each thread opens a worker of one rank, and this one serves both ranks. */
static void together(void *(*fn)(void *))
{
	pthread_t thread[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, fn, (void *)i) == 0);
	while (atomic_load(&done) < THREADS)
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK(tern_poll(local[r]) >= 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		CHECK(!hand[i].wrong);
	}
}

static struct hand *hand_open(uintptr_t i)
{
	CHECK_IS(tern_worker_open(local[i % RANKS], &hand[i].worker), 0);
	CHECK_IS(tern_rank(hand[i].worker), i % RANKS);
	return &hand[i];
}

static void *hand_close(struct hand *h)
{
	CHECK_IS(tern_close(h->worker), 0);
	atomic_fetch_add(&done, 1);
	return NULL;
}

static void *ask_all(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	struct hand *h = hand_open(me);
	for (uint64_t i = 0; i < rounds; i++) {
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK_IS(tern_request(h->worker, r, ASK, me, i), 0);
		if (i % 16 == 0)
			CHECK_IS(tern_wait(h->worker, &h->told, RANKS), 0);
	}
	CHECK_IS(tern_wait(h->worker, &h->told, (rounds - (rounds + 15) / 16) * RANKS), 0);
	return hand_close(h);
}

TEST(each_request_of_a_worker_is_handled_once_in_order_and_its_reply_by_the_worker)
{
	rounds = check_scaled(20000);
	open_ranks();
	together(ask_all);
	for (int i = 0; i < THREADS; i++)
		for (uint32_t r = 0; r < RANKS; r++) {
			CHECK_IS(hand[i].next_asked[r], rounds);
			CHECK_IS(hand[i].next_told[r], rounds);
		}
	local_close();
}

static void *ask_and_sleep(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	struct hand *h = hand_open(me);
	for (uint64_t i = 0; i < 4; i++) {
		CHECK_IS(tern_request(h->worker, 0, ASK, me, i), 0);
		CHECK_IS(tern_wait(h->worker, &h->told, 1), 0);
	}
	return hand_close(h);
}

TEST(a_worker_that_sleeps_is_woken_by_a_reply)
{
	pthread_t thread;
	local_polled();
	open_ranks();
	REQUIRE(pthread_create(&thread, NULL, ask_and_sleep, NULL) == 0);
	while (!atomic_load(&done)) {
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		CHECK(tern_poll(local[0]) >= 0);
	}
	pthread_join(thread, NULL);
	CHECK(!hand[0].wrong);
	local_close();
}

static void *send_data(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	struct hand *h = hand_open(me);
	for (size_t i = 1; i <= rounds; i++) {
		unsigned char data[TERN_REQUEST_MAX];
		size_t len = i * 797 % (i % 4 ? TERN_PAYLOAD_MAX : TERN_REQUEST_MAX) + 1;
		for (size_t k = 0; k < len; k++)
			data[k] = (unsigned char)(me + len + k);
		CHECK_IS(tern_request_data(h->worker, i % RANKS, DATA, data, len, me), 0);
	}
	CHECK_IS(tern_wait(h->worker, &h->told, rounds), 0);
	return hand_close(h);
}

TEST(payloads_of_workers_travel_there_and_back)
{
	rounds = check_scaled(2000);
	open_ranks();
	together(send_data);
	local_close();
}

static tern_addr counter, table;

static void *put_and_add(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	struct hand *h = hand_open(me);
	static unsigned char big[THREADS][1 << 20];
	uint64_t old, seen;
	tern_op op = TERN_OP;
	for (uint64_t i = 0; i < rounds; i++) {
		CHECK_IS(tern_amo(h->worker, counter, TERN_AMO_ADD, 1, &old), 0);
		CHECK_IS(tern_put(h->worker, table + me * 8, &i, sizeof i), 0);
		CHECK_IS(tern_get(h->worker, &seen, table + me * 8, sizeof seen), 0);
		hand_wrong(h, seen != i);
	}
	memset(big[me], (int)me + 1, sizeof big[me]);
	CHECK_IS(tern_put_start(h->worker, table + 64 + me * sizeof big[me], big[me],
				sizeof big[me], &op),
		 0);
	CHECK_IS(tern_op_wait(h->worker, &op), 0);
	return hand_close(h);
}

TEST(workers_put_get_and_add_with_no_rank_polling)
{
	void *p;
	pthread_t thread[THREADS];
	rounds = check_scaled(50000);
	open_ranks();
	REQUIRE(tern_alloc(local[1], 64 + (THREADS << 20), &p) == 0);
	REQUIRE(tern_addr_of(local[1], p, &table) == 0);
	counter = table + THREADS * 8;
	memset(p, 0, 64);
	for (uintptr_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, put_and_add, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK_IS(((uint64_t *)p)[THREADS], THREADS * rounds);
	for (int i = 0; i < THREADS; i++) {
		CHECK(!hand[i].wrong);
		const unsigned char *big = (unsigned char *)p + 64 + ((size_t)i << 20);
		CHECK(big[0] == i + 1 && big[(1 << 20) - 1] == i + 1);
	}
	local_close();
}

TEST(one_thread_plays_a_rank_and_its_worker)
{
	open_ranks();
	struct hand *h = hand_open(0);
	for (uint64_t i = 0; i < 100; i++) {
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK_IS(tern_request(h->worker, r, ASK, 0, i), 0);
		CHECK_IS(tern_wait(h->worker, &h->told, RANKS), 0);
	}
	CHECK(!h->wrong);
	CHECK_IS(tern_close(h->worker), 0);
	local_close();
}

TEST(what_a_worker_has_handled_is_counted_as_its_ranks)
{
	static struct rank_view view[RANKS + 64];
	local_polled();
	open_ranks();
	struct hand *h = hand_open(0);
	for (uint64_t i = 0; i < 10; i++)
		CHECK_IS(tern_request(h->worker, 1, ASK, 0, i), 0);
	struct watch w = { .job = local[0]->own->group->job };
	watch_look(&w, view);
	CHECK(view[0].served == 0 && view[1].served == 0);
	CHECK_IS(tern_wait(h->worker, &h->told, 10), 0);
	watch_look(&w, view);
	CHECK_IS(view[0].served, 10);
	CHECK_IS(view[1].served, 10);
	CHECK_IS(tern_close(h->worker), 0);
	local_close();
}

/* The first word of a request, which comes back, says which worker of several it is from. */
static uint64_t generation;
static _Atomic unsigned late;

static void on_token(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL, tern_msg_word(m, 0)), 0);
}

static void on_token_back(tern *t, const tern_msg *m)
{
	if (tern_msg_word(m, 0) != generation)
		late++;
	else
		tern_signal(t, &hand[0].told, 1);
}

TEST(a_worker_is_opened_again_in_its_place_and_gets_no_reply_of_the_one_before)
{
	setenv("TERN_WORKERS", "3", 1);
	local_polled();
	open_ranks();
	local_on(ASK, on_token);
	local_on(TELL, on_token_back);
	for (generation = 0; generation < 200; generation++) {
		tern *w = NULL;
		CHECK_IS(tern_worker_open(local[0], &w), 0);
		REQUIRE(w != NULL);
		for (int i = 0; i < 3; i++)
			CHECK_IS(tern_request(w, 1, ASK, generation), 0);
		CHECK_IS(tern_wait(w, &hand[0].told, 3), 0);
		/* When the next one is opened, this request is unread, or its reply is. */
		CHECK_IS(tern_request(w, 1, ASK, generation), 0);
		CHECK_IS(tern_close(w), 0);
		if (generation % 2)
			CHECK(tern_poll(local[1]) >= 0);
	}
	CHECK_IS(late, 0);
	local_close();
}

TEST(a_worker_that_is_closed_sends_nothing)
{
	local_polled();
	open_ranks();
	struct hand *h = hand_open(0);
	CHECK_IS(tern_request(h->worker, 1, ASK, 0, 0), 0);
	CHECK_IS(tern_wait(h->worker, &h->told, 1), 0);
	CHECK_IS(tern_close(h->worker), 0);
	CHECK(tern_request(h->worker, 1, ASK, 0, 1) < 0);
	local_close();
}

TEST(a_machine_has_as_many_workers_as_the_setting_says)
{
	tern *w[3];
	setenv("TERN_WORKERS", "2", 1);
	open_ranks();
	CHECK_IS(tern_worker_open(local[0], &w[0]), 0);
	CHECK_IS(tern_worker_open(local[1], &w[1]), 0);
	int rc = tern_worker_open(local[1], &w[2]);
	CHECK_IS(rc, -ENOSPC);
	CHECK(sentence_has(rc, "TERN_WORKERS"));
	rc = tern_close(local[0]);
	CHECK_IS(rc, -EBUSY);
	CHECK(sentence_has(rc, "1 worker open"));
	CHECK_IS(tern_close(w[0]), 0);
	CHECK_IS(tern_close(w[1]), 0);
	local_close();
	setenv("TERN_WORKERS", "1025", 1);
	CHECK_IS(tern_open_local(1, local), -EINVAL);
}

TEST(what_a_worker_cannot_do_is_refused_with_a_sentence)
{
	tern *w, *other;
	void *p = NULL;
	tern_chan *c;
	tern_addr a = TERN_ADDR_NONE;
	uint64_t word = 0;
	tern_op op = TERN_OP;
	tern_buf buf;
	tern_segment segment;
	tern_lock lock = { 0 };
	tern_stream *stream;
	tern_team *team;
	open_ranks();
	REQUIRE(tern_worker_open(local[0], &w) == 0);
	int rc[] = {
		tern_barrier_start(w, &op),
		tern_free(w, &word),
		tern_free_all(w, &word),
		tern_unregister(w, a),
		tern_block_name(w, 1, &p, 8),
		tern_segment_open(w, &word, 8, NULL, NULL, &segment),
		tern_store_sync(w, 1),
		tern_store_sync_for(w, 1, 1000),
		tern_lock_take(w, &lock),
		tern_lock_try(w, &lock),
		tern_lock_release(w, &lock),
		tern_buf_alloc(w, 1, 100, 1, 0),
		tern_buf_send(w, 1, 1, &word, 8),
		tern_buf_recv(w, 1, 0, &buf),
		tern_post(w, 1, 1, 2),
		tern_post_flush(w),
		tern_post_limit(w, 5),
		tern_sequence_send(w, 1, 1, &word, 8, TERN_WAY_FULL),
		tern_stream_open(w, 1, 1, TERN_WAY_FULL, 1, &stream),
		tern_spawn(w, 1, 1, NULL, NULL),
		tern_team_all(w, &team),
		tern_barrier(w),
		tern_alloc(w, 8, &p),
		tern_alloc_all(w, 8, &p),
		tern_register(w, &word, 8, &a),
		tern_send(w, 1, 1, &word, 8),
		tern_recv(w, 1, 1, &word, 8, NULL),
		tern_chan_to(w, 1, 1, &c),
		tern_chan_from(w, 1, 1, &c),
		tern_delivery_set(w, TERN_DELIVERY_THREAD),
		tern_worker_open(w, &other),
	};
	for (unsigned i = 0; i < sizeof rc / sizeof *rc; i++)
		if (!CHECK_IS(rc[i], -ENOTSUP))
			printf("    the call with number %u\n", i);
	CHECK(sentence_has(tern_barrier(w), "tern_barrier() was called at a worker of rank 0"));
	CHECK_IS(tern_close(w), 0);
	local_close();
}

static int segment_codes[2];

static void on_fill(tern *t, const tern_msg *m)
{
	static const uint64_t words[4] = { 1, 2, 3, 4 };
	segment_codes[0] = tern_segment_reply(t, m, tern_msg_word(m, 0), words, 8);
	CHECK(sentence_has(segment_codes[0], "a reply transfer to a worker of rank 0"));
	segment_codes[1] = tern_segment_reply(t, m, tern_msg_word(m, 0), words, 32);
	CHECK_IS(tern_reply(t, m, TELL, 0, 0), 0);
}

TEST(a_reply_into_a_segment_is_refused_where_a_worker_asked_for_it)
{
	enum { FILL = DATA_BACK + 1 };
	uint64_t area[4] = { 0 };
	tern_segment s;
	open_ranks();
	local_on(FILL, on_fill);
	hand[0] = (struct hand){ .told = 0 };
	REQUIRE(tern_segment_open(local[0], area, sizeof area, NULL, NULL, &s) == 0);
	REQUIRE(tern_worker_open(local[0], &hand[0].worker) == 0);
	CHECK_IS(tern_request(hand[0].worker, 1, FILL, s), 0);
	while (!hand[0].told)
		CHECK(tern_poll(local[1]) >= 0 && tern_poll(hand[0].worker) >= 0);
	CHECK_IS(segment_codes[0], -ENOTSUP);
	CHECK_IS(segment_codes[1], -ENOTSUP);
	CHECK_IS(area[0] | area[3], 0);
	CHECK_IS(tern_close(hand[0].worker), 0);
	CHECK_IS(tern_segment_close(local[0], s), 0);
	local_close();
}

TEST(a_worker_learns_that_a_rank_has_died_and_goes_on_with_the_others)
{
	local_polled();
	open_ranks();
	struct hand *h = hand_open(0);
	CHECK_IS(tern_request(h->worker, 1, ASK, 0, 0), 0);
	CHECK_IS(tern_wait(h->worker, &h->told, 1), 0);
	local_close_one(1);
	CHECK_IS(tern_request(h->worker, 0, ASK, 0, 0), 0);
	CHECK_IS(tern_wait(h->worker, &h->told, 1), 0);
	int rc = 0;
	for (uint64_t i = 1; !rc && i < 100; i++) {
		CHECK(tern_poll(h->worker) >= 0);
		rc = tern_request(h->worker, 1, ASK, 0, i);
	}
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK_IS(tern_close(h->worker), 0);
	local_close();
}

static unsigned pushed;

static void on_push(tern *t, const tern_msg *m)
{
	static const char data[1000]; /* in a block */
	int rc = tern_reply_data(t, m, DATA_BACK, data, sizeof data, 0);
	CHECK(rc == 0 || rc == -EOWNERDEAD);
	pushed++;
}

/* It takes no replies in, so that most of its requests wait for room for theirs. */
TEST(a_rank_that_dies_gives_back_what_its_worker_held_and_what_that_had_sent_is_handled)
{
	enum { REQUESTS = 2 * TERN_POOL_BLOCKS };
	void *claimed;
	local_polled();
	local_open(3);
	local_on(DATA, on_push);
	local_on(DATA_BACK, on_data_back);
	struct hand *h = hand_open(0);
	for (int i = 0; i < REQUESTS; i++)
		CHECK_IS(tern_request(h->worker, 1, DATA), 0);
	for (int i = 0; i < 10; i++)
		CHECK(tern_poll(local[1]) >= 0);
	CHECK_IS(pushed, TERN_POOL_BLOCKS + 1);
	job_rank_ended(&local[0]->own->group->job, 0, SIGKILL);
	for (int i = 0; i < 100; i++)
		(void)!tern_poll(local[1]);
	CHECK_IS(pushed, REQUESTS);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_claim(local[1], 2, 8, &claimed), 0);
	CHECK_IS(tern_request(local[1], 0, DATA), -EOWNERDEAD);
}

TEST(a_forked_child_cannot_use_its_parents_worker)
{
	open_ranks();
	struct hand *h = hand_open(0);
	pid_t child = fork();
	if (!child) {
		tern *w;
		bool refused = tern_request(h->worker, 1, ASK, 0, 0) == -EPERM &&
			       tern_worker_open(local[0], &w) == -EPERM;
		_exit(refused ? 0 : 1);
	}
	int status = -1;
	waitpid(child, &status, 0);
	CHECK_IS(status, 0);
	CHECK_IS(tern_request(h->worker, 1, ASK, 0, 0), 0);
	CHECK_IS(tern_wait(h->worker, &h->told, 1), 0);
	CHECK_IS(tern_close(h->worker), 0);
	local_close();
}

static void *ask_shared(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	tern *w;
	CHECK_IS(tern_worker_open(local[0], &w), 0);
	for (unsigned i = 0; i < rounds; i++) {
		CHECK_IS(tern_request(w, 1, DATA, me), 0);
		CHECK_IS(tern_wait(w, &hand[me].told, 1), 0);
	}
	CHECK_IS(tern_close(w), 0);
	atomic_fetch_add(&done, 1);
	return NULL;
}

static void answer_shared(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL, tern_msg_word(m, 0)), 0);
}

static void told_shared(tern *t, const tern_msg *m)
{
	tern_signal(t, &hand[tern_msg_word(m, 0)].told, 1);
}

static void *open_first(void *arg)
{
	tern *w;
	(void)arg;
	int rc = tern_worker_open(local[0], &w);
	CHECK_IS(rc, -EPERM);
	CHECK(sentence_has(rc, "udp"));
	return NULL;
}

TEST(over_a_network_workers_share_the_endpoint_of_the_rank)
{
	tern *w;
	char why[200];
	pthread_t thread;
	if (!udp_ops.usable(why, sizeof why))
		check_skip(why);
	rounds = check_scaled(200);
	setenv("TERN_NET", "udp", 1);
	open_ranks();
	local_on(DATA, answer_shared);
	local_on(TELL, told_shared);
	CHECK_IS(tern_request(local[0], 1, DATA, 0), 0);
	REQUIRE(pthread_create(&thread, NULL, open_first, NULL) == 0);
	pthread_join(thread, NULL);
	tern_hold(local[0]);
	CHECK_IS(tern_worker_open(local[0], &w), -EDEADLK);
	tern_release(local[0]);
	if (tern_delivery_get(local[0]) == TERN_DELIVERY_INTERRUPT) {
		CHECK_IS(tern_worker_open(local[0], &w), -ENOTSUP);
		CHECK_IS(tern_delivery_set(local[0], TERN_DELIVERY_POLL), 0);
	}
	CHECK_IS(tern_worker_open(local[0], &w), 0);
	CHECK_IS(tern_wait(w, &hand[0].told, 1), 0);
	CHECK_IS(tern_worker_id(w), 0); /* it is the endpoint */
	together(ask_shared);
	CHECK_IS(tern_close(w), 0);
	local_close();
}
