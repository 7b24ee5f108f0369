/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 600 */
/* On every network, and under every fault, what is sent arrives: once, in order, and as it was. */
#include "lib/net_traffic.h"

enum { SEEDS = 2, RANKS = 3 };

static const char *const packets[] = { "udp", "ofi/tcp", "ofi/shm" };
enum { PACKETS = sizeof packets / sizeof *packets };

/* On every network of packets. */
static void on_packets(const char *fault, unsigned messages)
{
	unsigned used = 0;
	for (unsigned k = 0; k < PACKETS; k++) {
		if (!traffic_usable(packets[k]))
			continue;
		unsigned before = atomic_load(&check_failures);
		for (int i = 0; i < (k ? 1 : SEEDS); i++) /* the first is quickest to begin */
			traffic_run(packets[k], fault, RANKS, check_scaled(messages));
		if (atomic_load(&check_failures) != before)
			printf("    on the network %s\n", packets[k]);
		used++;
	}
	if (!used)
		check_skip("this build has no network of packets");
}

TEST(what_a_rank_sends_itself_arrives)
{
	traffic_run("auto", "", 1, check_scaled(20000));
}

TEST(what_is_sent_over_shared_memory_arrives)
{
	traffic_run("shm", "", RANKS, check_scaled(20000));
}

TEST(what_is_sent_in_packets_arrives)
{
	on_packets("", 5000);
}

TEST(what_is_sent_in_packets_arrives_when_packets_are_lost)
{
	on_packets("drop=0.01", 2000);
	on_packets("drop=0.3", 200);
}

TEST(what_is_sent_in_packets_arrives_when_packets_are_doubled)
{
	on_packets("duplicate=0.3", 1000);
}

TEST(what_is_sent_in_packets_arrives_when_packets_overtake_each_other)
{
	on_packets("reorder=0.3", 1000);
}

TEST(what_is_sent_in_packets_arrives_when_packets_are_late)
{
	on_packets("delay=0.2,late=5000", 500);
}

TEST(what_is_sent_in_packets_arrives_when_packets_are_damaged)
{
	on_packets("corrupt=0.2", 300);
}

TEST(what_is_sent_in_packets_arrives_when_packets_are_cut)
{
	on_packets("truncate=0.2", 300);
}

TEST(what_is_sent_in_packets_arrives_when_ranks_are_cut_off_for_a_while)
{
	on_packets("partition=0.002", 1000);
}

TEST(what_is_sent_in_packets_arrives_over_a_slow_link)
{
	on_packets("slow=20", 500);
}

TEST(what_is_sent_in_packets_arrives_when_everything_goes_wrong)
{
	on_packets("drop=0.05,duplicate=0.05,reorder=0.1,delay=0.05,corrupt=0.05,truncate=0.05,"
		   "partition=0.0005",
		   300);
}

TEST(what_is_sent_in_packets_arrives_encrypted)
{
	setenv("TERN_PROTECT", "encrypt", 1);
	on_packets("drop=0.02,corrupt=0.02", 500);
}

TEST(what_is_sent_in_packets_arrives_unprotected)
{
	setenv("TERN_PROTECT", "none", 1);
	on_packets("drop=0.02,duplicate=0.02,reorder=0.05", 500);
}

/*
 * Without credits a receiver that has no room takes nothing, and what it did not take is sent
 * again.
 */
TEST(what_is_sent_in_packets_arrives_without_flow_control_too)
{
	setenv("TERN_SERVICE", "order,retry", 1);
	on_packets("", 500);
	on_packets("drop=0.05", 200);
}

/* Every way in which a receiver is not overrun keeps the same promises. */
static void on_udp_with_flow(const char *flow)
{
	static const char *const fault[] = { "", "drop=0.05", "reorder=0.2,duplicate=0.1" };
	if (!traffic_usable("udp"))
		check_skip("this build has no UDP");
	setenv("TERN_FLOW", flow, 1);
	for (unsigned i = 0; i < sizeof fault / sizeof *fault; i++)
		traffic_run("udp", fault[i], RANKS, check_scaled(i ? 200 : 1000));
}

TEST(what_is_sent_over_udp_arrives_when_packets_may_return_to_their_sender)
{
	on_udp_with_flow("return");
}

TEST(what_is_sent_over_udp_arrives_when_packets_may_be_dropped)
{
	on_udp_with_flow("drop");
}

TEST(what_is_sent_over_udp_arrives_when_packets_may_be_refused)
{
	on_udp_with_flow("nack");
}

TEST(what_is_sent_over_udp_arrives_with_tokens)
{
	on_udp_with_flow("token");
}

TEST(what_is_sent_over_udp_arrives_with_permission_for_each_transfer)
{
	on_udp_with_flow("permit");
}

TEST(what_is_sent_over_udp_arrives_with_reservations)
{
	on_udp_with_flow("reserve");
}
