/* SPDX-License-Identifier: BSD-3-Clause */
/* What each strategy of flow promises, between two ends in one thread whose wire is a queue. */
#include "lib/flow_sides.h"
#include "service/order.h"

static void all_arrive_in_order(const char *strategy, unsigned lose)
{
	sides_open(strategy, lose);
	uint64_t sent = 0;
	for (unsigned looks = 0; side[1].next[STREAM_REQUESTS] < MESSAGES; looks++) {
		while (sent < MESSAGES && put(&side[0], &side[0].lanes[1], sent))
			sent++;
		sides_look();
		if (looks % 10 == 0) /* it is slow, so that it is full */
			drink(&side[1], STREAM_REQUESTS, 50);
	}
	CHECK_IS(counted(0, PULSE_PACKETS_MALFORMED) + counted(1, PULSE_PACKETS_MALFORMED), 0);
	while (!packet_settled(&side[0].net.net, false))
		sides_look();
	const struct order *order = order_of(path_of(&side[1])); /* NULL without that service */
	CHECK(!order || order->kept <= ORDER_KEPT);
	sides_close();
}

TEST(each_strategy_has_a_number_of_its_own)
{
	unsigned seen = 0, found = 0;
	for (unsigned i = 0; service_all[i]; i++) {
		const struct service *s = service_all[i];
		if (s->kind != SERVICE_FLOW)
			continue;
		CHECK(s->number < FLOW_NUMBERS && !(seen >> s->number & 1));
		seen |= 1u << s->number;
		found++;
	}
	CHECK_IS(found, STRATEGIES);
}

TEST(with_each_strategy_everything_arrives_once_and_in_order)
{
	for (unsigned i = 0; i < STRATEGIES; i++)
		all_arrive_in_order(strategies[i], 0);
}

TEST(with_each_strategy_everything_arrives_when_packets_are_lost)
{
	for (unsigned i = 0; i < STRATEGIES; i++)
		all_arrive_in_order(strategies[i], 10);
}

TEST(so_do_short_messages)
{
	plain = true;
	for (unsigned i = 0; i < STRATEGIES; i++)
		for (unsigned lose = 3; lose <= 27; lose *= 3)
			all_arrive_in_order(strategies[i], lose);
	plain = false;
}

TEST(without_order_credits_lose_nothing_either)
{
	plain = mixed = true;
	setenv("TERN_SERVICE", "flow,retry", 1);
	for (unsigned lose = 3; lose <= 27; lose *= 3)
		all_arrive_in_order("credit", lose);
	unsetenv("TERN_SERVICE");
	plain = mixed = false;
}

TEST(what_tries_makes_up_for_loss_by_itself)
{
	setenv("TERN_SERVICE", "flow", 1);
	for (unsigned i = FIRST_TRY; i <= LAST_TRY; i++)
		all_arrive_in_order(strategies[i], 10);
	unsetenv("TERN_SERVICE");
}

static void requests_run_once(uint64_t *sent)
{
	while (put(&side[0], &side[0].lanes[1], *sent))
		++*sent;
	sides_look();
	drink(&side[1], STREAM_REQUESTS, UINT32_MAX);
}

/*
 * Requests from side 0, all handled, until no place for a payload is left, or fewer than a packet
 * has, and all dates of those that came are past.
 */
static void requests_run(uint64_t *sent)
{
	enum { QUIET_NS = 5000000 };
	unsigned before = 0;
	while (keeps < LANDING - MOST / PAYLOAD)
		requests_run_once(sent);
	for (uint64_t end = clock_ns() + QUIET_NS; clock_ns() < end;) {
		requests_run_once(sent);
		end = keeps > before ? clock_ns() + QUIET_NS : end;
		before = keeps;
	}
}

/* Few blocks are given back, as two packets need: they are used all the same. */
static void few_go_on(uint64_t *sent)
{
	enum { LOOKS = 200000 };
	for (unsigned i = 0; i < 2 * MOST / PAYLOAD; i++)
		block_set(kept[--keeps], BLOCK_FREE);
	uint64_t goal = side[1].next[STREAM_REQUESTS] + 100;
	for (unsigned i = 0; i < LOOKS && side[1].next[STREAM_REQUESTS] < goal; i++)
		requests_run_once(sent);
	CHECK(side[1].next[STREAM_REQUESTS] >= goal);
}

