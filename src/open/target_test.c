/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers as targets: requests that name one worker, and are handled by its thread. */
#include <errno.h>
#include <sched.h>
#include <tern/mem.h>
#include <tern/post.h>

#include "core/core.h"
#include "lib/local.h"
#include "net/block.h"

enum { ASK = 2, TELL, DATA, DATA_BACK, STOP, MARK, RANKS = 2, THREADS = 6 };
enum { SENDERS = RANKS + THREADS, NUMBERS = RANKS + THREADS };

/* A worker with a thread that serves it, or a rank; both are senders and targets. */
static struct party {
	tern *t;
	uint32_t number; /* as a target */
	pthread_t thread;
	uint64_t asked[SENDERS]; /* written by its handlers */
	uint64_t told[NUMBERS];
	tern_flag answered, stop;
	_Atomic bool wrong;
} party[NUMBERS];

static unsigned rounds;
static _Atomic unsigned ready, done;

static void party_wrong(struct party *p, bool wrong)
{
	if (wrong)
		p->wrong = true;
}

static bool is_worker(const struct party *p)
{
	return p >= &party[RANKS];
}

/* The words: who asks, who is asked, and the how manieth of these requests it is. */
static void on_ask(tern *t, const tern_msg *m)
{
	uint64_t from = tern_msg_word(m, 0);
	struct party *p = &party[tern_msg_word(m, 1)];
	party_wrong(p, t != p->t || tern_msg_src(m) != tern_rank(party[from].t));
	party_wrong(p, is_worker(p) && !pthread_equal(pthread_self(), p->thread));
	party_wrong(p, tern_msg_word(m, 2) != p->asked[from]++);
	CHECK_IS(tern_reply(t, m, TELL, from, tern_msg_word(m, 1), tern_msg_word(m, 2)), 0);
}

static void on_tell(tern *t, const tern_msg *m)
{
	struct party *p = &party[tern_msg_word(m, 0)];
	uint64_t by = tern_msg_word(m, 1);
	party_wrong(p, t != p->t || tern_msg_src(m) != tern_rank(party[by].t));
	party_wrong(p, tern_msg_word(m, 2) != p->told[by]++);
	tern_signal(t, &p->answered, 1);
}

static unsigned char byte_of(size_t len, size_t i)
{
	return (unsigned char)(len * 7 + i);
}

static bool bytes_right(const tern_msg *m)
{
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	for (size_t i = 0; i < len; i++)
		if (data[i] != byte_of(len, i))
			return false;
	return len == tern_msg_word(m, 2);
}

static void on_data(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	struct party *p = &party[tern_msg_word(m, 1)];
	party_wrong(p, t != p->t || !bytes_right(m));
	CHECK_IS(tern_reply_data(t, m, DATA_BACK, data, len, tern_msg_word(m, 0),
				 tern_msg_word(m, 1), tern_msg_word(m, 2)),
		 0);
}

static void on_data_back(tern *t, const tern_msg *m)
{
	struct party *p = &party[tern_msg_word(m, 0)];
	party_wrong(p, t != p->t || !bytes_right(m));
	tern_signal(t, &p->answered, 1);
}

static void on_stop(tern *t, const tern_msg *m)
{
	(void)m;
	for (int i = RANKS; i < NUMBERS; i++)
		if (party[i].t == t)
			tern_signal(t, &party[i].stop, 1);
}

static void open_ranks(void)
{
	memset(party, 0, sizeof party);
	local_open(RANKS);
	local_on(ASK, on_ask);
	local_on(TELL, on_tell);
	local_on(DATA, on_data);
	local_on(DATA_BACK, on_data_back);
	local_on(STOP, on_stop);
	for (uint32_t r = 0; r < RANKS; r++) {
		party[r].t = local[r];
		party[r].number = tern_worker_id(local[r]);
		CHECK_IS(party[r].number, r);
	}
	ready = done = 0;
}

