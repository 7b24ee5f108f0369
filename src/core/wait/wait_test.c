/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits, barriers, and what they say of ranks that have left. */
#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "core/wait.h"
#include "lib/handed.h"
#include "lib/local.h"

enum { ASK, TELL };

static _Atomic uint64_t flag;

static void signal_flag(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	tern_signal(t, &flag, tern_msg_count(m) ? tern_msg_word(m, 0) : 1);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, signal_flag);
	local_on(TELL, note_reply);
	for (uint32_t r = 0; r < n; r++) {
		CHECK_IS(tern_poll(local[r]), 0);
		local[r]->own->waiting.grace_ns = 100 * UINT64_C(1000000);
	}
}

/* -- The one wait that all others are made of ----------------------------------------------- */

static bool says(struct endpoint *e, void *over)
{
	(void)e;
	return *(bool *)over;
}

static int stop_now(struct endpoint *e, struct wait *w)
{
	(void)e, (void)w;
	return -ECANCELED;
}

static int stop_stalled(struct endpoint *e, struct wait *w)
{
	return wait_stalled(e, w, 7);
}

static int waits(bool over, int (*stop)(struct endpoint *e, struct wait *w))
{
	INSIDE struct scope scope = scope_open(local[0]);
	struct wait w = { .bounded = true, .call = "a test", .rule = "a test", .stop = stop };
	return wait_until(local[0]->own, says, &over, &w);
}

TEST(a_wait_that_is_over_never_fails)
{
	ranks_open(1);
	tern_hold(local[0]);
	CHECK_IS(waits(true, stop_now), 0);
	CHECK_IS(waits(false, NULL), -EDEADLK);
	tern_release(local[0]);
	local_close();
}

TEST(a_wait_ends_with_the_code_of_what_stops_it)
{
	ranks_open(1);
	CHECK_IS(waits(false, stop_now), -ECANCELED);
	local[0]->own->waiting.grace_ns = 2000000;
	uint64_t began = clock_ns();
	CHECK_IS(waits(false, stop_stalled), -ETIMEDOUT);
	CHECK(clock_ns() - began >= 2000000);
	local_close();
}

/* What the launcher does when a rank's process has ended, and its progress thread with it. */
static void rank_dies(uint32_t r, int status)
{
	CHECK_IS(tern_delivery_set(local[r], TERN_DELIVERY_POLL), 0);
	job_rank_ended(&local[0]->own->group->job, r, status);
}

TEST(a_wait_ends_when_the_flag_reaches_the_value_and_subtracts_it)
{
	ranks_open(2);
	for (int i = 0; i < 5; i++)
		CHECK_IS(tern_request(local[0], 1, ASK, 2), 0);
	CHECK_IS(tern_wait(local[1], &flag, 7), 0);
	CHECK_IS(atomic_load(&flag), 3);
	CHECK_IS(tern_wait(local[1], &flag, 3), 0);
	CHECK_IS(atomic_load(&flag), 0);
	CHECK_IS(tern_wait(local[1], &flag, 0), 0);
	CHECK_IS(atomic_load(&flag), 0);
	local_close();
}

TEST(a_wait_whose_flag_is_up_already_returns_at_once)
{
	ranks_open(1);
	tern_signal(local[0], &flag, 10);
	CHECK_IS(tern_wait(local[0], &flag, 4), 0);
	CHECK_IS(tern_wait(local[0], &flag, 6), 0);
	CHECK_IS(atomic_load(&flag), 0);
	local_close();
}

TEST(a_wait_serves_requests_and_replies)
{
	ranks_open(3);
	CHECK_IS(tern_request(local[2], 1, TELL, 5), 0);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_wait(local[1], &flag, 1), 0);
	local_settle();
	CHECK_IS(replies.count, 1);
	local_close();
}

TEST(a_wait_or_a_barrier_under_a_hold_is_refused)
{
	ranks_open(2);
	tern_hold(local[0]);
	CHECK_IS(tern_wait(local[0], &flag, 1), -EDEADLK);
	CHECK(sentence_has(-EDEADLK, "tern_wait()") && sentence_has(-EDEADLK, "release"));
	CHECK_IS(tern_barrier(local[0]), -EDEADLK);
	CHECK(sentence_has(-EDEADLK, "tern_barrier()"));
	tern_release(local[0]);
	CHECK_IS(tern_request(local[1], 0, ASK), 0);
	CHECK_IS(tern_wait(local[0], &flag, 1), 0);
	local_close();
}