/* Nobody tells that a block was given back: it must be looked for. */
static void payloads_go_on(const char *strategy)
{
	uint64_t sent = 0;
	sides_open(strategy, 0);
	keeping = true;
	keeps = 0;
	requests_run(&sent);
	keeping = false;
	CHECK(keeps >= LANDING - MOST / PAYLOAD);
	few_go_on(&sent);
	for (unsigned i = 0; i < keeps; i++)
		block_set(kept[i], BLOCK_FREE);
	uint64_t stopped = side[1].next[STREAM_REQUESTS];
	while (side[1].next[STREAM_REQUESTS] < stopped + 100)
		requests_run_once(&sent);
	sides_close();
}

TEST(with_each_strategy_payloads_go_on_when_the_blocks_of_others_are_given_back)
{
	for (unsigned i = 0; i < STRATEGIES; i++)
		payloads_go_on(strategies[i]);
}

static void reply_passes(const char *strategy)
{
	sides_open(strategy, 0);
	requests_fill(0);
	REQUIRE(put(&side[1], &side[1].lanes[0], 0)); /* rank 1 asks, */
	while (side[0].next[STREAM_REQUESTS] == 0) {
		sides_look();
		drink(&side[0], STREAM_REQUESTS, 1);
	}
	side[1].next[STREAM_REPLIES] = 1; /* 0 would have a payload, and requests have all blocks */
	REQUIRE(put(&side[0], &side[0].peers[1].answer, 1)); /* and is answered, */
	while (side[1].next[STREAM_REPLIES] == 1) {
		sides_look();
		drink(&side[1], STREAM_REPLIES, 1);
	}
	CHECK_IS(side[1].next[STREAM_REQUESTS], 0); /* though it has handled no request */
	sides_close();
}

TEST(with_each_strategy_a_reply_passes_requests_that_find_no_room)
{
	for (unsigned i = 0; i < STRATEGIES; i++)
		reply_passes(strategies[i]);
}

/* How often a receiver that handles nothing, and is full, has had to refuse. */
static uint64_t refusals(const char *strategy, uint64_t *again)
{
	sides_open(strategy, 0);
	uint64_t sent = requests_fill(0);
	CHECK(sent > 0);
	uint64_t refused = counted(1, PULSE_PACKETS_REFUSED);
	*again = counted(0, PULSE_PACKETS_AGAIN);
	while (side[1].next[STREAM_REQUESTS] < sent) {
		sides_look();
		drink(&side[1], STREAM_REQUESTS, 10);
	}
	sides_close();
	return refused;
}

TEST(only_who_tries_is_refused_and_sends_again)
{
	for (unsigned i = 0; i < STRATEGIES; i++) {
		uint64_t again, refused = refusals(strategies[i], &again);
		bool tries = i >= FIRST_TRY && i <= LAST_TRY;
		CHECK_IS(refused != 0, tries);
		if (tries && strcmp(strategies[i], "drop") !=
				     0) /* which waits for its timer; and so does retry */
			CHECK(again != 0);
		/* One packet until something is taken, and retry's; not all that there is. */
		CHECK(again <= 3 * refused);
	}
}

TEST(only_return_brings_bytes_back)
{
	for (unsigned i = FIRST_TRY; i <= LAST_TRY; i++) {
		uint64_t again;
		bool returns = strcmp(strategies[i], "return") == 0;
		longest = 0;
		do /* a packet that is full has no room for the way back */
			refusals(strategies[i], &again);
		while (returns && longest <= PAYLOAD);
		CHECK_IS(longest > PAYLOAD, returns);
	}
}

/*
 * What the last packet in its place carried is still written there: a message, of which only a
 * piece was sent.
 */
static void batch_spoil(struct packet_net *n, struct place at)
{
	for (unsigned i = 0; i < PACKET_BATCH; i++)
		for (unsigned stream = 0; stream < STREAMS; stream++) {
			struct slice *s = &n->batch[i].flight.slice;
			s->from[stream] = at;
			s->to[stream].offset = PAYLOAD / 2;
		}
}

TEST(of_a_packet_that_went_back_only_the_header_is_sent_again)
{
	sides_open("return", 0);
	REQUIRE(put(&side[1], &side[1].lanes[0],
		    0)); /* with a payload, a piece of which would be found */
	struct place at = path_of(&side[1])->out[STREAM_REQUESTS].next;
	sides_look();
	requests_fill(0);
	const struct transit *r = &path_of(&side[1])->transit;
	side[1].lose = 1;
	for (uint32_t next = r->next; r->next == next;) { /* until one has gone back, and is lost */
		batch_spoil(&side[1].net, at);
		sides_look();
	}
	side[1].lose = 0;
	side[1].gone = side[1].came;
	longest = 0;
	for (uint64_t again = counted(1, PULSE_PACKETS_AGAIN);
	     counted(1, PULSE_PACKETS_AGAIN) == again;) {
		path_mark_dirty(path_of(&side[1]));
		post_look(&side[1].net, true);
	}
	CHECK(longest && longest < PAYLOAD / 2);
	sides_close();
}

