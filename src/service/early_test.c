/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that come early, twice or not at all, and what is passed up of them. */
#include "base/chance.h"
#include "base/threshold.h"
#include "lib/ends.h"

static void order_begin(unsigned packets)
{
	open_ends(&order_service, NULL);
	for (unsigned i = 0; i < packets; i++)
		send(0, i, &letter[i]);
}

TEST(packets_that_come_in_any_order_are_passed_up_in_theirs)
{
	enum { PACKETS = ORDER_HELD };
	unsigned turn[PACKETS];
	struct chance c = { .state = check_seed() };
	order_begin(PACKETS);
	for (unsigned i = 0; i < PACKETS; i++)
		turn[i] = i;
	for (unsigned i = PACKETS - 1; i; i--) {
		unsigned j = (unsigned)chance_below(&c, i + 1), kept = turn[i];
		turn[i] = turn[j];
		turn[j] = kept;
	}
	unsigned early = 0, next = 0;
	for (unsigned i = 0; i < PACKETS; i++) {
		CHECK(bring(1, &letter[turn[i]]));
		early += turn[i] != next;
		next = end[1].count;
		CHECK(bring(1, &letter[turn[i]])); /* and again, for nothing */
		CHECK_IS(end[1].count, next);
	}
	check_in_order(1, PACKETS);
	CHECK_IS(counted(1, PULSE_PACKETS_EARLY), early);
	CHECK_IS(order_of(end[1].path)->holds, 0);
	CHECK(order_of(end[1].path)->kept <= ORDER_KEPT);
	order_service.close(end[1].path);
	CHECK_IS(order_of(end[1].path)->kept, 0);
}

TEST(a_packet_that_is_too_far_ahead_is_not_taken)
{
	order_begin(ORDER_HELD + 1);
	CHECK(!bring(1, &letter[ORDER_HELD]));
	CHECK(bring(1, &letter[ORDER_HELD - 1]));
	CHECK_IS(end[1].count, 0);
	CHECK(bring(1, &letter[0]));
	CHECK(bring(1, &letter[ORDER_HELD]));
	for (unsigned i = 1; i < ORDER_HELD - 1; i++)
		CHECK(bring(1, &letter[i]));
	check_in_order(1, ORDER_HELD + 1);
}

TEST(a_packet_without_a_number_is_dropped)
{
	order_begin(1);
	letter[0].len = 3;
	CHECK(bring(1, &letter[0]));
	CHECK_IS(end[1].count, 0);
	CHECK_IS(order_of(end[1].path)->expected, 0);
}

TEST(a_packet_that_is_refused_above_is_offered_again)
{
	order_begin(4);
	CHECK_IS(order_service.tick(end[1].path, now), DUE_NEVER);
	end[1].refuses = true;
	CHECK(!bring(1, &letter[0]));
	CHECK(bring(1, &letter[1]));
	CHECK(bring(1, &letter[2]));
	CHECK_IS(order_service.tick(end[1].path, now), DUE_NEVER); /* the first has to come again */
	end[1].refuses = false;
	CHECK(bring(1, &letter[0]));
	check_in_order(1, 3);
	CHECK_IS(order_of(end[1].path)->holds, 0);
}

static unsigned let_through; /* packets, before the receiver refuses */

static bool pass_few(struct path *p, struct arrival *a, unsigned level)
{
	return let_through && let_through-- && pass_up(p, a, level);
}

TEST(packets_whose_turn_has_come_while_their_receiver_had_no_room_wait_for_the_next_tick)
{
	order_begin(4);
	end[1].net->up[0] = pass_few;
	let_through = 2;
	for (unsigned i = 4; i--;)
		CHECK(bring(1, &letter[i]));
	check_in_order(1, 2);
	CHECK_IS(order_service.tick(end[1].path, now), now); /* refused once more: at once again */
	let_through = 1;
	CHECK_IS(order_service.tick(end[1].path, now), now);
	check_in_order(1, 3);
	let_through = 1;
	CHECK_IS(order_service.tick(end[1].path, now), DUE_NEVER);
	check_in_order(1, 4);
}

TEST(an_early_packet_that_is_longer_than_the_last_in_its_place_is_kept_whole)
{
	order_begin(0);
	struct order *o = order_of(end[1].path);
	static unsigned char bytes[DATAGRAM_MAX];
	uint32_t number = 1;
	size_t len[] = { 100, 2049, 60, DATAGRAM_MAX - 4 };
	for (unsigned i = 0; i < 4; i++) { /* each a lap of places later, so in the same place */
		memcpy(bytes, &number, 4);
		memset(bytes + 4, (int)i + 1, sizeof bytes - 4);
		struct arrival a = { .at = bytes, .len = 4 + len[i] };
		o->expected = number - 1;
		CHECK(order_service.up(end[1].path, &a, 1));
		const struct early *e = &o->held[number % ORDER_HELD];
		CHECK(e->here && e->len == len[i]);
		CHECK(e->bytes[0] == i + 1 && e->bytes[len[i] - 1] == i + 1);
		CHECK_IS(o->kept, 1);
		o->held[number % ORDER_HELD].here = false;
		o->holds--;
		number += ORDER_HELD;
	}
}
