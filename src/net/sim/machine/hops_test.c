/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks of links: a packet alone, two that share a link, and many. */
#include <errno.h>

#include <tern/tern.h>

#include "base/chance.h"
#include "lib/sim_play.h"

#define BARE "cluster,latency=1us,hop=100ns,gap=0,gap_byte=1ns,"
enum { LATENCY = 1000000, HOP = 100000, BYTE = 1000 };

/* How long a packet of 50 bytes takes alone. */
static uint64_t alone(const char *profile, uint32_t nodes, uint32_t src, uint32_t dst)
{
	begin_with(profile, nodes);
	send_at(0, src, dst, 50);
	play();
	CHECK_IS(count[dst], 1);
	return came[dst][0];
}

TEST(alone_a_packet_takes_latency_and_bytes_and_a_hop_for_each_vertex_between)
{
	const uint64_t bare = LATENCY + 50 * BYTE;
	for (uint32_t dst = 1; dst < 64; dst++) {
		unsigned bits = (unsigned)__builtin_popcount(dst);
		CHECK_IS(alone(BARE "network=hypercube", 64, 0, dst), bare + (bits - 1) * HOP);
		unsigned x = dst % 8, y = dst / 8;
		unsigned links = (x > 4 ? 8 - x : x) + (y > 4 ? 8 - y : y);
		CHECK_IS(alone(BARE "network=torus", 64, 0, dst), bare + (links - 1) * HOP);
		unsigned level = dst < 4 ? 1 : dst < 16 ? 2 : 3;
		CHECK_IS(alone(BARE "network=fattree", 64, 0, dst), bare + (2 * level - 1) * HOP);
	}
}

static void link_count(void *to, const struct use_row *row)
{
	*(unsigned *)to += row->part == USE_LINK;
}

/* That have carried something. */
static unsigned links_used(void)
{
	unsigned n = 0;
	use_each(&m, link_count, &n);
	return n;
}

TEST(of_two_packets_that_share_a_link_the_second_waits_for_the_bytes_of_the_first)
{
	begin_with(BARE "network=hypercube", 8);
	send_at(0, 0, 3, 50); /* 0, 1, 3 */
	send_at(0, 1, 7, 50); /* 1, 3, 7: is on the link from 1 to 3 before */
	play();
	CHECK_IS(came[7][0], LATENCY + HOP + 50 * BYTE);
	CHECK_IS(came[3][0], LATENCY + HOP + 50 * BYTE);
	CHECK_IS(links_used(), 3);
	begin_with(BARE "network=torus,width=8", 8);
	send_at(0, 0, 2, 50);         /* is at node 1 a hop after its start */
	send_at(HOP - 1, 1, 3, 5000); /* which has just begun there */
	play();
	CHECK_IS(came[3][0], LATENCY + HOP - 1 + HOP + 5000 * BYTE);
	CHECK_IS(came[2][0], LATENCY + HOP - 1 + 5000 * BYTE + 50 * BYTE);
}

TEST(several_links_of_a_fat_tree_carry_several_packets)
{
	begin_with(BARE "network=fattree", 16);
	for (uint32_t src = 0; src < 3; src++)
		send_at(0, src, 4 + src, 1000);
	play();
	CHECK_IS(came[4][0], LATENCY + 3 * HOP + 1000 * BYTE);
	CHECK_IS(came[5][0], LATENCY + 3 * HOP + 1000 * BYTE);
	CHECK_IS(came[6][0], LATENCY + 3 * HOP + 2000 * BYTE); /* there are two links up */
}

TEST(every_packet_arrives_once)
{
	static const char *const networks[] = { "torus", "hypercube", "fattree", "mesh" };
	for (unsigned n = 0; n < 4; n++) {
		struct chance c = { check_seed() };
		char profile[100];
		unsigned all = 0;
		snprintf(profile, sizeof profile, BARE "network=%s", networks[n]);
		begin_with(profile, 64);
		for (unsigned i = 0; i < 2000; i++)
			send_at(chance_below(&c, 3000000), chance_below(&c, 64),
				chance_below(&c, 63), 1 + chance_below(&c, 400));
		play();
		for (unsigned i = 0; i < 64; i++)
			all += count[i];
		CHECK_IS(all, 2000);
		CHECK_IS(m.shared->underway, 0);
	}
}

TEST(a_shape_that_cannot_be_is_refused)
{
	struct profile p;
	REQUIRE(profile_load(&p, "cluster,network=torus,width=5") == 0);
	CHECK_IS(network_named("torus")->judge(&p, 25), 0);
	CHECK(network_named("torus")->judge(&p, 24) < 0);
	CHECK(strstr(tern_strerror(-EINVAL), "24 nodes make no full rows of width = 5"));
	CHECK(network_named("hypercube")->judge(&p, 24) < 0);
	CHECK(strstr(tern_strerror(-EINVAL), "1, 2, 4, 8"));
}