static void room_is_told(const char *strategy)
{
	enum { LOOKS = 200000, MORE = 200 };
	sides_open(strategy, 0);
	uint64_t sent = requests_fill(0), goal = sent + MORE;
	request_to_double();
	drink(&side[1], STREAM_REQUESTS, UINT32_MAX);
	look_and_double();
	for (unsigned i = 0; i < LOOKS && side[1].next[STREAM_REQUESTS] < goal; i++) {
		while (sent < goal && put(&side[0], &side[0].lanes[1], sent))
			sent++;
		sides_look();
		drink(&side[1], STREAM_REQUESTS, UINT32_MAX);
	}
	CHECK_IS(side[1].next[STREAM_REQUESTS], goal);
	CHECK(counted(0, PULSE_PACKETS_DOUBLED) > 0);
	sides_close();
}

TEST(with_each_strategy_room_is_told_though_a_packet_is_sent_again_for_nothing)
{
	for (unsigned i = 0; i < STRATEGIES; i++)
		room_is_told(strategies[i]);
}

/*
 * Room that comes up in the look before a sleep is told at its end, and if that is lost, it is told
 * again.
 */
TEST(news_of_the_last_look_before_a_sleep_have_a_date)
{
	sides_open("credit", 0);
	struct packet_net *n = &side[1].net;
	struct path *p = path_of(&side[1]);
	requests_fill(0);
	drink(&side[1], STREAM_REQUESTS, UINT32_MAX);
	REQUIRE(p->transit.next == p->transit.first);
	n->due = p->due = DUE_NEVER; /* of earlier ones */
	path_mark_dirty(p);          /* as it is while its inlet has something */
	n->resting = true;
	post_look(n, true);
	n->resting = false;
	CHECK(p->transit.next != p->transit.first);
	CHECK(post_due(n) <= p->transit.timer);
	sides_close();
}

static void taken_is_told(const char *strategy)
{
	enum { LOOKS = 200000 };
	sides_open(strategy, 0);
	const struct out *o = &path_of(&side[0])->out[STREAM_REQUESTS];
	REQUIRE(put(&side[0], &side[0].lanes[1], 1));
	path_pump(path_of(&side[0]), true);
	post_flush(&side[0].net);
	CHECK_IS(counted(0, PULSE_PACKETS_AGAIN), 0);
	request_to_double();
	look_and_double();
	CHECK_IS(requests_begun(), 1);
	for (unsigned i = 0; i < LOOKS && o->acked == ring_first_message(); i++)
		sides_look();
	CHECK_IS(o->acked - ring_first_message(), 1);
	sides_close();
}

TEST(what_was_taken_is_told_though_a_packet_is_sent_again_for_nothing)
{
	for (unsigned i = FIRST_TRY; i <= LAST_TRY; i++)
		taken_is_told(strategies[i]);
}

enum { TOKENS = 8, TOKEN_MESSAGES = 20 }; /* as token.c has them */

TEST(no_more_tokens_are_spent_than_there_are)
{
	sides_open("token", 0);
	requests_fill(0);
	const struct out *o = &path_of(&side[0])->out[STREAM_REQUESTS];
	CHECK_IS(o->may, o->sent);
	CHECK(requests_begun() > TOKENS && requests_begun() <= TOKENS * TOKEN_MESSAGES);
	sides_close();
}

TEST(a_question_goes_before_each_transfer)
{
	sides_open("permit", 0);
	REQUIRE(put(&side[0], &side[0].lanes[1], 0));
	path_pump(path_of(&side[0]), true);
	post_flush(&side[0].net);
	post_look(&side[1].net, true);
	CHECK_IS(requests_begun(), 0); /* only the question has come */
	for (int i = 0; i < 3; i++)
		sides_look();
	CHECK_IS(requests_begun(), 1);
	sides_close();
}

/*
 * What is staged is counted about; who knows that there is more must not come to think that there
 * is nothing.
 */
TEST(what_a_permission_was_not_for_stays_staged_when_it_may_wait_for_company)
{
	sides_open("permit", 0);
	struct path *p = path_of(&side[0]);
	REQUIRE(put(&side[0], &side[0].lanes[1], 1));
	path_pump(p, true); /* asks for one, */
	post_flush(&side[0].net);
	REQUIRE(put(&side[0], &side[0].lanes[1], 2));
	p->staged = 1; /* and this is less than is there */
	look_twice(&side[1]);
	path_mark_dirty(p);
	post_look(&side[0].net, false);
	post_look(&side[0].net, false);
	CHECK_IS(p->out[STREAM_REQUESTS].sent - ring_first_message(), 1);
	CHECK(p->staged > 0);
	sides_close();
}