/* -- The dead ------------------------------------------------------------------------- */

TEST(a_wait_blames_a_dead_rank_after_the_grace_time_and_not_before)
{
	ranks_open(3);
	rank_dies(2, SIGKILL);
	atomic_store(&flag, 1);
	uint64_t began = clock_ns();
	int rc = tern_wait(local[0], &flag, 2);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(sentence_has(rc, "rank 2") && sentence_has(rc, "signal 9"));
	CHECK(clock_ns() - began >= 100 * UINT64_C(1000000));
	CHECK_IS(atomic_load(&flag), 1); /* untouched */
	local_close();
}

TEST(a_wait_says_with_which_status_a_rank_ended)
{
	ranks_open(3);
	rank_dies(1, 3 << 8);
	int rc = tern_wait(local[0], &flag, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(sentence_has(rc, "rank 1") && sentence_has(rc, "status 3"));
	local_close();
}

TEST(a_wait_whose_messages_come_does_not_mind_the_dead)
{
	ranks_open(3);
	rank_dies(2, SIGKILL);
	for (int i = 0; i < 100; i++)
		CHECK_IS(tern_request(local[1], 0, ASK), 0);
	CHECK_IS(tern_wait(local[0], &flag, 100), 0);
	local_close();
}

static pthread_barrier_t handed_over;

static void *signal_late(void *arg)
{
	struct timespec late = { .tv_nsec = 300000000 };
	tern_attach(local[1]);
	pthread_barrier_wait(&handed_over);
	nanosleep(&late, NULL);
	CHECK_IS(tern_request(local[1], 0, ASK), 0);
	return arg;
}

static void check_wait_is_patient(void)
{
	pthread_t thread;
	pthread_barrier_init(&handed_over, NULL, 2);
	REQUIRE(pthread_create(&thread, NULL, signal_late, NULL) == 0);
	pthread_barrier_wait(&handed_over);
	CHECK_IS(tern_wait(local[0], &flag, 1), 0);
	pthread_join(thread, NULL);
	local_close();
}

TEST(a_forgiven_rank_is_not_blamed)
{
	ranks_open(3);
	rank_dies(2, SIGKILL);
	CHECK_IS(tern_forgive(local[0], 2), 0);
	check_wait_is_patient(); /* three times the grace time */
}

TEST(a_rank_that_left_well_is_not_blamed_for_a_slow_one)
{
	ranks_open(3);
	local_close_one(2);
	check_wait_is_patient();
}

TEST(a_send_to_a_dead_rank_fails_and_names_it)
{
	static const char *const names[] = { "", "rank 1", "rank 2", "rank 3" };
	ranks_open(4);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);    /* a shared line is open, */
	CHECK_IS(tern_request(local[0], 2, ASK, 1, 2), 0); /* none is, */
	for (uint32_t r = 1; r < 4; r++)                   /* and they have never talked */
		rank_dies(r, SIGKILL);
	tern_poll(local[0]);
	for (uint32_t r = 1; r < 4; r++) {
		int rc = tern_request(local[0], r, ASK, 1);
		CHECK_IS(rc, -EOWNERDEAD);
		CHECK(sentence_has(rc, names[r]));
		CHECK_IS(tern_request(local[0], r, ASK, 1, 2, 3), -EOWNERDEAD);
		CHECK_IS(tern_request_data(local[0], r, ASK, "x", 1), -EOWNERDEAD);
		CHECK(!handed_claim(local[0], r, 1));
		CHECK_IS(errno, EOWNERDEAD);
	}
	CHECK_IS(tern_request(local[0], 0, ASK, 1), 0);
	local_settle();
	local_close();
}