/* The worker with number `i`, of rank i % RANKS, in this thread. */
static struct party *party_open(uintptr_t i)
{
	struct party *p = &party[i];
	CHECK_IS(tern_worker_open(local[i % RANKS], &p->t), 0);
	p->number = tern_worker_id(p->t);
	p->thread = pthread_self();
	tern_attach(p->t);
	return p;
}

static void ask_round(struct party *p, uint64_t i)
{
	for (uint64_t to = 0; to < NUMBERS; to++)
		CHECK_IS(tern_request(p->t, party[to].number, ASK, (uint64_t)(p - party), to, i),
			 0);
}

static void data_round(struct party *p, uint64_t i)
{
	static _Thread_local unsigned char data[TERN_REQUEST_MAX];
	size_t len = (i + 1) * 797 % (i % 4 ? TERN_PAYLOAD_MAX : TERN_REQUEST_MAX) + 1;
	for (size_t k = 0; k < len; k++)
		data[k] = byte_of(len, k);
	for (uint64_t to = 0; to < NUMBERS; to++) {
		void *claimed = NULL;
		if (i % 2) {
			CHECK_IS(tern_request_data(p->t, party[to].number, DATA, data, len,
						   (uint64_t)(p - party), to, len),
				 0);
			continue;
		}
		REQUIRE(tern_claim(p->t, party[to].number, len, &claimed) == 0);
		memcpy(claimed, data, len);
		CHECK_IS(tern_commit(p->t, claimed, DATA, (uint64_t)(p - party), to, len), 0);
	}
}

static void (*round_of)(struct party *p, uint64_t i);

static void party_rounds(struct party *p)
{
	for (uint64_t i = 0; i < rounds; i++) {
		round_of(p, i);
		if (i % 16 == 15)
			CHECK_IS(tern_wait(p->t, &p->answered, 16 * NUMBERS), 0);
	}
	CHECK_IS(tern_wait(p->t, &p->answered, rounds % 16 * NUMBERS), 0);
}

static void *party_main(void *arg)
{
	struct party *p = party_open((uintptr_t)arg);
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < THREADS)
		CHECK(tern_poll(p->t) >= 0);
	party_rounds(p);
	atomic_fetch_add(&done, 1);
	CHECK_IS(tern_wait(p->t, &p->stop, 1), 0); /* the others may still ask */
	CHECK_IS(tern_close(p->t), 0);
	return NULL;
}

/* This thread plays both ranks; there are more threads than cores. */
static void all_ask_all(void (*fn)(struct party *p, uint64_t i))
{
	pthread_t thread[THREADS];
	round_of = fn;
	open_ranks();
	for (uintptr_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, party_main, (void *)(i + RANKS)) == 0);
	while (atomic_load(&ready) < THREADS)
		CHECK(tern_poll(local[0]) >= 0);
	for (uint32_t r = 0; r < RANKS; r++)
		party_rounds(&party[r]);
	while (atomic_load(&done) < THREADS)
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK(tern_poll(local[r]) >= 0);
	for (int i = 0; i < THREADS; i++) {
		CHECK_IS(tern_request(local[i % RANKS], party[RANKS + i].number, STOP), 0);
		pthread_join(thread[i], NULL);
	}
	for (int i = 0; i < NUMBERS; i++)
		CHECK(!party[i].wrong);
	local_close();
}

TEST(ranks_and_workers_ask_each_other_in_order_and_the_threads_that_they_name_answer)
{
	rounds = check_scaled(2000);
	all_ask_all(ask_round);
	for (int i = 0; i < NUMBERS; i++)
		for (int k = 0; k < NUMBERS; k++) {
			CHECK_IS(party[i].asked[k], rounds);
			CHECK_IS(party[i].told[k], rounds);
		}
}

TEST(payloads_to_workers_travel_there_and_back)
{
	rounds = check_scaled(200);
	all_ask_all(data_round);
}

