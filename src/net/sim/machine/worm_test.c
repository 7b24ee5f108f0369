/* SPDX-License-Identifier: BSD-3-Clause */
/* The mesh of flits: cycles of a worm alone and of two, deadlock, conservation, worms as one. */
#include "net/sim/machine/mesh.h"

#include <tern/tern.h>

#include "base/chance.h"
#include "lib/sim_play.h"

#define BARE "cluster,network=mesh,flit=1ns,flit_bytes=1,"
enum { CYCLE = 1000 };

TEST(a_worm_alone_takes_a_cycle_for_each_link_and_each_further_flit)
{
	for (unsigned whole = 0; whole < 2; whole++)
		for (uint32_t dst = 0; dst < 64; dst++) {
			begin_with(whole ? BARE "width=8" : BARE "width=8,whole=0", 64);
			send_at(5 * CYCLE, 9, dst, 20);
			play();
			uint64_t links = (uint64_t)abs((int)(dst % 8) - 1) +
					 (uint64_t)abs((int)(dst / 8) - 1) + 2;
			CHECK_IS(came[dst][0], (6 + links + 20 - 1) * CYCLE);
		}
}

/* Flits that the link behind a port of a node has carried. */
static uint64_t carried(uint32_t node, enum port port)
{
	return mesh_view(&m).link[node * PORTS + port].carried;
}

/* From column 1 of row 0 to column 3 of row 2, and back, on a mesh of four columns. */
TEST(a_worm_goes_along_its_row_first_and_then_along_its_column)
{
	enum { FLITS = 20 };
	for (unsigned whole = 0; whole < 2; whole++) {
		begin_with(whole ? BARE "width=4" : BARE "width=4,whole=0", 16);
		send_at(0, 1, 11, FLITS);
		send_at(0, 11, 1, FLITS);
		play();
		CHECK_IS(carried(1, PORT_RIGHT), FLITS);
		CHECK_IS(carried(2, PORT_RIGHT), FLITS);
		CHECK_IS(carried(3, PORT_DOWN), FLITS);
		CHECK_IS(carried(7, PORT_DOWN), FLITS);
		CHECK_IS(carried(11, PORT_LEFT), FLITS);
		CHECK_IS(carried(10, PORT_LEFT), FLITS);
		CHECK_IS(carried(9, PORT_UP), FLITS);
		CHECK_IS(carried(5, PORT_UP), FLITS);
		uint64_t sum = 0;
		for (uint32_t n = 0; n < 16; n++)
			for (enum port port = 0; port < PORTS; port++)
				sum += carried(n, port);
		CHECK_IS(sum, 2 * 6 * FLITS); /* two more to enter and to leave, and no others */
	}
}

TEST(of_two_worms_that_share_a_link_the_second_follows_the_last_flit_of_the_first)
{
	begin_with(BARE "width=8,channels=1", 8);
	send_at(0, 0, 7, 20); /* from cycle 1 on; is at node 1 in cycle 2 */
	send_at(0, 1, 6, 20); /* has that link before */
	play();
	CHECK_IS(came[6][0], (1 + 7 + 19) * CYCLE);
	/*
	 * The last flit of the second worm enters the link behind node 1 in cycle 21 and is gone
	 * from it in 22, so the first has the channel from 23 on, and is in the 8th of 9 then.
	 */
	CHECK_IS(came[7][0], (23 + 7 + 19) * CYCLE);
}

TEST(a_cts_passes_data_that_have_begun_where_types_have_channels)
{
	for (unsigned types = 0; types < 2; types++) {
		begin_with(types ? BARE "width=8,channels=4,channel_types=1"
				 : BARE "width=8,channels=4",
			   8);
		send_at(0, 0, 7, 500);
		send_at(100 * CYCLE, 0, 7, 2);
		m.travel[1].type = TYPE_CTS;
		play();
		REQUIRE(count[7] == 2);
		/* Types: alone it would take 9 links and a flit from cycle 101 on. */
		CHECK_IS(came[7][0], types ? (101 + 9 + 1) * CYCLE : (1 + 9 + 499) * CYCLE);
		CHECK(!types || came[7][1] == (1 + 9 + 499 + 2) * CYCLE);
	}
}