TEST(a_send_to_a_closed_rank_fails_and_names_it)
{
	ranks_open(3);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	void *claimed = handed_claim(local[0], 1, 10);
	REQUIRE(claimed != NULL);
	local_settle();
	local_close_one(1);
	tern_poll(local[0]);
	int rc = tern_request(local[0], 1, ASK, 1);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(sentence_has(rc, "rank 1"));
	CHECK_IS(tern_commit(local[0], claimed, ASK), -ESHUTDOWN);
	CHECK_IS(tern_abandon(local[0], claimed), 0);
	CHECK_IS(tern_request(local[0], 2, ASK, 1), 0);
	local_settle();
	CHECK_IS(requests.rank, 2);
	local_close();
}

static void *die_soon(void *arg)
{
	struct timespec soon = { .tv_nsec = 50000000 };
	nanosleep(&soon, NULL);
	rank_dies(1, SIGKILL);
	return arg;
}

static void *never_polls(void *arg)
{
	tern_attach(local[1]); /* so that nobody borrows it */
	CHECK_IS(tern_delivery_set(local[1], TERN_DELIVERY_POLL), 0);
	return arg;
}

static void *run_apart(void *(*fn)(void *))
{
	pthread_t thread;
	REQUIRE(pthread_create(&thread, NULL, fn, NULL) == 0);
	pthread_join(thread, NULL);
	return NULL;
}

TEST(a_send_that_waits_for_room_ends_when_its_receiver_dies)
{
	ranks_open(3);
	run_apart(never_polls);
	pthread_t thread;
	REQUIRE(pthread_create(&thread, NULL, die_soon, NULL) == 0);
	int rc = 0;
	while (!rc)
		rc = tern_request(local[0], 1, ASK, 1, 2);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK_IS(tern_request(local[0], 1, ASK, 1, 2), -EOWNERDEAD);
	CHECK_IS(tern_request(local[0], 1, ASK), -EOWNERDEAD);
	pthread_join(thread, NULL);
	CHECK_IS(tern_request(local[0], 2, ASK), 0);
	local_settle();
	tern_attach(local[1]);
	local_close();
}

TEST(payload_blocks_that_a_lost_rank_holds_come_back)
{
	for (int how = 0; how < 2; how++) {
		ranks_open(3);
		run_apart(never_polls);
		for (int i = 0; i < TERN_POOL_BLOCKS; i++)
			CHECK_IS(tern_request_data(local[0], 1, ASK, "x", 1), 0);
		if (how)
			rank_dies(1, SIGKILL);
		tern_attach(local[1]);
		local_close_one(1);
		for (int i = 0; i < 3 * TERN_POOL_BLOCKS; i++)
			CHECK_IS(tern_request_data(local[0], 2, ASK, "x", 1), 0);
		local_settle();
		local_close();
	}
}

/* -- Barriers -------------------------------------------------------------------------- */

TEST(a_barrier_of_one_passes)
{
	ranks_open(1);
	for (int i = 0; i < 10; i++)
		CHECK_IS(tern_barrier(local[0]), 0);
	local_close();
}

TEST(a_barrier_with_a_dead_rank_fails_and_names_it_every_time)
{
	ranks_open(4);
	rank_dies(3, SIGKILL);
	for (int round = 0; round < 4; round++)
		for (uint32_t r = 0; r < 3; r++) {
			int rc = tern_barrier(local[r]);
			CHECK_IS(rc, -EOWNERDEAD);
			CHECK(sentence_has(rc, "rank 3"));
		}
	local_close();
}

TEST(a_barrier_with_a_closed_rank_fails_every_time)
{
	ranks_open(3);
	local_close_one(1);
	for (int round = 0; round < 3; round++)
		for (uint32_t r = 0; r < 3; r += 2)
			CHECK_IS(tern_barrier(local[r]), -ESHUTDOWN);
	local_close();
}

enum { RANKS = 5, ROUNDS = 2000 };
static _Atomic unsigned arrived[RANKS];
static _Atomic unsigned handled[RANKS];

static void count_handled(tern *t, const tern_msg *m)
{
	(void)m;
	atomic_fetch_add(&handled[tern_rank(t)], 1);
}

