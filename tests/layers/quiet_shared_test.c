/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tern_team_quiet() in an endpoint that threads share: a thread may call it while a deferred
 * function waits in another one, and then waits for that; in the deferred function it is refused.
 */
#include <pthread.h>
#include <stdlib.h>
#include <tern/coll.h>

#include "coll/run.h"
#include "lib/ranks.h"

static tern *t;
static tern_team *all;
static _Atomic int began, over, refused, quiet = 1;

/* The other thread has passed a round of its call, or that has ended. */
static bool round_passed(struct endpoint *e, void *arg)
{
	const uint64_t *calls = arg;
	(void)e;
	return all->calls >= *calls + 2 || atomic_load(&quiet) != 1;
}

static void deferred(tern *at, void *arg)
{
	uint64_t calls = all->calls;
	struct wait w = { .call = "a deferred function" };
	(void)arg;
	atomic_store(&refused, tern_team_quiet(all));
	atomic_store(&began, 1);
	wait_through(at->own, round_passed, &calls, &w);
	atomic_store(&over, 1);
}

static void *other_thread(void *arg)
{
	(void)arg;
	while (!atomic_load(&began))
		ranks_nap(100000);
	atomic_store(&quiet, tern_team_quiet(all));
	CHECK_IS(atomic_load(&over), 1);
	return NULL;
}

TEST(a_thread_waits_for_a_deferred_function_of_another)
{
	pthread_t thread;
	setenv("TERN_SHARED", "1", 1);
	REQUIRE(tern_open_local(1, &t) == 0 && tern_team_all(t, &all) == 0);
	REQUIRE(pthread_create(&thread, NULL, other_thread, NULL) == 0);
	CHECK_IS(tern_defer(t, deferred, NULL), 0);
	while (atomic_load(&quiet) == 1) {
		CHECK(tern_poll(t) >= 0);
		ranks_nap(100000); /* the other thread gets the lock */
	}
	pthread_join(thread, NULL);
	CHECK_IS(atomic_load(&refused), -EDEADLK);
	CHECK_IS(atomic_load(&quiet), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}
