/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads that lie in the ring behind their messages: room, leaves, and what they leave there. */
#include "lib/ring_play.h"

TEST(a_payload_without_room_behind_its_message_goes_on_in_the_next_leaf)
{
	ring_open(REQUEST_LEAF_LINES);
	ring.lane.carries = true;
	const size_t lines = carry_bytes(TERN_CARRY_MAX) / TERN_LINE,
		     most = (REQUEST_LEAF_LINES - LEAF_KEPT) / lines;
	carried_make(0);
	struct parcel p = parcel_make(KINDS + 1, 0);
	p.carried = true;
	p.len = TERN_CARRY_MAX;
	for (size_t i = 0; i < RING_LEAVES * most; i++) {
		REQUIRE(lane_carries(&ring.lane, TERN_CARRY_MAX));
		lane_put(&ring.lane, &p);
		CHECK_IS(ring.lane.leaf, i / most);
		CHECK_IS(lane_sent(&ring.lane), i + 1);
	}
	CHECK(!lane_carries(&ring.lane, TERN_CARRY_MAX));
	CHECK(lane_ready(&ring.lane)); /* for a message without */
	CHECK_IS(inlet_lying(&ring.inlet), RING_LEAVES * most);
}

/* What a payload left in the ring a lap ago looks like a header, wherever the next message ends. */
TEST(old_payloads_are_never_mistaken_for_headers)
{
	struct chance c = { check_seed() };
	for (unsigned round = 0; round < check_scaled(400) + 20; round++) {
		ring_open(REPLY_LEAF_LINES);
		ring.lane.carries = true;
		for (unsigned i = 0; i < 4 * RING_LEAVES * REPLY_LEAF_LINES; i++) {
			unsigned lap = i / (RING_LEAVES * REPLY_LEAF_LINES);
			unsigned kind = chance_below(&c, lap % 2 ? KINDS : ALL_KINDS);
			REQUIRE(ring_send(kind));
			REQUIRE(ring_receive(kind));
			REQUIRE(!inlet_arrived(&ring.inlet) ||
				inlet_has(&ring.inlet)); /* a credit line */
			REQUIRE(!ring_take());
			REQUIRE(!inlet_arrived(&ring.inlet));
		}
	}
}
