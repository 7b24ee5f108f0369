/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 400 */
/*
 * A rank is killed in the middle of each collective, blocking and with a handle, on every network
 * and with every delivery. Each other member gets an error that names the dead rank; then the
 * survivors have a team, on which the same collective works.
 */
#include "lib/chance.h"
#include "lib/coll_calls.h"
#include "lib/net_traffic.h"

enum { RANKS = 4 };

struct board {
	_Atomic uint64_t ready, members[RANKS];
};
static struct board *board;
static uint32_t victim;
static enum coll_call which;
static bool split;
static size_t bytes;

/* Calls until one fails. */
static int call_until_lost(tern *t, tern_team *all)
{
	int rc = 0;
	for (uint32_t i = 0; !rc; i++) {
		rc = call_whole(t, all, which, i % RANKS, bytes, split);
		if (i == 5)
			atomic_fetch_add(&board->ready, 1);
	}
	return rc;
}

/* A handle has a code and no sentence: then the next call on the team has it. */
static bool names_the_victim(tern_team *all, int rc)
{
	char name[16];
	snprintf(name, sizeof name, "rank %u ", victim);
	if (split)
		rc = tern_team_barrier(all);
	if (strstr(tern_strerror(rc), name))
		return true;
	printf("    %s: %s\n", call_name[which], tern_strerror(rc));
	return false;
}

static void go_on(tern *t, tern_team *left)
{
	uint64_t set = 0;
	for (uint32_t i = 0; i < tern_team_size(left); i++)
		set |= UINT64_C(1) << tern_team_member(left, i);
	atomic_store(&board->members[tern_rank(t)], set);
	for (uint32_t i = 0; i < 20; i++)
		CHECK_IS(call_whole(t, left, which, i % tern_team_size(left), bytes, split), 0);
	CHECK_IS(tern_team_barrier(left), 0);
	CHECK_IS(tern_team_free(left), 0);
}

static void kill_rank(void)
{
	tern_team *all, *left;
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK_IS(tern_forgive(t, victim), 0);
	int rc = call_until_lost(t, all);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(names_the_victim(all, rc));
	CHECK_IS(call_whole(t, all, which, 0, bytes, split), -EOWNERDEAD);
	REQUIRE(tern_team_survivors(all, &left) == 0);
	go_on(t, left);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void kill_one(struct chance *c)
{
	static const size_t sizes[] = { 8, 4096, CALL_BYTES };
	victim = (uint32_t)chance_below(c, RANKS);
	bytes = sizes[chance_below(c, 3)];
	memset(board, 0, sizeof *board);
	ranks_start(RANKS, 0, kill_rank);
	while (atomic_load(&board->ready) < RANKS)
		ranks_nap(100000);
	ranks_nap(chance_below(c, 500000));
	kill(ranks_pid[victim], SIGKILL);
	if (!CHECK_IS(ranks_reap(RANKS, 0), 1))
		printf("    %s%s of %zu bytes, rank %u\n", call_name[which], split ? "_start" : "",
		       bytes, victim);
	for (uint32_t r = 0; r < RANKS; r++)
		if (r != victim)
			CHECK_IS(atomic_load(&board->members[r]), 0xf & ~(1u << victim));
	ranks_end();
}

/* The grace time plays no part: a call that needs a dead member fails as soon as that is known. */
static void kill_in_each(const char *net, const char *delivery)
{
	setenv("TERN_DELIVERY", delivery, 1);
	setenv("TERN_SIGNAL", "38", 1);
	setenv("TERN_GRACE", "1000", 1);
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	struct chance c = { check_seed() };
	board = ranks_shared(sizeof *board);
	for (int n = 0; n < CALLS; n++) {
		which = (enum coll_call)n;
		split = false;
		kill_one(&c);
		split = true;
		kill_one(&c);
	}
}

TEST(a_death_in_each_collective_over_shared_memory_when_it_polls)
{
	kill_in_each("shm", "poll");
}

TEST(a_death_in_each_collective_over_shared_memory_by_thread)
{
	kill_in_each("shm", "thread");
}

TEST(a_death_in_each_collective_over_shared_memory_by_interrupt)
{
	kill_in_each("shm", "interrupt");
}

TEST(a_death_in_each_collective_over_udp_when_it_polls)
{
	kill_in_each("udp", "poll");
}

TEST(a_death_in_each_collective_over_udp_by_thread)
{
	kill_in_each("udp", "thread");
}

TEST(a_death_in_each_collective_over_udp_by_interrupt)
{
	kill_in_each("udp", "interrupt");
}

TEST(a_death_in_each_collective_over_libfabric)
{
	kill_in_each("ofi/tcp", "poll");
}
