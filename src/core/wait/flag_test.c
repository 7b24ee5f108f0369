/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits with a limit, and waits for conditions of the program's. */
#include <errno.h>
#include <pthread.h>
#include <tern/send.h>

#include "base/clock.h"
#include "base/world.h"
#include "lib/threads.h"

enum { ASK, WAITER };

#define MS UINT64_C(1000000)

static tern_flag flag;

static void signal_flag(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &flag, 1);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, signal_flag);
	atomic_store(&flag, 0);
}

TEST(a_wait_with_a_limit_ends_at_the_limit_and_leaves_the_flag)
{
	ranks_open(2);
	CHECK_IS(tern_request(local[1], 0, ASK), 0);
	uint64_t began = clock_ns();
	CHECK_IS(tern_wait_for(local[0], &flag, 2, 20 * MS), -ETIMEDOUT);
	CHECK(clock_ns() - began >= 20 * MS);
	CHECK(sentence_has(-ETIMEDOUT, "tern_wait_for()") && sentence_has(-ETIMEDOUT, "20000000"));
	CHECK_IS(atomic_load(&flag), 1);
	CHECK_IS(tern_request(local[1], 0, ASK), 0);
	CHECK_IS(tern_wait_for(local[0], &flag, 2, UINT64_MAX), 0);
	CHECK_IS(atomic_load(&flag), 0);
	local_close();
}

/* Sleeps are cut to what is left: without that this one would take 100 ms. */
TEST(a_sleep_ends_with_the_limit)
{
	uint64_t shortest = UINT64_MAX;
	ranks_open(1);
	for (int i = 0; i < 5; i++) {
		uint64_t began = clock_ns();
		CHECK_IS(tern_wait_for(local[0], &flag, 1, 10 * MS), -ETIMEDOUT);
		uint64_t took = clock_ns() - began;
		shortest = took < shortest ? took : shortest;
	}
	CHECK(shortest >= 10 * MS);
	CHECK(shortest < 60 * MS);
	local_close();
}

TEST(a_wait_of_0_ns_serves_what_has_arrived_and_does_not_rest)
{
	local_polled();
	ranks_open(2);
	CHECK_IS(tern_wait_for(local[0], &flag, 1, 0), -ETIMEDOUT);
	CHECK_IS(tern_request(local[1], 0, ASK), 0);
	while (local_underway())
		CHECK_IS(tern_poll(local[1]), 0);
	int rc = -ETIMEDOUT;
	for (int i = 0; rc && i < 10000; i++)
		rc = tern_wait_for(local[0], &flag, 1, 0);
	CHECK_IS(rc, 0);
	CHECK_IS(atomic_load(&flag), 0);
	CHECK_IS(tern_wait_for(local[0], &flag, 0, 0), 0);
	local_close();
}

/* Where a rest takes exactly as long as it is to, and nothing else takes time. */
static uint64_t rested_until;
static unsigned rests;

static uint64_t rests_now(void)
{
	return rested_until;
}

static void rest_nap(uint64_t ns)
{
	rested_until += ns;
	rests++;
}

static void rest_yield(void)
{
	rest_nap(1000);
}

static void rest_sleep(const struct sleep *s, uint64_t ns)
{
	(void)s;
	rest_nap(ns);
}

TEST(a_limit_ends_a_wait_to_the_nanosecond)
{
	static struct world resting;
	resting = world_real;
	resting.ticks = false;
	resting.now = rests_now;
	resting.yield = rest_yield;
	resting.nap = rest_nap;
	resting.sleep = rest_sleep;
	rested_until = 1000 * MS;
	setenv("TERN_SPIN", "10", 1);
	local_polled();
	world_use(&resting);
	ranks_open(1);
	rests = 0;
	CHECK_IS(tern_wait_for(local[0], &flag, 1, 0), -ETIMEDOUT);
	CHECK_IS(rests, 0);
	for (uint64_t ns = 1000; ns < 1000 * MS; ns *= 3) {
		uint64_t began = rested_until;
		CHECK_IS(tern_wait_for(local[0], &flag, 1, ns), -ETIMEDOUT);
		CHECK(rested_until - began >= ns);
		if (ns > MS) /* it naps and sleeps: a yield takes what it takes */
			CHECK_IS(rested_until - began, ns);
	}
	local_close();
	world_use(&world_real);
	unsetenv("TERN_SPIN");
}

/* A limit also ends a wait that never rests, because messages for others keep coming. */
TEST(a_limit_ends_a_wait_that_has_much_to_serve)
{
	ranks_open(1);
	for (int i = 0; i < 100; i++)
		CHECK_IS(tern_request(local[0], 0, ASK), 0);
	CHECK_IS(tern_wait_for(local[0], &flag, 1000000, 1), -ETIMEDOUT);
	local_close();
}

TEST(a_wait_with_a_limit_is_refused_under_a_hold)
{
	ranks_open(1);
	tern_hold(local[0]);
	CHECK_IS(tern_wait_for(local[0], &flag, 1, MS), -EDEADLK);
	CHECK_IS(tern_wait_for(local[0], &flag, 1, 0), -EDEADLK);
	tern_release(local[0]);
	local_close();
}

