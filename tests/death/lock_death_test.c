/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 300 */
/*
 * A rank dies that has a lock, or waits for it: those who wait get an error that says so, however
 * far behind they stand, and so do those who ask later, also when the death is forgiven.
 */
#include <tern/lock.h>

#include "lib/handed.h"
#include "lib/net_traffic.h"
#include "lib/ranks.h"

enum { RANKS = 4, VICTIM = 1 };

struct board {
	_Atomic uint64_t done;
};

static struct board *board;
static bool waits; /* the victim waits, and rank 0 has the lock */
static tern_lock *locks;

static void broken(int rc)
{
	if (!CHECK_IS(rc, -EOWNERDEAD) || !CHECK(strstr(tern_strerror(rc), "is broken") != NULL))
		printf("    %s\n", tern_strerror(rc));
}

/* A lock whose home is rank 0, which does not die. */
static tern_lock *lock_at_0(tern *t)
{
	tern_addr a = handed_addr(t, locks);
	for (unsigned i = 0; i < RANKS; i++)
		if (((a + 64 * i) & ((UINT64_C(1) << 40) - 1)) / 64 % RANKS == 0)
			return (tern_lock *)(void *)((char *)locks + 64 * i);
	return NULL;
}

static void victim(tern *t, tern_lock *lock)
{
	if (waits) {
		alarm(1); /* which kills it in its wait */
		tern_lock_take(t, lock);
	} else {
		CHECK_IS(tern_lock_take(t, lock), 0);
		CHECK_IS(tern_barrier(t), 0);
		ranks_nap(100000000); /* the others wait, one behind another */
	}
	raise(SIGKILL);
}

static void meet(tern *t, uint64_t n)
{
	atomic_fetch_add(&board->done, 1);
	while (atomic_load(&board->done) < n * (RANKS - 1))
		tern_poll(t);
}

static uint64_t last_of(tern *t, const tern_lock *lock)
{
	uint64_t last = 0;
	CHECK_IS(tern_get(t, &last, tern_addr_at(t, 0, &lock->last), sizeof last), 0);
	return last;
}

static void until_dead(tern *t, const tern_lock *lock)
{
	uint64_t value;
	while (tern_get(t, &value, tern_addr_at(t, VICTIM, &lock->last), sizeof value) == 0)
		ranks_nap(1000000);
}

static void living(tern *t, tern_lock *lock)
{
	uint32_t me = tern_rank(t);
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	if (!waits)
		CHECK_IS(tern_barrier(t), 0);
	while (waits && me && last_of(t, lock) <= 1) /* until the victim has asked */
		ranks_nap(1000000);
	if (waits && me == 0) {
		until_dead(t, lock);
		CHECK(tern_lock_release(t, lock) < 0); /* there is nobody to give it to */
	} else {
		broken(tern_lock_take(t, lock));
	}
	meet(t, 1);
	broken(tern_lock_take(t, lock));
	meet(t, 2);
	broken(tern_lock_try(t, lock));
	meet(t, 3);
}

static void rank_main(void)
{
	tern *t = ranks_open();
	locks = handed_alloc_all(t, (RANKS + 1) * 64);
	tern_lock *lock = lock_at_0(t);
	REQUIRE(lock);
	if (waits && tern_rank(t) == 0)
		CHECK_IS(tern_lock_take(t, lock), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == VICTIM)
		victim(t, lock);
	living(t, lock);
	*lock = (tern_lock){ 0 };
	meet(t, 4);
	CHECK_IS(tern_lock_take(t, lock), 0); /* it is as new */
	CHECK_IS(tern_lock_release(t, lock), 0);
	meet(t, 5);
	CHECK_IS(tern_close(t), 0);
}

static void run_over(const char *net, bool victim_waits)
{
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	setenv("TERN_GRACE", "60", 1);
	waits = victim_waits;
	board = ranks_shared(sizeof *board);
	ranks_start(RANKS, 0, rank_main);
	CHECK_IS(ranks_reap(RANKS, 0), 1); /* the victim alone */
	ranks_end();
}

TEST(over_shared_memory_the_death_of_the_owner_ends_all_waits_for_the_lock)
{
	run_over("shm", false);
}

TEST(over_udp_the_death_of_the_owner_ends_all_waits_for_the_lock)
{
	run_over("udp", false);
}

TEST(over_shared_memory_the_death_of_one_that_waits_breaks_the_lock_behind_it)
{
	run_over("shm", true);
}

TEST(over_udp_the_death_of_one_that_waits_breaks_the_lock_behind_it)
{
	run_over("udp", true);
}
