/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 36000 LABELS soak RUN_SERIAL */
/* Ten million messages on every network and under every fault; SOAK_MESSAGES=n sends another number. */
#define CHECK_SECONDS 6000
#include "net_traffic.h"

enum { RANKS = 3, PAIRS = RANKS * RANKS };

static void soak(const char *net, const char *fault)
{
	const char *text = getenv("SOAK_MESSAGES");
	if (!traffic_usable(net)) {
		printf("    %s is not usable here\n", net);
		return;
	}
	uint64_t began = clock_ns();
	traffic_run(net, fault, RANKS, (unsigned)((text ? strtoull(text, NULL, 0) : 10000000) / PAIRS));
	printf("    %s %s: %u messages in %u s\n", net, fault, traffic.messages * PAIRS,
	       (unsigned)((clock_ns() - began) / 1000000000));
}

TEST(ten_million_arrive_over_shared_memory)
{
	soak("shm", "");
}

/* On every network of packets. */
static void soak_packets(const char *fault)
{
	soak("udp", fault);
	soak("ofi/tcp", fault);
	soak("ofi/shm", fault);
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