/* -- Conditions ------------------------------------------------------------------------------ */

static _Atomic int word; /* plain memory, which no message tells of */
static unsigned looked;

static int word_is_set(tern *t, void *arg)
{
	CHECK(t == local[0]);
	looked++;
	return atomic_load(&word) == *(int *)arg;
}

static void *set_word_late(void *arg)
{
	nanosleep(&(struct timespec){ .tv_nsec = 30 * MS }, NULL);
	atomic_store(&word, 7);
	return arg;
}

TEST(a_wait_for_a_condition_sees_memory_that_another_thread_writes)
{
	pthread_t thread;
	int seven = 7, tries = 0;
	uint64_t began;
	ranks_open(2);
	do { /* on a busy machine it may not run for longer than that */
		atomic_store(&word, 0);
		REQUIRE(pthread_create(&thread, NULL, set_word_late, NULL) == 0);
		began = clock_ns();
		CHECK_IS(tern_wait_until(local[0], word_is_set, &seven), 0);
		began = clock_ns() - began;
		pthread_join(thread, NULL);
	} while (began >= 90 * MS && ++tries < 50);
	CHECK(tries < 50); /* it does not sleep for 100 ms */
	CHECK_IS(tern_wait_until(local[0], word_is_set, &seven), 0);
	local_close();
}

TEST(a_wait_for_a_condition_serves_messages)
{
	int one = 1;
	ranks_open(2);
	atomic_store(&word, 0);
	for (int i = 0; i < 10; i++)
		CHECK_IS(tern_request(local[1], 0, ASK), 0);
	CHECK_IS(tern_wait_until_for(local[0], word_is_set, &one, 20 * MS), -ETIMEDOUT);
	CHECK_IS(tern_wait(local[0], &flag, 10), 0);
	CHECK(sentence_has(-ETIMEDOUT, "tern_wait_until_for()"));
	looked = 0;
	CHECK_IS(tern_wait_until_for(local[0], word_is_set, &one, 0), -ETIMEDOUT);
	CHECK_IS(looked, 2); /* before it serves, and after */
	tern_hold(local[0]);
	CHECK_IS(tern_wait_until(local[0], word_is_set, &one), -EDEADLK);
	CHECK_IS(tern_wait_until_for(local[0], word_is_set, &one, 0), -EDEADLK);
	tern_release(local[0]);
	local_close();
}

/* -- Handles ----------------------------------------------------------------------------------- */

TEST(an_operation_outlives_the_limit_of_its_wait)
{
	static const char said[] = "late";
	char heard[sizeof said] = "";
	tern_op op = TERN_OP;
	tern_match match = { .rank = 1, .id = 5 };
	ranks_open(2);
	CHECK_IS(tern_recv_start(local[0], &match, heard, sizeof heard, NULL, &op), 0);
	CHECK_IS(tern_op_wait_for(local[0], &op, 0), -ETIMEDOUT);
	uint64_t began = clock_ns();
	CHECK_IS(tern_op_wait_for(local[0], &op, 5 * MS), -ETIMEDOUT);
	CHECK(clock_ns() - began >= 5 * MS);
	CHECK(sentence_has(-ETIMEDOUT, "tern_op_wait_for()"));
	CHECK_IS(op.pending, 1);
	CHECK_IS(tern_send(local[1], 0, 5, said, sizeof said), 0);
	CHECK_IS(tern_op_wait_for(local[0], &op, 10000 * MS), 0);
	CHECK(strcmp(heard, said) == 0);
	CHECK_IS(tern_op_wait_for(local[0], &op, 0), 0); /* nothing is pending any more */
	local_close();
}

/* -- Light threads ----------------------------------------------------------------------------- */

static struct ending late, soon;
static tern_flag never;

static uint64_t wait_a_little(tern *t, const uint64_t word_of[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	CHECK_IS(tern_wait_for(t, &never, 1, word_of[0]), -ETIMEDOUT);
	return word_of[0];
}

TEST(light_threads_have_limits_of_their_own)
{
	ranks_open(1);
	tern_attach(local[0]);
	threads_on(WAITER, wait_a_little);
	uint64_t began = clock_ns();
	CHECK_IS(tern_spawn(local[0], 0, WAITER, note_ending, &late, 30 * MS), 0);
	CHECK_IS(tern_spawn(local[0], 0, WAITER, note_ending, &soon, 5 * MS), 0);
	/* The program sleeps, as far as it may: the limits of the threads cut its sleep, too. */
	for (int tries = 0; tries < 100 && !(late.count && soon.count); tries++)
		CHECK_IS(tern_wait_for(local[0], &flag, 1, 60 * MS), -ETIMEDOUT);
	CHECK_IS(late.count, 1);
	CHECK_IS(late.result, 30 * MS);
	CHECK_IS(soon.count, 1);
	CHECK_IS(soon.result, 5 * MS);
	CHECK(clock_ns() - began >= 60 * MS);
	local_close();
}
