/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 200 LABELS perf */
/*
 * Members that wait in a collective sleep, and more ranks than cores take turns. CPU time is
 * counted, and not the clock: other programs of the machine do not count.
 */
#include <sched.h>
#include <sys/resource.h>

#include "lib/coll_calls.h"
#include "lib/net_traffic.h"

enum { RANKS = 4, WAIT_NS = 1000000000, CROWD = 16, CROWD_CALLS = 300 };

/* Of all threads of this process. */
static double cpu_seconds(void)
{
	struct rusage u;
	CHECK_IS(getrusage(RUSAGE_SELF, &u), 0);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* -- One member is late ------------------------------------------------------------------------ */

/* Calls whose messages are short, long, and of a member that waits until others can receive. */
static const struct {
	enum coll_call call;
	size_t bytes;
} waits[] = { { CALL_BARRIER, 8 },
	      { CALL_ALLREDUCE, 8 },
	      { CALL_BROADCAST, CALL_BYTES },
	      { CALL_ALLTOALL, CALL_BYTES } };

static void idle_rank(void)
{
	tern_team *all;
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	uint32_t late = tern_size(t) - 1;
	REQUIRE(tern_team_all(t, &all) == 0);
	for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++) {
		CHECK_IS(call_whole(t, all, waits[i].call, late, waits[i].bytes, false), 0);
		CHECK_IS(tern_team_barrier(all), 0);
		double before = cpu_seconds();
		if (tern_rank(t) == late)
			ranks_nap(WAIT_NS);
		CHECK_IS(call_whole(t, all, waits[i].call, late, waits[i].bytes, false), 0);
		double used = (cpu_seconds() - before) * 100e9 / WAIT_NS;
		if (tern_rank(t) == 0)
			printf("    waiting in %s used %.2f %% of a core\n",
			       call_name[waits[i].call], used);
		/* Whoever spins uses its share of a core: 14 % with two cores under load. */
		CHECK(used < 4);
	}
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void idle_over(const char *net, const char *delivery)
{
	setenv("TERN_DELIVERY", delivery, 1);
	setenv("TERN_SIGNAL", "38", 1);
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	ranks_run(RANKS, idle_rank);
}

TEST(members_that_wait_for_a_late_one_are_idle_when_they_poll)
{
	idle_over("shm", "poll");
}

TEST(members_that_wait_for_a_late_one_are_idle_with_a_thread)
{
	idle_over("shm", "thread");
}

TEST(members_that_wait_for_a_late_one_over_a_network_are_idle)
{
	idle_over("udp", "poll");
}

/* -- More ranks than cores --------------------------------------------------------------------- */

/*
 * A rank that spins through its time slice takes milliseconds for each call, so all ranks together
 * tens of them. With ranks that give way it is a switch or two for each rank.
 */
static void crowd_rank(void)
{
	tern_team *all;
	uint64_t mine[2], sum[2];
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK_IS(tern_team_barrier(all), 0);
	double before = cpu_seconds();
	for (uint64_t i = 0; i < CROWD_CALLS; i++) {
		CHECK_IS(tern_team_barrier(all), 0);
		mine[0] = i;
		CHECK_IS(tern_team_allreduce(all, mine, sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM),
			 0);
		CHECK_IS(sum[0], CROWD * i);
	}
	mine[0] = (uint64_t)((cpu_seconds() - before) * 1e9);
	CHECK_IS(tern_team_allreduce(all, mine, sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
	uint64_t each = sum[0] / (2 * CROWD_CALLS);
	if (tern_rank(t) == 0)
		printf("    a call of %d ranks on 2 cores took %.0f us of all their CPU time\n",
		       CROWD, (double)each / 1e3);
	CHECK(each < 8000000 * CHECK_SLOWER);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

static void crowd(const char *net)
{
	cpu_set_t two, now;
	CPU_ZERO(&two);
	REQUIRE(sched_getaffinity(0, sizeof now, &now) == 0);
	for (int i = 0, n = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &now)) {
			CPU_SET(i, &two);
			n++;
		}
	REQUIRE(sched_setaffinity(0, sizeof two, &two) == 0);
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	ranks_run(CROWD, crowd_rank);
}

TEST(sixteen_ranks_on_two_cores_take_turns)
{
	crowd("shm");
}

TEST(sixteen_ranks_on_two_cores_take_turns_over_a_network)
{
	crowd("udp");
}
