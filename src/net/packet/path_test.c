/* SPDX-License-Identifier: BSD-3-Clause */
/* What is staged for a peer: when it leaves, and when all of it has come. */
#include "net/packet/path.h"

#include <errno.h>

#include "lib/flow_sides.h"

enum {
	AHEAD = 4, /* packets that a message does not wait for, */
	WIDE = 1000,
	LINGER_NS = 20000, /* and how long it waits for company, as in packet.c */
	LOOKS = 100,
	RELIABLE = PROVIDES_RELIABLE | PROVIDES_ORDER
};

static unsigned rooms; /* packets that the wire has room for */
static bool has_card, shut;
static struct wire_ops narrow_ops;
static struct path *path;

static size_t narrow_most(struct wire *w, uint32_t rank)
{
	(void)w, (void)rank;
	return has_card ? WIDE : 0;
}

static bool narrow_room(struct wire *w, uint32_t rank)
{
	(void)w, (void)rank;
	CHECK_IS(side[0].net.filled, 0); /* it knows what was sent */
	return rooms && rooms--;
}

static bool guard_open(struct packet_net *n, uint32_t rank)
{
	(void)n, (void)rank;
	return !shut;
}

static struct guard_ops guard_ops;

static void begin(unsigned provides)
{
	wire_provides = provides;
	plain = true;
	rooms = UINT32_MAX;
	has_card = true;
	shut = false;
	sides_open(strategies[0], 0);
	narrow_ops = queue_ops;
	narrow_ops.most = narrow_most;
	narrow_ops.room = narrow_room;
	side[0].wire.ops = &narrow_ops;
	guard_ops = no_guard;
	guard_ops.open = guard_open;
	side[0].net.guard = &guard_ops;
	path = path_of(&side[0]);
}

static uint64_t sent(void)
{
	return counted(0, PULSE_PACKETS_SENT);
}

/* Writes `n` requests, each of which is announced. */
static void say(unsigned n)
{
	static uint64_t number;
	for (; n; n--) {
		REQUIRE(put(&side[0], &side[0].lanes[1], number++));
		packet_knock(&side[0].net.net, &side[0].lanes[1]);
	}
}

static void look(bool all)
{
	post_look(&side[0].net, all);
}

static void linger(void)
{
	for (uint64_t end = clock_ns() + LINGER_NS; clock_ns() < end;)
		;
}

/* -- When a packet leaves ---------------------------------------------------------------------- */

TEST(of_a_burst_the_first_packets_leave_at_once_and_the_rest_in_one)
{
	for (unsigned reliable = 0; reliable < 2; reliable++) {
		begin(reliable ? RELIABLE : 0);
		look(true); /* the first one looks after everything */
		for (unsigned i = 0; i < AHEAD; i++) {
			say(1);
			CHECK_IS(sent(), i + 1);
		}
		say(5);
		CHECK_IS(sent(), AHEAD);
		look(false);
		CHECK_IS(sent(), AHEAD);
		look(true);
		CHECK_IS(sent(), AHEAD + 1);
		CHECK(!path->staged && !path->staged_messages);
		say(1); /* a look has passed; where packets are acknowledged, none of them is */
		CHECK_IS(sent(), AHEAD + 1 + reliable);
		sides_close();
	}
}

TEST(a_message_does_not_wait_for_company_for_long)
{
	for (unsigned reliable = 0; reliable < 2; reliable++) {
		begin(reliable ? RELIABLE : 0);
		say(AHEAD + 2);
		CHECK_IS(sent(), AHEAD);
		linger();
		say(1);
		CHECK_IS(sent(), AHEAD + 1);
		CHECK(!path->staged);
		sides_close();
	}
}

TEST(a_packet_that_is_full_leaves)
{
	begin(0);
	path->most = WIDE;
	path->staged = WIDE / 4 * 3 - 1;
	path->staged_messages = side[0].net.records - 1;
	CHECK(!path_full(path));
	path->staged++;
	CHECK(path_full(path));
	path->staged--;
	path->staged_messages++;
	CHECK(path_full(path));
	sides_close();
}

TEST(a_packet_that_would_have_nothing_in_it_is_not_sent)
{
	begin(RELIABLE);
	look(true);
	path->staged = 5; /* it is only about right */
	path_mark_dirty(path);
	look(true);
	CHECK_IS(sent(), 0);
	CHECK_IS(path->staged, 0);
	sides_close();
}

