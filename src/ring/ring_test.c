/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings: laps, leaves, shared lines, and what an older lap has left. */
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"

#include "lib/ring_play.h"

TEST(a_message_of_any_kind_arrives_whole)
{
	ring_open(REQUEST_LEAF_LINES);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		CHECK(ring_send(kind));
		CHECK(ring_receive(kind));
		CHECK(!ring_take());
	}
}

TEST(small_messages_share_a_line_and_others_do_not)
{
	ring_open(REQUEST_LEAF_LINES);
	const char *at[6];
	for (int i = 0; i < 6; i++) {
		CHECK(ring_send(i < 5));
		at[i] = (const char *)ring_take();
	}
	for (int i = 1; i < 4; i++)
		CHECK_IS(at[i] - at[i - 1], TERN_PIECE);
	CHECK_IS(at[4] - at[0], TERN_LINE);
	CHECK(ring_send(2));
	CHECK_IS((const char *)ring_take() - at[0], 2 * TERN_LINE);
}

/* Every sequence of `length` of these kinds, one after another in the same ring. */
static void sequences(unsigned length, bool eager)
{
	static const unsigned kinds[] = {
		0, 1, 2, TERN_LINE_WORDS, TERN_WORDS_MAX, TERN_WORDS_MAX + 1
	};
	enum { N = sizeof kinds / sizeof *kinds };
	unsigned count = 1;
	for (unsigned i = 0; i < length; i++)
		count *= N;
	for (unsigned s = 0; s < count; s++) {
		for (unsigned i = 0, rest = s; i < length; i++, rest /= N) {
			REQUIRE(ring_send(kinds[rest % N]));
			if (eager)
				REQUIRE(ring_receive(kinds[rest % N]));
		}
		for (unsigned i = 0, rest = s; !eager && i < length; i++, rest /= N)
			REQUIRE(ring_receive(kinds[rest % N]));
		REQUIRE(!ring_take());
	}
}

TEST(every_short_sequence_of_kinds_arrives_in_order)
{
	ring_open(REQUEST_LEAF_LINES);
	for (unsigned length = 1; length <= 5; length++) {
		sequences(length, false);
		sequences(length, true);
	}
}

TEST(random_mixes_arrive_in_order_over_many_laps)
{
	struct chance c = { check_seed() };
	for (int round = 0; round < 4; round++) {
		ring_open(round & 1 ? REPLY_LEAF_LINES : REQUEST_LEAF_LINES);
		ring.lane.carries = round & 2;
		random_mix(ring.lane.leaf_lines, check_scaled(2000), &c);
	}
}

TEST(the_lap_number_wraps_unnoticed)
{
	struct chance c = { check_seed() };
	for (unsigned before = 2; before < 8; before++) {
		ring_open(REPLY_LEAF_LINES);
		ring_age(before / 2);
		ring.lane.carries = before & 1;
		random_mix(REPLY_LEAF_LINES, check_scaled(200) + 20, &c);
		CHECK(ring.lane.head >> TERN_LAP_SHIFT < 1000);
	}
}

TEST(no_lap_has_the_number_zero)
{
	uint64_t last = ~UINT64_C(0) << TERN_LAP_SHIFT | (uint64_t)SOURCE << TERN_SRC_SHIFT;
	CHECK_IS(ring_next_lap(last) >> TERN_LAP_SHIFT, 1);
	CHECK_IS(ring_next_lap(last) >> TERN_SRC_SHIFT & 0xffff, SOURCE);
	CHECK_IS(ring_lap_of(0, SOURCE) >> TERN_LAP_SHIFT, 1);
}

TEST(the_lap_of_a_leaf_is_that_of_its_messages)
{
	uint64_t laps = RING_LAPS;
	uint64_t head = ring_lap_of((laps - 2) * RING_LEAVES, SOURCE);
	for (uint64_t leaf = (laps - 2) * RING_LEAVES; leaf < (laps + 2) * RING_LEAVES; leaf++) {
		CHECK_IS(ring_lap_of(leaf, SOURCE), head);
		CHECK_IS(ring_wrapped(head, leaf),
			 leaf >= laps * RING_LEAVES && leaf < (laps + 1) * RING_LEAVES);
		if ((leaf + 1) % RING_LEAVES == 0)
			head = ring_next_lap(head);
	}
	CHECK(!ring_wrapped(ring_lap_of(0, SOURCE), 0));
}

/*
 * What the last lap left in its lines is not taken for something new in the first lap behind the
 * wrap.
 */
