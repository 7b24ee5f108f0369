/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that wants to hear of ranks that are lost does, once of each, where it may act on it.
 */
#include <errno.h>

#include "core/layers.h"
#include "lib/local.h"

enum { ASK };
enum { RANKS = 4 };

static _Atomic uint64_t flag;
static _Atomic unsigned told[RANKS]; /* by rank 0 */
static int fate[RANKS];
static int argument;

static void note(tern *t, uint32_t rank, int why, void *arg)
{
	CHECK_IS(tern_rank(t), 0);
	CHECK(arg == &argument);
	told[rank]++;
	fate[rank] = why;
}

static void signal_flag(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &flag, 1);
}

/* Functions that are deferred run where handlers do, so the test polls before it looks. */
static void ranks_open(void)
{
	local_polled();
	local_open(RANKS);
	local_on(ASK, signal_flag);
	CHECK_IS(tern_poll(local[0]), 0);
	local[0]->own->waiting.grace_ns = 100 * UINT64_C(1000000);
}

static void rank_dies(uint32_t r)
{
	job_rank_ended(&local[0]->own->group->job, r, SIGKILL);
}

/* As long as it takes a poll to miss a rank that it never talked with. */
static void polls(void)
{
	for (int i = 0; i < 1 << 16; i++)
		CHECK(tern_poll(local[0]) >= 0);
}

TEST(layers_hear_of_a_rank_when_what_it_had_sent_is_handled)
{
	ranks_open();
	struct endpoint *e = local[0]->own;
	tern_hold(local[0]);
	CHECK_IS(tern_request(local[1], 0, ASK), 0);
	rank_dies(1);
	lost_find(e);
	CHECK(e->site.peer[1].lost);
	layers_progress(e);
	CHECK(!layer_lost(e, 1));
	tern_release(local[0]);
	polls();
	CHECK_IS(atomic_exchange(&flag, 0), 1);
	CHECK(layer_lost(e, 1));
	local_close();
}

TEST(what_a_rank_wrote_before_it_died_is_handled_though_no_bell_was_rung)
{
	ranks_open();
	CHECK_IS(tern_request(local[1], 0, ASK), 0);
	rank_dies(1);
	atomic_store(job_bell(&local[0]->own->group->job, 0), BELL_QUIET);
	lost_find(local[0]->own);
	polls();
	CHECK_IS(atomic_exchange(&flag, 0), 1);
	local_close();
}

TEST(each_rank_that_dies_or_leaves_is_told_once_and_how)
{
	ranks_open();
	CHECK_IS(tern_lost_on(local[0], note, &argument), 0);
	polls();
	CHECK(!told[1] && !told[2] && !told[3]);
	rank_dies(1);
	local_close_one(2);
	polls();
	CHECK(told[1] == 1 && told[2] == 1 && !told[3]);
	CHECK_IS(fate[1], -EOWNERDEAD);
	CHECK_IS(fate[2], -ESHUTDOWN);
	rank_dies(3);
	polls();
	CHECK(told[1] == 1 && told[2] == 1 && told[3] == 1);
	local_close();
}

TEST(who_was_lost_before_is_told_too_and_nobody_after_it_was_taken_back)
{
	ranks_open();
	rank_dies(1);
	polls();
	CHECK_IS(tern_lost_on(local[0], note, &argument), 0);
	CHECK_IS(told[1], 0); /* not in the call */
	polls();
	CHECK_IS(told[1], 1);
	CHECK_IS(tern_lost_on(local[0], NULL, NULL), 0);
	rank_dies(2);
	polls();
	CHECK_IS(told[2], 0);
	local_close();
}

static void go_on(tern *t, uint32_t rank, int why, void *arg)
{
	(void)arg;
	CHECK_IS(why, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(why), "killed by signal") != NULL);
	CHECK_IS(tern_forgive(t, rank), 0);
	CHECK_IS(tern_request(t, 3, ASK), 0); /* instead of the one that is lost */
	told[rank]++;
}

TEST(the_function_may_forgive_and_send_so_that_a_wait_goes_on_without_the_lost_rank)
{
	ranks_open();
	CHECK_IS(tern_lost_on(local[0], go_on, NULL), 0);
	rank_dies(1);
	CHECK_IS(tern_wait(local[0], &flag, 1), 0);
	CHECK_IS(told[1], 1);
	local_close();
}

static void forgive(tern *t, uint32_t rank, int why, void *arg)
{
	(void)why, (void)arg;
	CHECK_IS(tern_forgive(t, rank), 0);
	if (rank == 2)
		tern_signal(t, &flag, 1);
}

static void *two_die(void *arg)
{
	rank_dies(1);
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 },
		  NULL); /* three times the grace time */
	rank_dies(2);
	return arg;
}

TEST(a_wait_that_has_been_quiet_for_long_lets_the_next_death_be_forgiven_too)
{
	pthread_t thread;
	ranks_open();
	CHECK_IS(tern_lost_on(local[0], forgive, NULL), 0);
	REQUIRE(pthread_create(&thread, NULL, two_die, NULL) == 0);
	CHECK_IS(tern_wait(local[0], &flag, 1), 0);
	pthread_join(thread, NULL);
	local_close();
}

static void nothing(tern *t, void *arg)
{
	(void)t, (void)arg;
}

TEST(it_is_told_though_as_many_functions_are_deferred_as_there_may_be)
{
	ranks_open();
	CHECK_IS(tern_lost_on(local[0], note, &argument), 0);
	for (int round = 1; round < RANKS; round++) {
		for (int i = 0; i < TERN_DEFER_MAX; i++)
			CHECK_IS(tern_defer(local[0], nothing, NULL), 0);
		CHECK_IS(tern_defer(local[0], nothing, NULL), -EAGAIN);
		rank_dies((uint32_t)round);
		polls();
		CHECK_IS(told[round], 1);
	}
	local_close();
}

static void *wait_for_it(void *arg)
{
	while (!told[1])
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	return arg;
}

TEST(a_program_that_computes_is_told_where_its_messages_are_delivered_to_it)
{
	pthread_t thread;
	local_open(RANKS);
	CHECK_IS(tern_poll(local[0]), 0);
	CHECK_IS(tern_lost_on(local[0], note, &argument), 0);
	REQUIRE(pthread_create(&thread, NULL, wait_for_it, NULL) == 0);
	rank_dies(1);
	if (tern_delivery_get(local[0]) == TERN_DELIVERY_POLL)
		polls();
	pthread_join(thread, NULL);
	CHECK_IS(told[1], 1);
	local_close();
}