static void *sleep_and_answer(void *arg)
{
	struct party *p = party_open((uintptr_t)arg);
	atomic_store(&ready, 1);
	CHECK_IS(tern_wait(p->t, &p->stop, 1), 0);
	CHECK_IS(tern_close(p->t), 0);
	return NULL;
}

TEST(a_worker_that_sleeps_is_woken_by_a_request)
{
	pthread_t thread;
	open_ranks();
	REQUIRE(pthread_create(&thread, NULL, sleep_and_answer, (void *)RANKS) == 0);
	while (!atomic_load(&ready))
		world_nap(100000);
	for (uint64_t i = 0; i < 4; i++) {
		world_nap(5000000);
		CHECK_IS(tern_request(local[1], party[RANKS].number, ASK, 1, RANKS, i), 0);
		CHECK_IS(tern_wait(local[1], &party[1].answered, 1), 0);
	}
	CHECK_IS(tern_request(local[1], party[RANKS].number, STOP), 0);
	pthread_join(thread, NULL);
	CHECK(!party[RANKS].wrong && !party[1].wrong);
	local_close();
}

TEST(a_wait_of_a_rank_serves_the_workers_that_its_thread_has)
{
	open_ranks();
	struct party *p = party_open(RANKS);
	for (uint32_t r = 0; r < RANKS; r++) {
		CHECK_IS(tern_request(local[r], p->number, ASK, r, RANKS, 0), 0);
		CHECK_IS(tern_wait(local[r], &party[r].answered, 1), 0);
		CHECK(!party[r].wrong);
	}
	CHECK(!p->wrong);
	CHECK_IS(tern_close(p->t), 0);
	local_close();
}

TEST(numbers_that_name_nobody_are_refused_and_calls_that_take_a_rank_take_no_worker)
{
	void *claimed;
	open_ranks();
	CHECK_IS(tern_worker_id(NULL), TERN_RANK_NONE);
	struct party *p = party_open(RANKS);
	uint32_t none[] = { RANKS, 1000, 1u << 31 | 5, UINT32_MAX };
	for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
		CHECK_IS(tern_request(local[0], none[i], ASK, 0), -ERANGE);
		CHECK_IS(tern_request(p->t, none[i], ASK, 0, 0), -ERANGE);
		CHECK_IS(tern_claim(local[0], none[i], 8, &claimed), -ERANGE);
	}
	CHECK(sentence_has(tern_request(local[0], none[2], ASK, 0), "this job has ranks 0 to 1"));
	CHECK_IS(tern_post(local[0], p->number, ASK, 0), -ERANGE);
	CHECK_IS(tern_reply_to(local[0], p->number, TELL, 0), -ERANGE);
	int rc = tern_request(local[0], p->number, MARK);
	CHECK_IS(rc, -ENXIO);
	CHECK(sentence_has(rc, "of rank 0 was named"));
	CHECK_IS(tern_close(p->t), 0);
	local_close();
}

TEST(who_names_a_worker_that_is_closed_is_told_also_when_its_place_is_taken_again)
{
	void *claimed = NULL;
	open_ranks();
	struct party *p = party_open(RANKS);
	uint32_t before = p->number;
	REQUIRE(tern_claim(local[1], before, 8, &claimed) == 0);
	CHECK_IS(tern_request(local[1], before, ASK, 1, RANKS, 0), 0);
	CHECK_IS(tern_wait(local[1], &party[1].answered, 1), 0);
	CHECK_IS(tern_close(p->t), 0);
	for (int again = 0; again < 2; again++) {
		int rc = tern_request(local[1], before, ASK, 1, RANKS, 1);
		CHECK_IS(rc, -ESHUTDOWN);
		CHECK(sentence_has(rc, "of rank 0 was named, which is closed"));
		CHECK_IS(tern_request_data(local[1], before, DATA, "x", 1), -ESHUTDOWN);
		CHECK_IS(tern_commit(local[1], claimed, DATA), -ESHUTDOWN);
		if (!again)
			party_open(RANKS);
	}
	CHECK(p->number != before && p->number % JOB_SEATS_MAX == before % JOB_SEATS_MAX);
	CHECK_IS(tern_abandon(local[1], claimed), 0);
	CHECK_IS(tern_request(local[1], p->number, ASK, 1, RANKS, 1), 0);
	CHECK_IS(tern_wait(local[1], &party[1].answered, 1), 0);
	CHECK(!p->wrong);
	CHECK_IS(tern_close(p->t), 0);
	local_close();
}

