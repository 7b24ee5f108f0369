/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 36000 LABELS soak RUN_SERIAL */
/*
 * Ten million messages on every network and under every fault; then 10^9 over shared memory and
 * 10^8 over UDP, by as many jobs of three ranks at a time as the machine has cores for.
 * SOAK_MESSAGES=n sends another number, SOAK_JOBS=n lets n jobs run at a time, SOAK_NET=net leaves
 * out all other networks. What runs is said before it does, so that a run that hangs can be told.
 */
#define CHECK_SECONDS 360000
#include "lib/net_traffic.h"

enum { RANKS = 3, PAIRS = RANKS * RANKS, TEN_MILLION = 10000000 };

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void soak(const char *net, const char *fault, uint64_t messages)
{
	if (getenv("SOAK_NET") && strcmp(getenv("SOAK_NET"), net) != 0)
		return;
	if (!traffic_usable(net)) {
		printf("    %s is not usable here\n", net);
		return;
	}
	uint64_t began = clock_ns();
	setenv("TERN_STUCK", "300", 0);     /* a run that hangs says who waits for what */
	printf("    %s %s:\n", net, fault); /* and the seed follows, which flushes it */
	traffic_run(net, fault, RANKS, (unsigned)(messages / PAIRS));
	printf("    %llu messages in %u s\n", (unsigned long long)traffic.messages * PAIRS,
	       (unsigned)((clock_ns() - began) / 1000000000));
	fflush(stdout);
}

/* As many jobs, each in a process of its own, that share the messages. */
static void soak_jobs(const char *net, const char *const *faults, unsigned jobs, uint64_t messages)
{
	uint64_t cores = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t at_once = number_of("SOAK_JOBS", cores / RANKS ? cores / RANKS : 1);
	messages = number_of("SOAK_MESSAGES", messages);
	if (!traffic_usable(net))
		check_skip("the network is not usable here");
	for (unsigned started = 0, ended = 0; ended < jobs; ended++) {
		int status;
		for (; started < jobs && started - ended < at_once; started++) {
			fflush(NULL);
			pid_t child = fork();
			REQUIRE(child >= 0);
			if (child)
				continue;
			soak(net, faults[started % 8], messages / jobs + PAIRS - 1);
			exit(atomic_load(&check_failures) ? 1 : 0);
		}
		REQUIRE(wait(&status) > 0);
		CHECK_IS(status, 0);
	}
}

TEST(ten_million_arrive_over_shared_memory)
{
	soak("shm", "", number_of("SOAK_MESSAGES", TEN_MILLION));
}

/* On every network of packets. */
static void soak_packets(const char *fault)
{
	static const char *const nets[] = { "udp", "ofi/tcp", "ofi/shm" };
	for (unsigned i = 0; i < 3; i++)
		soak(nets[i], fault, number_of("SOAK_MESSAGES", TEN_MILLION));
}

TEST(ten_million_arrive_in_packets)
{
	soak_packets("");
}

TEST(ten_million_arrive_in_packets_that_loses)
{
	soak_packets("drop=0.01");
}

TEST(ten_million_arrive_in_packets_that_doubles)
{
	soak_packets("duplicate=0.05");
}

TEST(ten_million_arrive_in_packets_that_reorders)
{
	soak_packets("reorder=0.05");
}

TEST(ten_million_arrive_in_packets_that_delays)
{
	soak_packets("delay=0.05,late=2000");
}

TEST(ten_million_arrive_in_packets_that_damages)
{
	soak_packets("corrupt=0.01");
}

TEST(ten_million_arrive_in_packets_that_cuts)
{
	soak_packets("truncate=0.01");
}

TEST(ten_million_arrive_in_packets_with_partitions)
{
	soak_packets("partition=0.00002");
}

TEST(ten_million_arrive_in_packets_that_is_slow)
{
	soak_packets("slow=5");
}

/* What is left at the end of a job is sent because of a timer or a sleep, not of other messages. */
TEST(short_jobs_end_on_every_network)
{
	static const char *const nets[] = { "shm", "udp", "ofi/tcp", "ofi/shm" };
	uint64_t jobs = number_of("SOAK_SHORT", 1000);
	for (unsigned i = 0; i < 4; i++)
		for (uint64_t job = 0; job < jobs && !atomic_load(&check_failures); job++)
			soak(nets[i], "", PAIRS * (1 + job % 300));
}

TEST(a_billion_arrive_over_shared_memory)
{
	static const char *const none[8] = { "", "", "", "", "", "", "", "" };
	soak_jobs("shm", none, 10, 1000000000);
}

TEST(a_hundred_million_arrive_over_udp_under_every_fault)
{
	static const char *const faults[8] = { "drop=0.01",         "duplicate=0.05",
					       "reorder=0.05",      "delay=0.05,late=2000",
					       "corrupt=0.01",      "truncate=0.01",
					       "partition=0.00002", "slow=5" };
	soak_jobs("udp", faults, 8, 100000000);
}
