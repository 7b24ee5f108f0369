/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 60 LABELS perf */
/*
 * A rank that waits uses next to no CPU. The bounds are for a busy machine; the exact figures are
 * printed.
 */
#include <sched.h>
#include <sys/resource.h>

#include "lib/ranks.h"

enum { ASK, PING, PONG };

static _Thread_local _Atomic uint64_t flag;
static bool at_a_barrier;

static void signal_flag(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &flag, 1);
}

/* CPU time of this thread, or of this process's children. */
static double cpu_seconds(int who)
{
	struct rusage u;
	CHECK_IS(getrusage(who, &u), 0);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* The last rank does nothing for a second, then ends the others' wait. */
static void wait_a_second(tern *t)
{
	uint32_t last = tern_size(t) - 1;
	CHECK_IS(tern_barrier(t), 0); /* everybody is here: starting is not counted */
	double before = cpu_seconds(RUSAGE_THREAD);
	if (tern_rank(t) == last)
		ranks_nap(1000000000);
	if (at_a_barrier)
		CHECK_IS(tern_barrier(t), 0);
	else if (tern_rank(t) != last)
		CHECK_IS(tern_wait(t, &flag, 1), 0);
	else
		for (uint32_t r = 0; r < last; r++)
			CHECK_IS(tern_request(t, r, ASK), 0);
	double used = cpu_seconds(RUSAGE_THREAD) - before;
	if (tern_rank(t) == 0)
		printf("    rank 0 of %u waited for a second and used %.2f%% of a core\n",
		       tern_size(t), used * 100);
	CHECK(used < 0.10);
}

static void prepare(tern *t)
{
	CHECK_IS(tern_on(t, ASK, signal_flag), 0);
}

static void wait_process(void)
{
	tern *t = ranks_open();
	prepare(t);
	wait_a_second(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_that_waits_for_a_second_is_idle)
{
	ranks_run(2, wait_process);
}

TEST(a_rank_that_waits_at_a_barrier_is_idle)
{
	at_a_barrier = true;
	ranks_run(2, wait_process);
}

TEST(a_thread_that_waits_is_idle)
{
	ranks_run_threads(2, prepare, wait_a_second);
}

/* -- More ranks than cores --------------------------------------------------------------- */

enum { CROWD = 8, TRIPS = 100 };

static void on_ping(tern *t, const tern_msg *m)
{
	static const char data[TERN_PAYLOAD_MAX];
	CHECK_IS(tern_reply_data(t, m, PONG, data, tern_msg_word(m, 0), 0), 0);
}

/* Even ranks ask the next one, which waits in a barrier and answers. Returns CPU time of a trip. */
static double trips(tern *t, size_t bytes, bool payload)
{
	static const char data[TERN_PAYLOAD_MAX];
	uint32_t me = tern_rank(t);
	CHECK_IS(tern_barrier(t), 0);
	double before = cpu_seconds(RUSAGE_SELF);
	for (int i = 0; me % 2 == 0 && i < TRIPS; i++) {
		CHECK_IS(payload ? tern_request_data(t, me + 1, PING, data, bytes, bytes)
				 : tern_request(t, me + 1, PING, bytes),
			 0);
		CHECK_IS(tern_wait(t, &flag, 1), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	return (cpu_seconds(RUSAGE_SELF) - before) / TRIPS;
}

static void crowd_process(void)
{
	static const size_t sizes[] = { 0, 64, 4096 };
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, PING, on_ping), 0);
	CHECK_IS(tern_on(t, PONG, signal_flag), 0);
	for (unsigned i = 0; i < 6; i++) {
		double used = trips(t, sizes[i / 2], i % 2);
		if (tern_rank(t) == 0)
			printf("    %zu bytes%s: a round trip used %.1f us of a rank's CPU time\n",
			       sizes[i / 2], i % 2 ? " there and back" : " back", used * 1e6);
		CHECK(used < 1e-3 * CHECK_SLOWER); /* who spins through its turn uses several */
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(payloads_of_more_ranks_than_cores_do_not_wait_for_those_who_spin)
{
	cpu_set_t now, one;
	CPU_ZERO(&one);
	REQUIRE(sched_getaffinity(0, sizeof now, &now) == 0);
	for (int i = 0; !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &now))
			CPU_SET(i, &one);
	REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
	ranks_run(CROWD, crowd_process);
	REQUIRE(sched_setaffinity(0, sizeof now, &now) == 0);
}

TEST(sixty_four_ranks_that_wait_leave_the_machine_idle)
{
	double before = cpu_seconds(RUSAGE_CHILDREN);
	ranks_run(64, wait_process);
	double used = cpu_seconds(RUSAGE_CHILDREN) - before;
	printf("    64 ranks used %.2f%% of a core, starting and ending included\n", used * 100);
	CHECK(used < 1.0);
}