/* It does not serve: whoever sends finds the ring full and serves only itself. */
static void *close_late(void *arg)
{
	struct party *p = party_open((uintptr_t)arg);
	atomic_store(&ready, 1);
	while (!atomic_load(&done))
		world_nap(100000);
	world_nap(5000000);
	CHECK_IS(tern_close(p->t), 0);
	return NULL;
}

static void sender_is_told(bool payload)
{
	pthread_t thread;
	int rc = 0;
	open_ranks();
	REQUIRE(pthread_create(&thread, NULL, close_late, (void *)RANKS) == 0);
	while (!atomic_load(&ready))
		world_nap(100000);
	uint32_t to = party[RANKS].number;
	tern_hold(local[1]);
	while (!rc)
		rc = payload ? tern_request_data(local[1], to, DATA, "x", 1, 1, RANKS, 1)
			     : tern_request(local[1], to, ASK, 1, RANKS, 0);
	tern_release(local[1]);
	CHECK_IS(rc, -EAGAIN);
	atomic_store(&done, 1);
	do
		rc = payload ? tern_request_data(local[1], to, DATA, "x", 1, 1, RANKS, 1)
			     : tern_request(local[1], to, ASK, 1, RANKS, 0);
	while (!rc);
	CHECK_IS(rc, -ESHUTDOWN);
	pthread_join(thread, NULL);
	local_close();
}

TEST(a_sender_that_waits_for_room_is_told_that_the_worker_closes)
{
	sender_is_told(false);
}

TEST(a_sender_that_waits_for_a_block_is_told_that_the_worker_closes)
{
	sender_is_told(true);
}

static void claims_are_free(tern *t, uint32_t dst)
{
	void *claimed[TERN_POOL_BLOCKS];
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		REQUIRE(tern_claim(t, dst, 8, &claimed[i]) == 0);
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_abandon(t, claimed[i]), 0);
}

/*
 * The sender takes no reply in, so the worker's gate closes, and the last requests stay where they
 * lie.
 */
TEST(what_a_closed_worker_has_not_handled_is_dropped_and_gives_its_blocks_back)
{
	local_polled();
	open_ranks();
	struct party *p = party_open(RANKS);
	uint64_t sent = 0;
	tern_hold(local[1]);
	while (p->asked[1] == sent) {
		CHECK_IS(tern_request(local[1], p->number, ASK, 1, RANKS, sent++), 0);
		CHECK(tern_poll(p->t) >= 0);
	}
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[1], p->number, DATA, "x", 1, 1, RANKS, 1), 0);
	CHECK_IS(tern_request_data(local[1], p->number, DATA, "x", 1, 1, RANKS, 1), -EAGAIN);
	CHECK_IS(tern_poll(p->t), 0);
	CHECK_IS(tern_close(p->t), 0);
	claims_are_free(local[1], 0);
	tern_release(local[1]);
	local_settle();
	CHECK_IS(p->asked[1], sent - 1);
	CHECK(!p->wrong);
	local_close();
}

static void *close_now(void *arg)
{
	CHECK_IS(tern_close(arg), 0);
	atomic_store(&done, 1);
	return NULL;
}

TEST(a_close_waits_for_whoever_is_just_writing_a_request)
{
	pthread_t thread;
	open_ranks();
	struct party *p = party_open(RANKS);
	struct job *j = &local[0]->own->group->job;
	atomic_store(job_sending(j, 1), p->t->own->site.member);
	attach_release(p->t->own);
	REQUIRE(pthread_create(&thread, NULL, close_now, p->t) == 0);
	world_nap(20000000);
	CHECK(!atomic_load(&done));
	atomic_store(job_sending(j, 1), 0);
	pthread_join(thread, NULL);
	local_close();
}