TEST(a_ring_that_is_empty_after_the_wrap_looks_empty)
{
	for (unsigned before = 1; before < 3; before++) {
		ring_open(REPLY_LEAF_LINES);
		ring_age(before);
		for (unsigned i = 0; i < (before + 2) * RING_LEAVES * REPLY_LEAF_LINES; i++) {
			REQUIRE(ring_send(i % KINDS));
			CHECK(inlet_arrived(&ring.inlet));
			REQUIRE(ring_receive(i % KINDS));
			CHECK_IS(inlet_arrived(&ring.inlet), inlet_has(&ring.inlet));
			REQUIRE(!ring_take());
			CHECK(!inlet_arrived(&ring.inlet));
		}
	}
}

TEST(a_ring_takes_what_fits_and_not_one_message_more)
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		ring_open(REPLY_LEAF_LINES);
		unsigned lines = REPLY_LEAF_LINES - 2;
		/* the last line of each leaf carries one message, of whatever kind */
		unsigned small = 4 * (lines - 1) + 1;
		unsigned most = words_double(kind % (TERN_WORDS_MAX + 1)) ? (lines + 1) / 2 : lines;
		CHECK_IS(fill(kind), RING_LEAVES * (kind < 2 ? small : most));
		while (ring.taken < ring.sent)
			REQUIRE(ring_receive(kind));
		CHECK(!ring_take());
	}
}

/* The last message of a leaf of one line, and of two: both lie in the leaf with their credit line.
 */
TEST(a_message_of_two_lines_lies_in_one_leaf_wherever_it_begins)
{
	enum { LEAF = REPLY_LEAF_LINES * TERN_LINE };
	for (unsigned before = 0; before < RING_LEAVES * (REPLY_LEAF_LINES - 2); before++) {
		ring_open(REPLY_LEAF_LINES);
		for (unsigned i = 0; i < before; i++)
			REQUIRE(ring_send(TERN_LINE_WORDS));
		REQUIRE(ring_send(TERN_WORDS_MAX));
		REQUIRE(lane_sent(&ring.lane) == before + 1);
		for (unsigned i = 0; i < before; i++)
			REQUIRE(ring_receive(TERN_LINE_WORDS));
		const tern_msg *m = ring_take();
		REQUIRE(m && message_is(m, TERN_WORDS_MAX, ring.taken++));
		size_t at = (size_t)((const char *)m - ring.memory);
		REQUIRE(at / LEAF == (at + 2 * TERN_LINE) / LEAF); /* and the line behind it */
		REQUIRE(!ring_take());
	}
}

TEST(messages_are_counted_whatever_their_lines)
{
	struct chance c = { check_seed() };
	ring_open(16);
	ring.lane.carries = true;
	for (unsigned i = 0; i < check_scaled(100000); i++) {
		unsigned kind = chance_below(&c, ALL_KINDS);
		REQUIRE(ring_send(kind));
		REQUIRE(lane_sent(&ring.lane) == ring.sent);
		struct tern_lane shut = ring.lane;
		lane_shut(&shut); /* as when the receiver has left */
		REQUIRE(lane_sent(&shut) == ring.sent);
		REQUIRE(ring_receive(kind));
	}
}

TEST(a_full_ring_stays_as_it_is)
{
	static char before[sizeof ring.memory];
	ring_open(REPLY_LEAF_LINES);
	fill(3);
	memcpy(before, ring.memory, sizeof before);
	for (unsigned kind = 0; kind < KINDS; kind++)
		CHECK(!ring_send(kind));
	CHECK(memcmp(before, ring.memory, sizeof before) == 0);
}

TEST(room_returns_when_a_leaf_is_given_back_and_not_before)
{
	ring_open(REPLY_LEAF_LINES);
	fill(3);
	for (unsigned i = 0; i < REPLY_LEAF_LINES - 2; i++) {
		CHECK(!lane_ready(&ring.lane));
		CHECK(ring_receive(3));
	}
	CHECK(!lane_ready(&ring.lane));
	CHECK(ring_receive(3)); /* the first of the next leaf: the credit line was met */
	CHECK(lane_ready(&ring.lane));
	CHECK_IS(fill(3), REPLY_LEAF_LINES - 2);
}

TEST(a_ready_lane_has_room_for_a_message_of_any_kind_wherever_it_stands)
{
	for (unsigned last = 0; last < KINDS; last++)
		for (unsigned before = 0; before < 8 * REPLY_LEAF_LINES; before++) {
			ring_open(REPLY_LEAF_LINES);
			for (unsigned i = 0; i < before; i++)
				REQUIRE(ring_send(i % 2));
			if (!lane_ready(&ring.lane))
				break;
			struct parcel p = parcel_make(last, ring.sent);
			lane_put(&ring.lane, &p);
			for (unsigned i = 0; i < before; i++)
				REQUIRE(ring_receive(i % 2));
			REQUIRE(ring_receive(last));
			REQUIRE(!ring_take());
		}
}

