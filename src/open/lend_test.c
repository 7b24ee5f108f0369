/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints that are lent: by tern_detach(), and by a rank's thread that rests in a wait. */
#include <errno.h>

#include "lib/chance.h"
#include "lib/local.h"

enum { ASK = 2, TELL, LATER, STOP, RANKS = 2, THREADS = 3 };

/* Plain: whoever serves the rank has it alone, and sees what the one before it has written. */
static uint64_t handled[RANKS], deferred[RANKS];
static pthread_t owner;
static _Atomic uint64_t by_others, deferred_by_others;
static _Atomic bool finish;
static tern_flag stopped;
static tern_flag told[THREADS + 1];

static void on_ask(tern *t, const tern_msg *m)
{
	handled[tern_rank(t)]++;
	by_others += !pthread_equal(pthread_self(), owner);
	CHECK_IS(tern_reply(t, m, TELL, tern_msg_word(m, 0)), 0);
}

static void on_tell(tern *t, const tern_msg *m)
{
	tern_signal(t, &told[tern_msg_word(m, 0)], 1);
}

static void later(tern *t, void *arg)
{
	(void)arg;
	deferred[tern_rank(t)]++;
	deferred_by_others += !pthread_equal(pthread_self(), owner);
}

static void on_later(tern *t, const tern_msg *m)
{
	(void)m;
	int rc = tern_defer(t, later, NULL);
	CHECK(rc == 0 || rc == -EAGAIN);
}

static void on_stop(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &stopped, 1);
}

static void open_ranks(void)
{
	local_polled();
	local_open(RANKS);
	local_on(ASK, on_ask);
	local_on(TELL, on_tell);
	local_on(LATER, on_later);
	local_on(STOP, on_stop);
	owner = pthread_self();
}

static void *ask_some(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	tern *w;
	CHECK_IS(tern_worker_open(local[0], &w), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_IS(tern_request(w, 0, ASK, me), 0);
		CHECK_IS(tern_wait(w, &told[me], 1), 0);
	}
	CHECK_IS(tern_close(w), 0);
	return NULL;
}