/* The word is the number that the sender used: no other worker may be asked so. */
static _Atomic uint32_t named;
static _Atomic unsigned marked, misled;

static void on_mark(tern *t, const tern_msg *m)
{
	atomic_fetch_add(tern_msg_word(m, 0) == tern_worker_id(t) ? &marked : &misled, 1);
}

static void *mark_whoever_is_named(void *arg)
{
	tern *t = arg;
	while (!atomic_load(&done)) {
		uint32_t to = atomic_load(&named);
		int rc = !to ? 0 : tern_request_data(t, to, MARK, "x", 1, to);
		CHECK(rc == 0 || rc == -ESHUTDOWN);
	}
	claims_are_free(t, 0);
	CHECK_IS(tern_close(t), 0);
	return NULL;
}

/* Two senders write while workers come and go in one seat. */
TEST(no_request_reaches_the_next_worker_of_a_seat)
{
	pthread_t thread[RANKS];
	tern *sender[RANKS], *t = NULL;
	setenv("TERN_WORKERS", "3", 1);
	open_ranks();
	local_on(MARK, on_mark);
	for (int i = 0; i < RANKS; i++) {
		CHECK_IS(tern_worker_open(local[i], &sender[i]), 0);
		REQUIRE(pthread_create(&thread[i], NULL, mark_whoever_is_named, sender[i]) == 0);
	}
	for (unsigned i = 0; i < check_scaled(1000); i++) {
		unsigned before = marked;
		REQUIRE(tern_worker_open(local[0], &t) == 0);
		atomic_store(&named, tern_worker_id(t));
		while (marked == before) {
			CHECK(tern_poll(t) >= 0);
			sched_yield();
		}
		CHECK_IS(tern_close(t), 0);
	}
	atomic_store(&done, 1);
	for (int i = 0; i < RANKS; i++)
		pthread_join(thread[i], NULL);
	CHECK_IS(misled, 0);
	local_close();
}

static struct job *job_here_is(void)
{
	return &local[0]->own->group->job;
}

TEST(a_worker_of_a_rank_that_dies_is_named_with_its_rank_and_gives_blocks_back)
{
	local_polled();
	open_ranks();
	struct party *p = party_open(RANKS + 1); /* of rank 1 */
	attach_release(p->t->own);               /* no wait of this thread serves it */
	for (int i = 0; i < TERN_POOL_BLOCKS; i++)
		CHECK_IS(tern_request_data(local[0], p->number, DATA, "x", 1, 0, 3, 1), 0);
	job_rank_ended(job_here_is(), 1, SIGKILL);
	int rc = tern_request(local[0], p->number, ASK, 0, 3, 0);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK_IS(tern_wait(local[0], &party[0].answered, 1), -EOWNERDEAD);
	CHECK_IS(tern_request_data(local[0], p->number, DATA, "x", 1), -EOWNERDEAD);
	struct party *own = party_open(RANKS);
	claims_are_free(local[0], own->number);
	claims_are_free(own->t, own->number);
}

TEST(a_worker_that_waits_for_a_worker_of_a_rank_that_dies_is_told)
{
	local_polled();
	open_ranks();
	struct party *p = party_open(RANKS), *q = party_open(RANKS + 1);
	attach_release(q->t->own);
	CHECK_IS(tern_request(p->t, q->number, ASK, RANKS, RANKS + 1, 0), 0);
	job_rank_ended(job_here_is(), 1, SIGKILL);
	CHECK_IS(tern_wait(p->t, &p->answered, 2), -EOWNERDEAD);
	CHECK_IS(tern_request(p->t, q->number, ASK, RANKS, RANKS + 1, 1), -EOWNERDEAD);
}