TEST(a_sequence_is_reserved_only_when_the_last_has_been_handled)
{
	sides_open("reserve", 0);
	uint64_t first = requests_fill(0), landed = requests_begun();
	CHECK(landed && landed < first);
	drink(&side[1], STREAM_REQUESTS, (unsigned)landed - 1);
	for (int i = 0; i < 20; i++)
		sides_look();
	CHECK_IS(requests_begun(), landed);
	drink(&side[1], STREAM_REQUESTS, 1);
	for (int i = 0; i < 20; i++)
		sides_look();
	CHECK(requests_begun() > landed);
	sides_close();
}

/* A request from side 0, which is on its way. */
static void request_leaves(uint64_t i)
{
	REQUIRE(put(&side[0], &side[0].lanes[1], i));
	path_pump(path_of(&side[0]), true);
	post_flush(&side[0].net);
}

TEST(a_packet_that_makes_no_sense_is_a_loss_where_nothing_is_sent_again)
{
	wire_provides = PROVIDES_ORDER | PROVIDES_RELIABLE;
	sides_open("credit", 0);
	struct silence *heard = &path_of(&side[1])->silence, *told = &path_of(&side[0])->silence;
	request_leaves(1);
	side[1].queue[0].len--; /* its record has no end */
	look_twice(&side[1]);
	CHECK_IS(requests_begun(), 0);
	CHECK_IS(counted(1, PULSE_PACKETS_MALFORMED), 1);
	CHECK(heard->missed && heard->lossy);
	request_leaves(2);
	look_twice(&side[1]);
	CHECK_IS(requests_begun(), 0); /* nor is anything behind it taken in */
	look_twice(&side[0]);
	CHECK(told->lossy && !told->missed);
	sides_close();
	wire_provides = 0;
}

/*
 * A request of two lines, with its number; of one line in the second lap, as the first of the last
 * leaf, so that those behind it end a line later. False if there is no room for it.
 */
static bool put_double(uint64_t i)
{
	struct tern_lane *lane = &side[0].lanes[1];
	uint64_t last = ring_first_leaf() + 2 * RING_LEAVES - 1;
	bool begins = lane_ready(lane) && lane->leaf == last &&
		      (size_t)(lane->tail - lane->base) % (lane->leaf_lines * TERN_LINE) == 0;
	unsigned n = begins ? 2 : TERN_WORDS_MAX;
	struct parcel p = { .bits = 5 << TERN_ID_SHIFT | n, .n = n };
	p.word[0] = i;
	if (!lane_ready(lane))
		return false;
	lane_put(lane, &p);
	path_of(&side[0])->staged += 2 * TERN_LINE;
	return true;
}

/*
 * The ring is full and all of it was sent, so that the credit line behind its last leaf is not
 * there yet when that leaf is given back. Four leaves later a second line is written where that
 * line is.
 */
TEST(what_is_sent_next_is_found_behind_a_turn_that_came_late)
{
	enum { ROUNDS = 1000 };
	uint64_t put = 0;
	plain = true;
	sides_open("credit", 0);
	const struct tern_lane *lane = &side[0].lanes[1];
	for (; lane->leaf < ring_first_leaf() + RING_LEAVES - 1; put++)
		REQUIRE(put_double(put));
	path_pump(path_of(&side[0]), true);
	post_flush(&side[0].net);
	post_look(&side[1].net, true);
	drink(&side[1], STREAM_REQUESTS, MESSAGES); /* and nobody tells side 0 */
	for (; put_double(put); put++)
		;
	path_pump(path_of(&side[0]), true);
	post_flush(&side[0].net);
	post_look(&side[1].net, true);
	drink(&side[1], STREAM_REQUESTS, MESSAGES);
	CHECK_IS(side[1].next[STREAM_REQUESTS], put);
	look_twice(&side[1]); /* all leaves are given back */
	look_twice(&side[0]);
	for (; put_double(put); put++)
		;
	for (unsigned i = 0; i < ROUNDS && side[1].next[STREAM_REQUESTS] < put; i++) {
		sides_look();
		drink(&side[1], STREAM_REQUESTS, MESSAGES);
	}
	CHECK_IS(side[1].next[STREAM_REQUESTS], put);
	sides_close();
	plain = false;
}