static void *barrier_rounds(void *arg)
{
	tern *t = arg;
	uint32_t me = tern_rank(t);
	for (unsigned round = 1; round <= check_scaled(ROUNDS); round++) {
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK_IS(tern_request(t, r, ASK, round),
				 0); /* messages arrive while it waits */
		atomic_store(&arrived[me], round);
		CHECK_IS(tern_barrier(t), 0);
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK(atomic_load(&arrived[r]) >= round);
		CHECK(atomic_load(&handled[me]) >=
		      RANKS * round); /* all that was sent before is handled */
		CHECK_IS(tern_barrier(t), 0);
	}
	return NULL;
}

TEST(a_barrier_keeps_everybody_until_all_have_come_and_serves_what_was_sent_before)
{
	pthread_t thread[RANKS];
	local_open(RANKS);
	local_on(ASK, count_handled);
	for (int r = 0; r < RANKS; r++)
		REQUIRE(pthread_create(&thread[r], NULL, barrier_rounds, local[r]) == 0);
	for (int r = 0; r < RANKS; r++)
		pthread_join(thread[r], NULL);
	local_close();
}

static void reply_and_signal(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL, 1, 2), 0);
	tern_signal(t, &flag, 1);
}

TEST(a_wait_behind_a_full_reply_ring_serves_the_sibling_that_must_empty_it)
{
	enum { MANY = 500 }; /* more replies than their ring holds */
	local_open(2);
	local_on(ASK, reply_and_signal);
	local_on(TELL, note_reply);
	flag = 0;
	for (int i = 0; i < MANY; i++)
		CHECK_IS(tern_request(local[1], 0, ASK, 1, 2), 0);
	CHECK_IS(tern_wait(local[0], &flag, MANY), 0);
	local_close();
}

static void *close_without_a_look(void *arg)
{
	tern *t = arg;
	tern_attach(t);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	CHECK_IS(tern_close(t), 0);
	return NULL;
}

TEST(a_send_without_room_ends_when_a_rank_closes_that_never_looked)
{
	pthread_t thread;
	int rc = 0;
	local_open(2);
	local_on(ASK, signal_flag);
	REQUIRE(pthread_create(&thread, NULL, close_without_a_look, local[1]) == 0);
	while (!rc)
		rc = tern_request(local[0], 1, ASK, 1, 2);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	pthread_join(thread, NULL);
	CHECK_IS(tern_close(local[0]), 0);
}

/* It looks for those that have left before it looks for messages, however often it does that. */
TEST(a_send_without_room_finds_at_once_that_its_receiver_has_closed)
{
	local_polled();
	local_open(2);
	local_on(ASK, signal_flag);
	struct endpoint *e = local[0]->own;
	e->waiting.spin = 10000;
	tern_hold(local[0]);
	while (tern_request(local[0], 1, ASK, 1, 2) == 0)
		;
	job_rank_leaves(&e->group->job, 1, RANK_CLOSED);
	tern_release(local[0]);
	CHECK_IS(tern_request(local[0], 1, ASK, 1, 2), -ESHUTDOWN);
	CHECK_IS(atomic_load(&e->pulse->count[PULSE_WAITS]), 0);
	CHECK_IS(tern_close(local[0]), 0);
}

/* -- Yields ------------------------------------------------------------------------------------ */

static uint64_t fake_time, yield_takes;

static uint64_t fake_now(void)
{
	return fake_time;
}

static void fake_yield(void)
{
	fake_time += yield_takes;
}

TEST(who_got_its_core_back_late_does_not_yield_for_a_while)
{
	static struct world crowded;
	local_polled();
	ranks_open(1);
	struct endpoint *e = local[0]->own;
	const struct world *before = e->world;
	crowded = *before;
	crowded.now = fake_now;
	crowded.yield = fake_yield;
	e->world = &crowded;
	yield_takes = 1000;
	CHECK(wait_yield(e) && wait_yield(e));
	yield_takes = 100000000;
	CHECK(wait_yield(e) && wait_yield(e) && !wait_yield(e)); /* one alone may be a rank's */
	fake_time += 1000 * yield_takes;
	yield_takes = 1000;
	CHECK(wait_yield(e));
	yield_takes = 100000000;
	CHECK(wait_yield(e) && wait_yield(e) && !wait_yield(e));
	fake_time += 1000 * yield_takes;
	CHECK(wait_yield(e));
	e->world = before;
	local_close();
}
