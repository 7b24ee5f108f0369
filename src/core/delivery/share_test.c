/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that several threads use, one call at a time; and what is told to a thread that uses
 * another's.
 */
#include <errno.h>

#include "endpoint/endpoint.h"
#include "lib/visitor.h"

enum { ASK = 2, TELL, THREADS = 5 };

static _Atomic uint64_t answered[THREADS];
static unsigned rounds;

static void answer(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL, tern_msg_word(m, 0)), 0);
}

static void take_answer(tern *t, const tern_msg *m)
{
	tern_signal(t, &answered[tern_msg_word(m, 0)], 1);
}

/* Interrupts and threads that share do not go together: polls, then. */
static void shared_open(uint32_t n)
{
	const char *how = getenv("TERN_DELIVERY");
	setenv("TERN_SHARED", "1", 1);
	if (how && strcmp(how, "interrupt") == 0)
		local_polled();
	local_open(n);
	local_on(VISIT, on_visit);
	local_on(ASK, answer);
	local_on(TELL, take_answer);
}

static _Atomic unsigned done;

/* The threads share rank 0; this one has rank 1 and answers. */
static void together(void *(*fn)(void *))
{
	pthread_t thread[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, fn, (void *)i) == 0);
	while (atomic_load(&done) < THREADS)
		CHECK(tern_poll(local[1]) >= 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void *ask_and_wait(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	for (unsigned i = 0; i < rounds; i++) {
		CHECK_IS(tern_request(local[0], i % 2, ASK, me), 0);
		CHECK_IS(tern_wait(local[0], &answered[me], 1), 0);
	}
	atomic_fetch_add(&done, 1);
	return NULL;
}

TEST(many_threads_ask_through_one_endpoint_and_each_gets_its_answers)
{
	rounds = check_scaled(2000);
	shared_open(2);
	together(ask_and_wait);
	for (int i = 0; i < THREADS; i++)
		CHECK_IS(atomic_load(&answered[i]), 0);
	local_close();
}

static void *hold_and_update(void *arg)
{
	for (unsigned i = 0; i < rounds; i++) {
		tern_hold(local[0]);
		atomic_store(&held_now, true);
		tern_hold(local[0]);
		kept_update();
		tern_release(local[0]);
		kept_update();
		atomic_store(&held_now, false);
		tern_release(local[0]);
		if (i % 4 == 0) {
			CHECK_IS(tern_request(local[0], 0, VISIT), 0);
			atomic_fetch_add(&paid, 1);
		}
		if (i % 8 == 0)
			CHECK(tern_poll(local[0]) >= 0);
	}
	atomic_fetch_add(&done, 1);
	return arg;
}

TEST(a_hold_keeps_out_handlers_and_the_other_threads)
{
	rounds = check_scaled(5000);
	shared_open(2);
	together(hold_and_update);
	local_settle();
	CHECK_IS(atomic_load(&visits), atomic_load(&paid));
	CHECK_IS(kept.first, atomic_load(&visits) + 2 * THREADS * rounds);
	CHECK_IS(kept.second, kept.first);
	local_close();
}

/* The first waits for what only the second sends. */
static void *wait_for_the_other(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	for (unsigned i = 0; me < 2 && i < rounds; i++) {
		if (i % 2 == me)
			CHECK_IS(tern_wait(local[0], &answered[me], 1), 0);
		else
			CHECK_IS(tern_request(local[0], 1, ASK, !me), 0);
	}
	atomic_fetch_add(&done, 1);
	return NULL;
}

TEST(a_thread_that_waits_lets_another_in)
{
	rounds = check_scaled(1000);
	shared_open(2);
	together(wait_for_the_other);
	local_close();
}

static void *take_and_give(void *arg)
{
	CHECK(tern_poll(local[1]) >= 0);
	return arg;
}

static void *find_free(void *arg)
{
	struct endpoint *e = local[1]->own;
	if (CHECK(share_try(e)))
		share_unlock(e);
	return arg;
}

/* The thread that waits in its own one serves the other, but neither sleeps on it nor wakes it. */
TEST(a_thread_that_rests_in_another_endpoint_leaves_a_shared_one_free)
{
	tern_options o = { .shared = 1 };
	pthread_t thread;
	local_polled();
	CHECK_IS(tern_open(&local[0], NULL), 0);
	CHECK_IS(tern_open(&local[1], &o), 0);
	local_size = 2;
	for (int i = 0; i < 5; i++) {
		take_and_give(NULL);
		CHECK_IS(tern_wait_for(local[0], &answered[0], 1, 10000000), -ETIMEDOUT);
		take_and_give(NULL);
		REQUIRE(pthread_create(&thread, NULL, find_free, NULL) == 0);
		pthread_join(thread, NULL);
	}
	local_close();
}

TEST(an_option_shares_an_endpoint_too)
{
	tern_options o = { .shared = 1, .delivery = TERN_DELIVERY_POLL };
	CHECK_IS(tern_open(&local[0], &o), 0);
	local_size = 1;
	local_on(ASK, answer);
	local_on(TELL, take_answer);
	CHECK(local[0]->own->owner.shared != NULL);
	CHECK_IS(tern_request(local[0], 0, ASK, 0), 0);
	CHECK_IS(tern_wait(local[0], &answered[0], 1), 0);
	local_close();
}

TEST(sharing_and_interrupts_are_refused_together)
{
	tern_options o = { .shared = 1, .delivery = TERN_DELIVERY_INTERRUPT, .signal = 40 };
	tern *t = NULL;
	int rc = tern_open(&t, &o);
	CHECK_IS(rc, -EINVAL);
	CHECK(sentence_has(rc, "shared") && sentence_has(rc, "signal") && !t);
	o.delivery = TERN_DELIVERY_THREAD;
	CHECK_IS(tern_open(&t, &o), 0);
	CHECK_IS(tern_delivery_set(t, TERN_DELIVERY_INTERRUPT), -EINVAL);
	CHECK_IS(tern_delivery_get(t), TERN_DELIVERY_THREAD);
	CHECK_IS(tern_close(t), 0);
}

/* -- TERN_CHECK -------------------------------------------------------------------------------- */

static void *use_anothers(void *arg)
{
	int rc = tern_poll(local[0]);
	CHECK_IS(rc, -EPERM);
	CHECK(sentence_has(rc, "rank 0") && sentence_has(rc, "tern_attach()"));
	CHECK_IS(tern_request(local[0], 1, ASK, 0), -EPERM);
	CHECK_IS(tern_wait(local[0], &answered[0], 0), -EPERM);
	CHECK_IS(tern_barrier(local[0]), -EPERM);
	return arg;
}

static void *attach_and_use(void *arg)
{
	tern_attach(local[0]);
	CHECK(tern_poll(local[0]) >= 0);
	CHECK_IS(tern_request(local[0], 0, ASK, 0), 0);
	CHECK_IS(tern_wait(local[0], &answered[0], 1), 0);
	return arg;
}

TEST(a_thread_that_uses_anothers_endpoint_is_told)
{
	pthread_t thread;
	setenv("TERN_CHECK", "1", 1);
	local_open(2);
	local_on(ASK, answer);
	local_on(TELL, take_answer);
	CHECK_IS(tern_poll(local[0]), 0);
	REQUIRE(pthread_create(&thread, NULL, use_anothers, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK_IS(tern_request(local[0], 0, ASK, 0), 0); /* the rightful one goes on */
	CHECK_IS(tern_wait(local[0], &answered[0], 1), 0);
	REQUIRE(pthread_create(&thread, NULL, attach_and_use, NULL) == 0);
	pthread_join(thread, NULL);
	tern_attach(local[0]);
	local_close();
}