TEST(a_lane_that_is_stuck_closes_its_gate_and_no_other_does)
{
	ring_open(REPLY_LEAF_LINES);
	struct tern_inlet gate = { .accept = TERN_HEAD_PLAIN };
	ring.lane.gate = &gate;
	unsigned capacity = RING_LEAVES * (REPLY_LEAF_LINES - 2);
	for (unsigned i = 0; i < capacity; i++) {
		CHECK(gate.accept);
		CHECK(ring_send(3));
	}
	CHECK_IS(gate.accept, 0);
	CHECK(!lane_ready(&ring.lane));
}

/* Words that look like the headers of every lap to come: taken for one, they would be messages. */
TEST(words_are_never_mistaken_for_headers)
{
	ring_open(REPLY_LEAF_LINES);
	struct chance c = { check_seed() };
	for (unsigned i = 0; i < check_scaled(20000); i++) {
		uint64_t head =
			chance_one_in(&c, 2) ? ring.lane.head : ring_next_lap(ring.lane.head);
		struct parcel p = { .n = chance_below(&c, TERN_WORDS_MAX + 1) };
		for (unsigned w = 0; w < p.n; w++)
			p.word[w] = head | HANDLER << TERN_ID_SHIFT | TERN_HEAD_PIECE | 1;
		p.bits = HANDLER << TERN_ID_SHIFT | p.n;
		REQUIRE(ring_send_parcel(&p));
		const tern_msg *m = ring_take();
		REQUIRE(m && tern_msg_count(m) == p.n);
		REQUIRE(!ring_take());
	}
}

TEST(a_message_of_another_source_does_not_look_like_one)
{
	ring_open(REPLY_LEAF_LINES);
	ring.lane.head ^= UINT64_C(1) << TERN_SRC_SHIFT;
	CHECK(ring_send(2));
	uint64_t x = atomic_load(&inlet_at(&ring.inlet)->head) ^ ring.inlet.expect;
	CHECK(x >= TERN_HEAD_PLAIN);
	CHECK(!inlet_control(&ring.inlet, x));
}

TEST(an_unknown_control_header_is_refused)
{
	ring_open(REPLY_LEAF_LINES);
	char *cursor = ring.inlet.cursor;
	CHECK(!inlet_control(&ring.inlet, TERN_HEAD_SECOND));
	CHECK(!inlet_control(&ring.inlet, TERN_HEAD_CONTROL | CONTROL_NEXT << TERN_ID_SHIFT | 7));
	CHECK(!inlet_control(&ring.inlet, TERN_HEAD_CONTROL | TERN_HEAD_PAYLOAD |
						  CONTROL_NEXT << TERN_ID_SHIFT));
	CHECK(!inlet_control(&ring.inlet, HANDLER << TERN_ID_SHIFT));
	CHECK(ring.inlet.cursor == cursor);
}

/* -- Rings that grow ------------------------------------------------------------- */

static struct {
	_Alignas(64) char memory[RING_LEAVES * REQUEST_LEAF_LINES * TERN_LINE];
	_Atomic uint64_t freed;
	bool there;     /* there is memory */
	unsigned asked; /* for it, so often */
} larger;

static bool larger_find(const struct ring_growth *g, const struct tern_lane *lane,
			struct ring_memory *m)
{
	(void)g, (void)lane;
	larger.asked++;
	*m = (struct ring_memory){ larger.memory, REQUEST_LEAF_LINES, &larger.freed };
	return larger.there;
}

static struct ring_growth growth = { .larger = larger_find };

static void ring_open_small(uint32_t leaf_lines, uint64_t leaves, bool there)
{
	ring_open(leaf_lines);
	memset(&larger, 0, sizeof larger);
	larger.there = there;
	growth.leaves = leaves;
	ring.lane.growth = &growth;
	inlet_may_grow(&ring.inlet,
		       &(struct ring_memory){ larger.memory, REQUEST_LEAF_LINES, &larger.freed });
}

TEST(a_ring_that_grows_at_any_leaf_keeps_all_messages_in_order)
{
	struct chance c = { check_seed() };
	for (uint32_t lines = LEAF_KEPT; lines < 6; lines++)
		for (uint64_t leaves = 1; leaves < 4 * RING_LEAVES; leaves++) {
			ring_open_small(lines, leaves, true);
			random_mix(lines, 40, &c);
			CHECK_IS(lane_sent(&ring.lane), ring.sent);
			random_mix(REQUEST_LEAF_LINES, 20, &c);
			CHECK_IS(lane_sent(&ring.lane), ring.sent);
			CHECK(larger.asked == 1 && ring.lane.base == larger.memory);
		}
}