TEST(what_the_wire_has_no_room_for_stays_and_leaves_when_it_has)
{
	enum { SAID = 100, FIRST = (WIDE - PACKET_FRONT - PACKET_TAG) / 10 };
	for (unsigned reliable = 0; reliable < 2; reliable++) {
		begin(reliable ? RELIABLE : 0);
		rooms = 0;
		say(SAID);
		look(true);
		CHECK_IS(sent(), 0);
		CHECK_IS(path->staged_messages, SAID);
		size_t staged = path->staged;
		rooms = 1;
		look(true);
		CHECK_IS(sent(), 1);
		CHECK_IS(path->staged_messages, SAID - FIRST);
		CHECK_IS(path->staged, staged - FIRST * 10);
		rooms = UINT32_MAX;
		look(true);
		CHECK_IS(sent(), 2);
		CHECK(!path->staged && !path->staged_messages);
		sides_close();
	}
}

TEST(more_than_was_thought_to_be_staged_leaves_too)
{
	begin(RELIABLE);
	rooms = 0;
	say(100);
	path->staged = path->staged_messages = 1;
	rooms = 1;
	look(true);
	CHECK(path->staged == 1 && !path->staged_messages);
	rooms = UINT32_MAX;
	look(true);
	CHECK_IS(sent(), 2);
	sides_close();
}

TEST(to_a_peer_without_a_card_or_a_key_nothing_leaves_and_it_is_looked_for_soon)
{
	for (unsigned keyless = 0; keyless < 2; keyless++) {
		begin(0);
		has_card = keyless;
		shut = keyless;
		say(1);
		look(true);
		CHECK_IS(sent(), 0);
		CHECK(path->staged && path->dirty && !path->most);
		CHECK_IS(path->due, side[0].net.now + CARD_NS);
		CHECK(side[0].net.due <= path->due);
		has_card = true;
		shut = false;
		look(true);
		CHECK_IS(sent(), 1);
		CHECK_IS(path->most, WIDE);
		sides_close();
	}
}

TEST(who_waits_for_an_answer_alone_is_looked_after_when_that_is_late)
{
	begin(0);
	say(1);
	CHECK(!path->dirty && path->transit.timer);
	CHECK_IS(path->due, path->transit.timer);
	look(true);
	CHECK_IS(path->due, path->transit.timer);
	CHECK(side[0].net.due <= path->due);
	path_wake(path, 5);
	CHECK(path->due == 5 && side[0].net.due == 5);
	path_wake(path, 6);
	CHECK(path->due == 6 && side[0].net.due == 5);
	sides_close();
}

/* -- When all has come ------------------------------------------------------------------------- */

/* Looks until what was marked has come. */
static void land(void)
{
	for (unsigned i = 0; i < LOOKS && !path_landed(path); i++)
		sides_look();
	CHECK(path_landed(path));
}

TEST(what_was_marked_has_landed_when_it_is_acknowledged_and_not_before)
{
	begin(0);
	CHECK(path_quiet(path));
	path_mark(path);
	CHECK(path_landed(path));
	say(1);
	CHECK(path_landed(path)); /* that was written later */
	path_mark(path);
	CHECK(!path_landed(path) && !path_quiet(path));
	land();
	CHECK(path_quiet(path) && !path->confirm.asked);
	path->pending_control = 1u << NEWS_FLOW;
	CHECK(!path_quiet(path));
	sides_close();
}

TEST(where_nothing_is_acknowledged_a_question_goes_behind_what_was_marked)
{
	begin(RELIABLE);
	path_mark(path);
	CHECK(path_landed(path));
	rooms = 0;
	say(1);
	path_mark(path);
	CHECK(!path_landed(path) && !path->confirm.asked); /* it has not been sent yet */
	rooms = UINT32_MAX;
	look(true);
	CHECK_IS(path->confirm.sent, 1);
	CHECK(!path_landed(path));
	CHECK_IS(path->confirm.asked, 2);
	CHECK_IS(path->confirm.since, side[0].net.now);
	CHECK(path->dirty && path->pending_control == 1u << NEWS_ASK);
	path->confirm.sent = 9;
	path_question(path);
	CHECK_IS(path->confirm.asked, 2); /* one question at a time */
	path->confirm.sent = 1;
	land();
	CHECK(path->confirm.landed == 1 && !path->confirm.asked);
	path_mark(path);
	CHECK(path_landed(path)); /* nothing has been sent since */
	say(1);
	path_mark(path);
	CHECK(!path_landed(path));
	land();
	CHECK_IS(path->confirm.landed, 2); /* a question and its answer do not count */
	sides_close();
}

static unsigned stops;

static void stop(struct path *p)
{
	CHECK(p == path && p->gone);
	stops++;
}

