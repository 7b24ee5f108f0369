/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 36000 LABELS soak RUN_SERIAL */
/* Ten million messages on every network and under every fault; SOAK_MESSAGES=n sends another number. */
#define CHECK_SECONDS 6000
#include "net_traffic.h"

#include "net/udp/udp.h"

enum { RANKS = 3, PAIRS = RANKS * RANKS };

static void soak(const char *net, const char *fault)
{
	const char *text = getenv("SOAK_MESSAGES");
	char why[200];
	if (strcmp(net, "udp") == 0 && !udp_ops.usable(why, sizeof why))
		check_skip(why);
	uint64_t began = clock_ns();
	traffic_run(net, fault, RANKS, (unsigned)((text ? strtoull(text, NULL, 0) : 10000000) / PAIRS));
	printf("    %s %s: %u messages in %u s\n", net, fault, traffic.messages * PAIRS,
	       (unsigned)((clock_ns() - began) / 1000000000));
}

TEST(ten_million_arrive_over_shared_memory)
{
	soak("shm", "");
}

TEST(ten_million_arrive_over_udp)
{
	soak("udp", "");
}

TEST(ten_million_arrive_over_udp_that_loses)
{
	soak("udp", "drop=0.01");
}

TEST(ten_million_arrive_over_udp_that_doubles)
{
	soak("udp", "duplicate=0.05");
}

TEST(ten_million_arrive_over_udp_that_reorders)
{
	soak("udp", "reorder=0.05");
}

TEST(ten_million_arrive_over_udp_that_delays)
{
	soak("udp", "delay=0.05,late=2000");
}

TEST(ten_million_arrive_over_udp_that_damages)
{
	soak("udp", "corrupt=0.01");
}

TEST(ten_million_arrive_over_udp_that_cuts)
{
	soak("udp", "truncate=0.01");
}

TEST(ten_million_arrive_over_udp_with_partitions)
{
	soak("udp", "partition=0.00002");
}

TEST(ten_million_arrive_over_udp_that_is_slow)
{
	soak("udp", "slow=5");
}