TEST(worms_of_two_virtual_channels_share_a_link_flit_by_flit)
{
	begin_with(BARE "width=8,channels=2", 8);
	send_at(0, 0, 7, 40);
	send_at(0, 1, 6, 40);
	m.travel[1].class = CLASS_REPLY;
	play();
	uint64_t later = came[6][0] > came[7][0] ? came[6][0] : came[7][0];
	CHECK(later <= (uint64_t)(1 + 9 + 2 * 40 + 4) * CYCLE);
	CHECK(came[6][0] > (1 + 7 + 39) * CYCLE || came[7][0] > (1 + 9 + 39) * CYCLE);
}

static void ring(const char *profile, uint32_t nodes)
{
	begin_with(profile, nodes);
	for (uint32_t i = 0; i < nodes; i++)
		send_at(0, i, (i + 2) % nodes, 30);
	play();
}

TEST(a_ring_without_virtual_channels_deadlocks_and_says_who_waits_for_whom)
{
	char *text;
	size_t len;
	ring(BARE "width=4,wrap=1,channels=1", 4);
	CHECK_IS(blocked, 1);
	CHECK_IS(m.shared->underway, 4);
	FILE *f = open_memstream(&text, &len);
	mesh_network.stuck(&m, f);
	fclose(f);
	CHECK(strstr(text,
		     "the packet from node 1 to node 3 holds the link into node 1 (channel 0), "
		     "right of node 1 (channel 0), and waits for the link right of node 2 "
		     "(channel 0), which the packet from node 2 to node 0 holds\n"));
	free(text);
}

TEST(a_ring_with_virtual_channels_does_not_deadlock)
{
	ring(BARE "width=4,wrap=1,channels=2", 4);
	CHECK_IS(blocked, 0);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_IS(count[i], 1);
	ring(BARE "width=16,wrap=1,channels=4", 16);
	CHECK_IS(blocked, 0);
	CHECK_IS(m.shared->underway, 0);
}

static void random_traffic(const char *profile, uint64_t seed, unsigned packets, uint32_t span)
{
	struct chance c = { seed };
	begin_with(profile, 64);
	for (unsigned i = 0; i < packets; i++) {
		send_at(chance_below(&c, span) * CYCLE, chance_below(&c, 64), chance_below(&c, 64),
			1 + chance_below(&c, 40));
		m.travel[i].class = chance_below(&c, 2) ? CLASS_REPLY : CLASS_REQUEST;
	}
	play();
	CHECK_IS(blocked, 0);
}

TEST(every_flit_that_enters_leaves_once_and_no_channel_is_left_taken)
{
	for (unsigned wrap = 0; wrap < 2; wrap++) {
		random_traffic(wrap ? BARE "wrap=1,channels=4" : BARE "channels=2", check_seed(),
			       2000, 2000);
		struct mesh_view v = mesh_view(&m);
		CHECK_IS(v.mesh->injected, v.mesh->ejected);
		CHECK_IS(v.mesh->worms, 0);
		CHECK_IS(m.shared->underway, 0);
		uint64_t in = 0, out = 0;
		for (uint32_t n = 0; n < 64; n++) {
			in += v.link[n * PORTS + PORT_IN].carried;
			out += v.link[n * PORTS + PORT_OUT].carried;
		}
		CHECK_IS(in, v.mesh->injected);
		CHECK_IS(out, v.mesh->injected);
		for (uint32_t i = 0; i < 64 * PORTS * m.profile.channels; i++)
			CHECK(v.channel[i].worm == NOTHING && v.channel[i].flits == 0);
		for (uint32_t i = 0; i < 64 * PORTS; i++)
			CHECK(v.link[i].worms == 0 && v.link[i].lone == NOTHING);
	}
}

TEST(worms_that_move_as_one_take_the_cycles_that_they_take_flit_by_flit)
{
	static uint64_t first[PLAY_NODES][PLAY_PACKETS];
	for (uint32_t span = 500; span < 500000; span *= 4) {
		uint64_t seed = check_seed() + span;
		random_traffic(BARE "whole=0", seed, 1000, span);
		memcpy(first, came, sizeof came);
		uint64_t flits = mesh_view(&m).mesh->moved;
		random_traffic(BARE "whole=1", seed, 1000, span);
		struct mesh_view v = mesh_view(&m);
		CHECK(memcmp(first, came, sizeof came) == 0);
		CHECK_IS(v.mesh->moved + v.mesh->skipped, flits);
		if (span > 100000)
			CHECK(v.mesh->skipped > v.mesh->moved);
	}
}