TEST(to_a_peer_that_is_given_up_nothing_is_sent_and_nobody_waits_for_it)
{
	static const struct service stopping = { .stop = stop }, other;
	begin(RELIABLE);
	struct packet_net *n = &side[0].net;
	unsigned layers = n->layers;
	rooms = 0;
	say(1);
	path_mark(path);
	CHECK(!path_landed(path) && !path_quiet(path));
	n->layer[n->layers++] = &other;
	n->layer[n->layers++] = &stopping;
	path_give_up(path);
	CHECK_IS(stops, 1);
	n->layers = layers;
	rooms = UINT32_MAX;
	look(true);
	CHECK(path_landed(path) && path_quiet(path) && !path->dirty);
	CHECK_IS(sent(), 0);
	path->silence.over = VERDICT_CUT;
	n->unreachable = 1;
	atomic_store(&side[0].ranks[1].state, RANK_OPEN);
	CHECK_IS(packet_check(&n->net, NET_ALL), 1); /* it is there, and yet has left for us */
	sides_close();
}

/* -- A peer that leaves ------------------------------------------------------------------------ */

static int check(void)
{
	return packet_check(&side[0].net.net, 1);
}

static bool settled(bool late)
{
	return packet_settled(&side[0].net.net, late);
}

TEST(what_a_peer_sent_before_it_left_is_taken_first_and_then_nobody_waits_for_it)
{
	begin(RELIABLE);
	rooms = 0;
	say(1); /* nobody takes it */
	CHECK_IS(check(), 0);
	CHECK(!settled(false));
	REQUIRE(put(&side[1], &side[1].lanes[0], 0));
	path_pump(path_of(&side[1]), true);
	post_flush(&side[1].net);
	atomic_store(&side[0].ranks[1].state, RANK_CLOSED);
	CHECK_IS(check(), 0);
	look(true);
	drink(&side[0], STREAM_REQUESTS, 1);
	CHECK_IS(side[0].next[STREAM_REQUESTS], 1);
	CHECK_IS(check(), 0); /* more may have come */
	CHECK(!settled(false));
	look(true);
	CHECK_IS(check(), -ESHUTDOWN);
	CHECK(!path_quiet(path));
	CHECK(settled(false));
	sides_close();
}

TEST(who_leaves_late_does_not_wait_for_a_peer_that_computes)
{
	begin(RELIABLE);
	rooms = 0;
	say(1);
	stats_add(&side[0].pulse[1].count[PULSE_BELLS], 1); /* before this one leaves */
	CHECK(!settled(false));
	CHECK(settled(true));
	stats_add(&side[0].pulse[1].count[PULSE_BELLS], 1); /* the peer polls */
	CHECK(!settled(true));
	sides_close();
}

/* -- A thread that serves ---------------------------------------------------------------------- */

/* A send that needs no call takes one of the first at the same moment. */
TEST(a_thread_that_serves_memory_takes_none_but_the_last_blocks_of_the_pool)
{
	begin(RELIABLE);
	struct net *net = &side[0].net.net;
	struct block *b = NULL, *last = NULL;
	side[0].site.serving = true;
	for (unsigned i = TERN_POOL_BLOCKS; i < POOL_LONG; i++) {
		CHECK_IS(packet_take(net, 0, &b), 0);
		CHECK(b == pool_at(net, i));
		last = b;
	}
	CHECK_IS(packet_take(net, 0, &b), -EAGAIN);
	block_set(last, BLOCK_FREE);
	CHECK_IS(packet_take(net, 0, &b), 0);
	CHECK(b == last);
	side[0].site.serving = false;
	CHECK_IS(packet_take(net, 0, &b), 0);
	CHECK(b == pool_at(net, 0));
	sides_close();
}

/* -- Its memory -------------------------------------------------------------------------------- */

TEST(a_path_is_made_once_and_the_state_of_each_service_has_whole_lines_behind_it)
{
	begin(0);
	struct packet_net *n = &side[0].net;
	CHECK(path_to(n, 1) == path);
	CHECK_IS(n->actives, 1);
	CHECK_IS(n->layers, SERVICE_KINDS);
	size_t at = (sizeof *path + TERN_LINE - 1) / TERN_LINE * TERN_LINE;
	for (unsigned i = 0; i < n->layers; i++) {
		const struct service *s = n->layer[i];
		CHECK(s->bytes && path->state[s->kind] == (char *)path + at);
		at += (s->bytes + TERN_LINE - 1) / TERN_LINE * TERN_LINE;
	}
	sides_close();
}
