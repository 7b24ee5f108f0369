/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a simulation runs: on one core while ranks run briefly, and where it may otherwise. */
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include "base/world.h"
#include "lib/check.h"
#include "net/sim/machine/machine.h"

enum { MANY = 1024 }; /* switches, of which one at least is looked at */

static struct shared shared;
static struct machine m;
static cpu_set_t all;

/* How many our thread may use. */
static int cores(void)
{
	cpu_set_t now;
	return sched_getaffinity(0, sizeof now, &now) == 0 ? CPU_COUNT(&now) : 0;
}

static void switch_often(void)
{
	for (int i = 0; i < MANY; i++)
		core_switched(&m);
}

static void begin(void)
{
	core_free(&m);
	shared = (struct shared){ .looked = world_real.now() };
	m = (struct machine){ .shared = &shared };
	if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
		check_skip("there is one core only");
	struct stat tasks;
	if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink != 3)
		check_skip("a sanitizer has a thread of its own");
}

/*
 * Short runs, until our process is the scout; then it wakes. Where others keep us from running,
 * runs may seem long for a while.
 */
static void gather(void)
{
	for (int i = 0; i < 100 && !m.scout; i++)
		switch_often();
	CHECK(m.scout);
	core_follow(&m);
}

TEST(while_ranks_run_briefly_a_process_stays_on_the_core_of_the_scout)
{
	begin();
	CHECK_IS(cores(), CPU_COUNT(&all));
	gather();
	CHECK(!m.scout && shared.core == m.core && CPU_ISSET(m.core - 1, &all));
	CHECK_IS(cores(), 1);
	CHECK_IS(sched_getscheduler(0), SCHED_BATCH);
	CHECK_IS(sched_getcpu(), (int)m.core - 1);
	core_free(&m);
}

TEST(a_process_follows_to_another_core)
{
	begin();
	gather();
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			shared.core = (uint32_t)i + 1;
			core_follow(&m);
			CHECK_IS(sched_getcpu(), i);
		}
	CHECK_IS(cores(), 1);
	core_free(&m);
}

TEST(it_may_run_everywhere_again_when_it_is_the_scout_and_when_it_leaves)
{
	begin();
	gather();
	for (int i = 0; i < 100 && !m.scout; i++)
		switch_often();
	CHECK(m.scout);
	CHECK_IS(cores(), CPU_COUNT(&all));
	core_follow(&m);
	CHECK_IS(cores(), 1);
	core_free(&m);
	CHECK_IS(cores(), CPU_COUNT(&all));
	CHECK_IS(sched_getscheduler(0), SCHED_OTHER);
}

TEST(where_ranks_run_for_long_it_may_run_everywhere)
{
	begin();
	gather();
	shared.looked = world_real.now() - UINT64_C(1000000000);
	switch_often();
	CHECK_IS(shared.core, 0);
	core_follow(&m);
	CHECK_IS(cores(), CPU_COUNT(&all));
	CHECK_IS(sched_getscheduler(0), SCHED_OTHER);
}

TEST(it_never_goes_to_a_core_that_it_was_not_allowed)
{
	cpu_set_t one;
	begin();
	gather();
	CHECK_IS(m.core, shared.core);
	shared.core = CPU_SETSIZE; /* the last one that a set can name */
	core_follow(&m);
	sched_getaffinity(0, sizeof one, &one);
	CHECK(CPU_EQUAL(&one, &all));
}

static void *wait_for(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

TEST(a_process_with_threads_does_not_gather)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;
	begin();
	pthread_mutex_lock(&lock);
	REQUIRE(pthread_create(&thread, NULL, wait_for, &lock) == 0);
	gather();
	CHECK_IS(cores(), CPU_COUNT(&all));
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	shared.core = 0;
	core_follow(&m);
	gather(); /* and when they have ended, it does */
	CHECK_IS(cores(), 1);
	core_free(&m);
}