TEST(a_ring_that_grows_while_the_lap_number_wraps_keeps_all_messages_in_order)
{
	struct chance c = { check_seed() };
	for (uint64_t leaves = 1; leaves < 4 * RING_LEAVES; leaves++) {
		ring_open_small(4, leaves, true);
		ring_age(2);
		random_mix(4, 40, &c);
		random_mix(REQUEST_LEAF_LINES, 20, &c);
		CHECK(ring.lane.base == larger.memory && ring.lane.head >> TERN_LAP_SHIFT < 1000);
	}
}

TEST(a_full_ring_grows_at_once_and_one_without_memory_stays_as_it_is)
{
	ring_open_small(4, UINT64_MAX, true);
	CHECK_IS(fill(3), RING_LEAVES * (2 + REQUEST_LEAF_LINES - 2));
	CHECK_IS(inlet_lying(&ring.inlet), ring.sent);
	while (ring.taken < ring.sent)
		REQUIRE(ring_receive(3));
	CHECK(!ring_take());
	CHECK_IS(ring.freed, RING_MOVED);
	ring_open_small(4, 1, false);
	struct chance c = { check_seed() };
	random_mix(4, 1000, &c);
	CHECK(larger.asked == 1 && ring.lane.base == ring.memory);
}

TEST(a_ring_that_has_grown_does_not_grow_again)
{
	ring_open_small(4, 1, true);
	fill(3);
	char *cursor = ring.inlet.cursor;
	uint64_t grow = TERN_HEAD_CONTROL | CONTROL_GROW << TERN_ID_SHIFT;
	CHECK(!inlet_grown(&ring.inlet, grow | 7));
	CHECK(ring.inlet.cursor == cursor);
	while (ring.taken < ring.sent)
		REQUIRE(ring_receive(3));
	cursor = ring.inlet.cursor;
	CHECK(!inlet_grown(&ring.inlet, grow) && ring.inlet.cursor == cursor);
}

/* -- Two threads ----------------------------------------------------------------- */

static unsigned thread_messages;

static unsigned kind_of(uint64_t number)
{
	uint64_t r = chance_of(99, number);
	return (unsigned)(r & 64 ? r % 2 : r % ALL_KINDS);
}

static void *produce(void *arg)
{
	while (ring.sent < thread_messages)
		if (!ring_send(kind_of(ring.sent)))
			sched_yield();
	return arg;
}

static void two_threads(void)
{
	pthread_t producer;
	REQUIRE(pthread_create(&producer, NULL, produce, NULL) == 0);
	while (ring.taken < thread_messages) {
		const tern_msg *m = ring_take();
		if (!m) {
			sched_yield();
			continue;
		}
		REQUIRE(message_is(m, kind_of(ring.taken), ring.taken));
		ring.taken++;
	}
	pthread_join(producer, NULL);
	CHECK(!ring_take());
}

TEST(what_one_thread_writes_another_reads_whole_and_in_order)
{
	thread_messages = check_scaled(1000000);
	ring_open(REQUEST_LEAF_LINES);
	ring.lane.carries = true;
	two_threads();
}

TEST(the_same_holds_while_the_ring_grows)
{
	thread_messages = 2000;
	for (unsigned i = 0; i < check_scaled(200) + 20; i++) {
		ring_open_small(3 + i % 3, i % 40, true);
		two_threads();
		CHECK(ring.inlet.base == larger.memory);
	}
}

TEST(what_lies_in_a_ring_is_counted_without_being_taken)
{
	struct chance c = { 11 };
	ring_open(16);
	ring.lane.carries = true;
	for (unsigned n = 0; n < 20000; n++) {
		while (chance_below(&c, 3) && ring_send(chance_below(&c, ALL_KINDS)))
			;
		CHECK_IS(inlet_lying(&ring.inlet), ring.sent - ring.taken);
		if (chance_below(&c, 2) && ring_take())
			ring.taken++;
	}
}

/* What a send fetches behind a leaf that has taken so many times 25 to 40 ns. */
static unsigned ahead_after(unsigned age)
{
	uint64_t leaf = ring.lane.leaf;
	while (ring.lane.leaf == leaf) {
		ring.lane.entered = (uint16_t)(tick_now() / (TICKS_BRIEF / 160) - age);
		REQUIRE(ring_send(4) && ring_receive(4));
	}
	return ring.lane.ahead;
}

TEST(a_send_fetches_ahead_in_a_stream_and_nowhere_else)
{
	unsigned streams = 0;
	ring_open(REQUEST_LEAF_LINES);
	CHECK_IS(ahead_after(2 * REQUEST_LEAF_LINES), 0);
	for (int i = 0; i < 1000 && !streams; i++) /* another program may have the core */
		streams = ahead_after(REQUEST_LEAF_LINES / 2);
	if (CHECK_SLOWER == 1) /* a send that is watched is no stream */
		CHECK_IS(streams, (TERN_PREFETCH + 1) * TERN_LINE);
	CHECK_IS(ahead_after(2 * REQUEST_LEAF_LINES), 0);
}