static void join_some(void *(*fn)(void *))
{
	pthread_t thread[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, fn, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* No thread of the rank is in Tern but its workers. */
TEST(workers_that_wait_serve_the_rank_that_its_thread_has_lent)
{
	open_ranks();
	CHECK_IS(tern_detach(local[0]), 0);
	join_some(ask_some);
	tern_attach(local[0]);
	CHECK_IS(handled[0], 100 * THREADS);
	CHECK_IS(by_others, 100 * THREADS);
	CHECK_IS(tern_request(local[0], 0, ASK, 0), 0);
	CHECK_IS(tern_wait(local[0], &told[0], 1), 0);
	CHECK_IS(by_others, 100 * THREADS);
	local_close();
}

TEST(a_call_takes_back_what_was_lent)
{
	open_ranks();
	CHECK_IS(tern_detach(local[0]), 0);
	CHECK_IS(tern_request(local[0], 0, ASK, 0), 0);
	CHECK_IS(tern_wait(local[0], &told[0], 1), 0);
	CHECK_IS(tern_detach(local[0]), 0);
	tern_hold(local[0]);
	CHECK_IS(tern_detach(local[0]), -EDEADLK);
	tern_release(local[0]);
	CHECK_IS(tern_detach(local[0]), 0);
	CHECK_IS(tern_detach(local[0]), 0);
	CHECK(tern_poll(local[0]) >= 0);
	CHECK_IS(tern_detach(local[0]), 0);
	local_close();
}

static void *ask_lent_rank(void *arg)
{
	(void)arg;
	CHECK_IS(tern_request(local[1], 0, ASK, 0), 0);
	CHECK_IS(tern_wait(local[1], &told[0], 1), 0);
	return NULL;
}

TEST(a_thread_that_waits_in_another_rank_of_the_process_serves_one_that_is_lent)
{
	pthread_t thread;
	open_ranks();
	CHECK_IS(tern_detach(local[0]), 0);
	REQUIRE(pthread_create(&thread, NULL, ask_lent_rank, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK_IS(by_others, 1);
	tern_attach(local[1]);
	local_close();
}

static void *lend_worker(void *arg)
{
	tern **w = arg;
	CHECK_IS(tern_worker_open(local[0], w), 0);
	CHECK_IS(tern_request(*w, 1, ASK, THREADS), 0);
	CHECK_IS(tern_detach(*w), 0);
	return NULL;
}

TEST(a_worker_that_is_lent_gets_its_replies_from_the_wait_of_another_thread)
{
	pthread_t thread;
	tern *w;
	open_ranks();
	REQUIRE(pthread_create(&thread, NULL, lend_worker, &w) == 0);
	pthread_join(thread, NULL);
	CHECK_IS(tern_wait(local[0], &told[THREADS], 1), 0);
	CHECK_IS(tern_close(w), 0);
	local_close();
}

/* Sleeps first, so that the thread of the rank rests when the request comes. */
static void *ask_until_served_here(void *arg)
{
	tern *w;
	(void)arg;
	CHECK_IS(tern_worker_open(local[0], &w), 0);
	for (int i = 0; i < 2000 && !atomic_load(&by_others); i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		CHECK_IS(tern_request(w, 0, LATER), 0);
		CHECK_IS(tern_request(w, 0, ASK, 0), 0);
		CHECK_IS(tern_wait(w, &told[0], 1), 0);
	}
	CHECK_IS(tern_request(w, 0, STOP), 0);
	CHECK_IS(tern_close(w), 0);
	return NULL;
}

TEST(a_worker_that_waits_serves_its_rank_while_the_ranks_thread_rests_in_a_wait)
{
	pthread_t thread;
	open_ranks();
	REQUIRE(pthread_create(&thread, NULL, ask_until_served_here, NULL) == 0);
	CHECK_IS(tern_wait(local[0], &stopped, 1), 0);
	pthread_join(thread, NULL);
	CHECK(by_others);
	CHECK(tern_poll(local[0]) >= 0);
	CHECK_IS(deferred[0], handled[0]);
	CHECK_IS(deferred_by_others, 0); /* the rank's own thread was about to go on */
	local_close();
}

static _Atomic uint64_t stopped_by_others;

static void on_stop_later(tern *t, const tern_msg *m)
{
	stopped_by_others += !pthread_equal(pthread_self(), owner);
	atomic_store(&finish, tern_msg_word(m, 0) != 0);
	on_later(t, m);
	on_stop(t, m);
}

/* Sleeps first, as above. */
static void *stop_until_served_here(void *arg)
{
	tern *w;
	CHECK_IS(tern_worker_open(local[0], &w), 0);
	for (int i = 0; i < 2000 && atomic_load(&stopped_by_others) < 3; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
		CHECK_IS(tern_request(w, 0, STOP, 0), 0);
		CHECK_IS(tern_request(w, 0, ASK, 0), 0);
		CHECK_IS(tern_wait(w, &told[0], 1), 0);
	}
	CHECK_IS(tern_request(w, 0, STOP, 1), 0);
	CHECK_IS(tern_close(w), 0);
	return arg;
}

TEST(what_a_handler_defers_has_run_when_the_wait_ends_that_it_ends_whoever_served_it)
{
	pthread_t thread;
	open_ranks();
	local_on(STOP, on_stop_later);
	deferred[0] = 0;
	REQUIRE(pthread_create(&thread, NULL, stop_until_served_here, NULL) == 0);
	for (uint64_t n = 1; !atomic_load(&finish); n++) {
		CHECK_IS(tern_wait(local[0], &stopped, 1), 0);
		CHECK(deferred[0] >= n);
	}
	pthread_join(thread, NULL);
	CHECK(stopped_by_others);
	local_close();
	atomic_store(&finish, false);
}

static void on_detach(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(tern_detach(t), -EPERM);
	tern_signal(t, &stopped, 1);
}

static void detach_later(tern *t, void *arg)
{
	(void)arg;
	CHECK_IS(tern_detach(t), -EPERM);
	tern_signal(t, &stopped, 1);
}

TEST(an_endpoint_is_not_lent_in_a_handler_nor_in_what_it_defers)
{
	open_ranks();
	local_on(ASK, on_detach);
	CHECK_IS(tern_request(local[0], 0, ASK), 0);
	CHECK_IS(tern_wait(local[0], &stopped, 1), 0);
	CHECK_IS(tern_defer(local[0], detach_later, NULL), 0);
	CHECK_IS(tern_wait(local[0], &stopped, 1), 0);
	local_close();
}

static uint64_t seed, rounds, asked_here;

/* A worker: asks both ranks, in groups of any length. */
static void *hammer(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	struct chance c = { chance_of(seed, me) };
	tern *w;
	CHECK_IS(tern_worker_open(local[0], &w), 0);
	for (uint64_t left = rounds; left;) {
		uint64_t n = 1 + chance_below(&c, 20);
		n = n < left ? n : left;
		left -= n;
		for (uint64_t i = 0; i < n; i++)
			CHECK_IS(tern_request(w, (uint32_t)chance_below(&c, RANKS), ASK, me), 0);
		if (chance_below(&c, 4) == 0)
			CHECK_IS(tern_request(w, 0, LATER), 0);
		CHECK_IS(tern_wait(w, &told[me], n), 0);
	}
	CHECK_IS(tern_request(w, 0, STOP), 0);
	CHECK_IS(tern_close(w), 0);
	return NULL;
}

static void *serve_other(void *arg)
{
	(void)arg;
	while (!atomic_load(&finish))
		CHECK(tern_poll(local[1]) >= 0);
	return NULL;
}

static int all_stopped(tern *t, void *arg)
{
	(void)t, (void)arg;
	return atomic_load(&stopped) >= THREADS;
}

/* The thread of the rank: sends, waits, polls, holds, lends and computes, by chance. */
static void act(struct chance *c)
{
	tern *t = local[0];
	switch (chance_below(c, 5)) {
	case 0:
		CHECK_IS(tern_detach(t), 0);
		for (uint64_t i = chance_below(c, 20000); i; i--)
			__asm__ volatile("");
		if (chance_below(c, 2))
			tern_attach(t);
		break;
	case 1:
		asked_here++;
		CHECK_IS(tern_request(t, 0, ASK, THREADS), 0);
		CHECK_IS(tern_wait(t, &told[THREADS], 1), 0);
		break;
	case 2: {
		int rc = tern_wait_until_for(t, all_stopped, NULL, chance_below(c, 4000000));
		CHECK(rc == 0 || rc == -ETIMEDOUT);
		break;
	}
	case 3:
		tern_hold(t);
		handled[0] += 2;
		handled[0] -= 2;
		tern_release(t);
		break;
	default:
		CHECK(tern_poll(t) >= 0);
	}
}

TEST(a_rank_that_is_lent_and_taken_back_by_chance_is_always_in_one_hand)
{
	pthread_t thread[THREADS], other;
	struct chance c = { seed = check_seed() };
	rounds = check_scaled(20000);
	open_ranks();
	for (uintptr_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, hammer, (void *)i) == 0);
	REQUIRE(pthread_create(&other, NULL, serve_other, NULL) == 0);
	while (!all_stopped(local[0], NULL))
		act(&c);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&finish, true);
	pthread_join(other, NULL);
	tern_attach(local[1]);
	CHECK_IS(handled[0] + handled[1], THREADS * rounds + asked_here);
	local_close();
}
