/* SPDX-License-Identifier: BSD-3-Clause */
/* What is acknowledged, when, and what is sent again; then retry below order. */
#include "base/chance.h"
#include "lib/ends.h"

/* As in retry.c. */
enum {
	ACK_NS = 20000,
	GROUP = 16,
	HEAVY = 60 << 10,
	ACK_ONLY = 1 << 7,
	ACK_DOUBLED = 1 << 6,
	PATIENCE_FIRST = 20 * MS,
};

/* What retry has to do now: the packets that it sends. */
static unsigned tick(unsigned which, struct carried *c, unsigned most)
{
	retry_service.tick(end[which].path, now);
	return collect(which, c, most);
}

/* -- Retry: what has come ---------------------------------------------------------------------- */

/* What travels before each packet. */
struct header {
	uint8_t kind, skipped;
	uint32_t number, expected, stamp, echo;
} __attribute__((packed));

static struct header header_of(const struct carried *c)
{
	struct header h;
	memcpy(&h, c->bytes, sizeof h);
	return h;
}

static void retry_begin(unsigned packets)
{
	open_ends(&retry_service, NULL);
	for (unsigned i = 0; i < packets; i++) {
		CHECK(retry_service.ready(end[0].path));
		send(0, i, &letter[i]);
	}
}

TEST(an_acknowledgement_waits_for_company_and_not_for_long)
{
	struct carried ack;
	retry_begin(3);
	CHECK_IS(transit(0)->next, 3);
	CHECK_IS(transit(0)->timer, now + PATIENCE_FIRST);
	for (unsigned i = 0; i < 3; i++)
		CHECK(bring(1, &letter[i]));
	check_in_order(1, 3);
	CHECK_IS(transit(1)->unacked, 3);
	CHECK_IS(retry_service.tick(end[1].path, now), now + ACK_NS);
	clock_set(now + ACK_NS - 1);
	CHECK_IS(tick(1, &ack, 1), 0);
	clock_set(now + 1);
	CHECK_IS(tick(1, &ack, 1), 1);
	CHECK_IS(header_of(&ack).kind, ACK_ONLY);
	CHECK_IS(header_of(&ack).expected, 3);
	CHECK_IS(transit(1)->unacked, 0);
	CHECK(bring(0, &ack));
	CHECK_IS(transit(0)->first, 3);
	CHECK_IS(transit(0)->timer, 0);
	CHECK_IS(transit(0)->pace.flying, 0);
	CHECK(transit(0)->pace.smooth >= ACK_NS && transit(0)->pace.smooth < ACK_NS + 1024);
	CHECK_IS(retry_service.tick(end[0].path, now), DUE_NEVER);
	CHECK_IS(end[0].count, 0); /* there was nothing in it */
}

TEST(what_a_single_packet_acknowledges_is_taken_in_behind_its_handler_whose_time_does_not_count)
{
	struct carried ask[2], answer;
	open_ends(&retry_service, NULL);
	send(0, 0, &ask[0]);
	CHECK(bring(1, &ask[0]));
	clock_set(now + MS);
	send(1, 0, &answer);
	end[0].net->put_off = true;
	CHECK(bring(0, &answer));
	CHECK_IS(end[0].count, 1);
	CHECK_IS(transit(0)->first, 0);
	clock_set(now + 5 * MS);
	retry_service.tick(end[0].path, now);
	CHECK_IS(transit(0)->first, 1);
	CHECK_IS(transit(0)->timer, 0);
	CHECK(transit(0)->pace.smooth >= MS && transit(0)->pace.smooth < MS + 1024);
	/* A second one is taken in at once, and what is kept is none the worse for being older. */
	open_ends(&retry_service, NULL);
	send(0, 0, &ask[0]);
	send(0, 1, &ask[1]);
	CHECK(bring(1, &ask[0]));
	send(1, 0, &answer);
	end[0].net->put_off = true;
	CHECK(bring(0, &answer));
	CHECK(bring(1, &ask[1]));
	send(1, 1, &answer);
	CHECK(bring(0, &answer));
	CHECK_IS(transit(0)->first, 2);
	retry_service.tick(end[0].path, now);
	CHECK_IS(transit(0)->first, 2);
	CHECK_IS(counted(0, PULSE_PACKETS_MALFORMED), 0);
}

TEST(a_group_of_packets_many_bytes_or_a_rest_ahead_are_acknowledged_at_once)
{
	struct carried ack;
	retry_begin(GROUP);
	for (unsigned i = 0; i < GROUP; i++) {
		CHECK_IS(tick(1, &ack, 1), 0);
		CHECK(bring(1, &letter[i]));
	}
	CHECK_IS(tick(1, &ack, 1), 1);
	retry_begin(1);
	CHECK(bring(1, &letter[0]));
	retry_of(end[1].path)->heavy = HEAVY - 1;
	CHECK_IS(tick(1, &ack, 1), 0);
	retry_of(end[1].path)->heavy = HEAVY;
	CHECK_IS(tick(1, &ack, 1), 1);
	CHECK_IS(retry_of(end[1].path)->heavy, 0);
	retry_begin(1);
	CHECK(bring(1, &letter[0]));
	CHECK(retry_of(end[1].path)->heavy >= 10);
	end[1].net->resting = true;
	CHECK_IS(tick(1, &ack, 1), 1);
	CHECK_IS(tick(1, &ack, 1), 0); /* there is nothing new to say */
}

TEST(a_packet_is_passed_up_once_and_its_sender_learns_that_it_came_twice)
{
	struct carried ack;
	retry_begin(3);
	CHECK(bring(1, &letter[0]));
	CHECK(bring(1, &letter[2]));
	CHECK(bring(1, &letter[0])); /* below what is expected, */
	CHECK(bring(1, &letter[2])); /* and above */
	CHECK_IS(end[1].count, 2);
	CHECK_IS(counted(1, PULSE_PACKETS_DOUBLED), 2);
	clock_set(now + ACK_NS);
	CHECK_IS(tick(1, &ack, 1), 1);
	CHECK_IS(header_of(&ack).kind, ACK_ONLY | ACK_DOUBLED | 1);
	CHECK(bring(1, &letter[1]));
	CHECK_IS(retry_of(end[1].path)->expected, 3);
	CHECK_IS(retry_of(end[1].path)->above, 0);
	clock_set(now + ACK_NS);
	CHECK_IS(tick(1, &ack, 1), 1);
	CHECK_IS(header_of(&ack).kind, ACK_ONLY);
	CHECK_IS(header_of(&ack).expected, 3);
}

TEST(a_packet_that_is_refused_above_leaves_no_trace)
{
	retry_begin(2);
	end[1].refuses = true;
	CHECK(!bring(1, &letter[0]));
	CHECK(!bring(1, &letter[1]));
	CHECK_IS(retry_of(end[1].path)->expected, 0);
	CHECK_IS(retry_of(end[1].path)->above, 0);
	CHECK_IS(transit(1)->unacked, 0);
	end[1].refuses = false;
	CHECK(bring(1, &letter[0]));
	CHECK(bring(1, &letter[1]));
	check_in_order(1, 2);
}

TEST(a_packet_beyond_the_window_is_not_taken_and_none_is_read_that_is_too_short)
{
	retry_begin(RETRY_WINDOW);
	struct header h = header_of(&letter[0]);
	h.number = RETRY_WINDOW;
	memcpy(letter[0].bytes, &h, sizeof h);
	CHECK(!bring(1, &letter[0]));
	CHECK_IS(counted(1, PULSE_PACKETS_DOUBLED), 0);
	CHECK(bring(1, &letter[RETRY_WINDOW - 1]));
	CHECK_IS(end[1].count, 1);
	CHECK_IS(retry_of(end[1].path)->highest, RETRY_WINDOW - 1);
	letter[5].len = sizeof h - 1;
	CHECK(bring(1, &letter[5]));
	CHECK_IS(end[1].count, 1);
}

/* -- Retry: what is lost ----------------------------------------------------------------------- */

/* The acknowledgement of whatever has come to the other end. */
static void acknowledge(void)
{
	struct carried ack;
	clock_set(now + ACK_NS);
	REQUIRE(tick(1, &ack, 1) == 1);
	CHECK(bring(0, &ack));
}

TEST(what_others_have_overtaken_is_sent_again_under_its_number)
{
	struct carried again[8];
	open_ends(&retry_service, NULL);
	for (unsigned i = 0; i < 6; i++) {
		send(0, i, &letter[i]);
		clock_set(now + MS);
	}
	CHECK(bring(1, &letter[0]));
	CHECK(bring(1, &letter[2]));
	CHECK(bring(1, &letter[4]));
	acknowledge();
	CHECK_IS(transit(0)->first, 1);
	CHECK_IS(transit(0)->lost, 2); /* 5 may still come: nothing sent later has */
	CHECK(transit(0)->timer > now);
	REQUIRE(tick(0, again, 8) == 2);
	CHECK_IS(transit(0)->lost, 0);
	CHECK_IS(header_of(&again[0]).number, 1);
	CHECK_IS(header_of(&again[1]).number, 3);
	CHECK_IS(counted(0, PULSE_PACKETS_AGAIN), 2);
	CHECK_IS(asked_narrow, 1);
	CHECK_IS(end[0].path->most, 1399);
	CHECK(bring(1, &again[1]));
	CHECK(bring(1, &again[0]));
	CHECK(bring(1, &letter[5]));
	CHECK_IS(end[1].count, 6);
	CHECK(end[1].got[3] == 3 && end[1].got[4] == 1);
	acknowledge();
	CHECK_IS(transit(0)->first, 6);
	CHECK_IS(transit(0)->timer, 0);
	CHECK_IS(counted(1, PULSE_PACKETS_DOUBLED), 0);
}

TEST(a_packet_that_was_only_late_is_not_sent_again)
{
	struct carried again[8];
	open_ends(&retry_service, NULL);
	for (unsigned i = 0; i < 3; i++) {
		send(0, i, &letter[i]);
		clock_set(now + MS);
	}
	CHECK(bring(1, &letter[2]));
	acknowledge();
	CHECK_IS(transit(0)->lost, 2);
	CHECK(bring(1, &letter[0]));
	CHECK(bring(1, &letter[1]));
	acknowledge();
	CHECK_IS(transit(0)->lost, 0);
	CHECK_IS(transit(0)->first, 3);
	CHECK_IS(tick(0, again, 8), 0);
}

TEST(packets_sent_at_about_the_same_time_do_not_overtake_each_other)
{
	retry_begin(8);
	CHECK(bring(1, &letter[7]));
	acknowledge();
	CHECK_IS(transit(0)->lost, 0);
	CHECK_IS(transit(0)->first, 0);
}

TEST(a_timeout_sends_the_first_again_and_the_next_ones_all_less_and_less_often)
{
	struct carried again[32];
	retry_begin(1);
	CHECK(bring(1, &letter[0]));
	acknowledge(); /* there has been an answer */
	for (unsigned i = 0; i < 10; i++)
		send(0, i, &letter[i]);
	uint64_t patience = pace_patience(&transit(0)->pace);
	CHECK_IS(transit(0)->timer, now + patience);
	clock_set(now + patience - 1);
	CHECK_IS(tick(0, again, 32), 0);
	clock_set(now + 1);
	CHECK_IS(tick(0, again, 32), 1);
	CHECK_IS(header_of(&again[0]).number, 1);
	CHECK_IS(transit(0)->tries, 1);
	CHECK_IS(transit(0)->overdue, now);
	CHECK_IS(transit(0)->timer, now + 2 * patience);
	clock_set(transit(0)->timer);
	CHECK(tick(0, again, 32) >= 1);
	CHECK_IS(transit(0)->tries, 2);
	CHECK_IS(transit(0)->timer, now + 4 * patience);
	for (unsigned i = 3; i < 9; i++) {
		clock_set(transit(0)->timer);
		CHECK(tick(0, again, 32) >= 1);
		CHECK_IS(header_of(&again[0]).number, 1);
		CHECK_IS(transit(0)->tries, i < 5 ? i : 5);
		CHECK_IS(transit(0)->timer, now + (patience << (i < 5 ? i : 5)));
	}
	CHECK(asked_dark > 0 && asked_dark < asked_narrow); /* not before the third in a row */
}

TEST(what_a_timeout_sends_again_first_waits_for_nothing_and_the_rest_for_the_pace)
{
	struct carried again[32];
	retry_begin(1);
	CHECK(bring(1, &letter[0]));
	acknowledge();
	for (unsigned i = 0; i < 10; i++)
		send(0, i, &letter[i]);
	for (unsigned i = 0; i < 2; i++) {
		clock_set(transit(0)->timer);
		transit(0)->pace.earliest = now + 1000 * MS;
		REQUIRE(tick(0, again, 32) == 1);
		CHECK_IS(header_of(&again[0]).number, 1);
	}
	CHECK_IS(transit(0)->lost, 9);
	transit(0)->pace.earliest = now;
	REQUIRE(tick(0, again, 32) >= 1);
	CHECK_IS(header_of(&again[0]).number, 2);
}

TEST(a_window_without_an_answer_gives_up_no_more_than_the_first)
{
	struct carried again[32];
	retry_begin(10);
	for (unsigned i = 0; i < 4; i++) {
		clock_set(transit(0)->timer);
		CHECK_IS(tick(0, again, 32), 1);
		CHECK_IS(header_of(&again[0]).number, 0);
	}
	CHECK_IS(transit(0)->next - transit(0)->first, 10);
}

TEST(the_window_grows_with_what_is_under_way_and_ends)
{
	open_ends(&retry_service, NULL);
	uint32_t size = transit(0)->size;
	for (unsigned i = 0; i < RETRY_WINDOW; i++) {
		CHECK(retry_service.ready(end[0].path));
		send(0, i, &letter[i]);
	}
	CHECK(size < RETRY_WINDOW);
	CHECK_IS(transit(0)->size, RETRY_WINDOW);
	CHECK(!retry_service.ready(end[0].path));
	for (unsigned i = 0; i < RETRY_WINDOW; i++)
		CHECK(flight_at(transit(0), i)->number == i &&
		      flight_at(transit(0), i)->slice.value == i);
	CHECK(bring(1, &letter[0]));
	acknowledge();
	CHECK(retry_service.ready(end[0].path));
}

TEST(nothing_new_is_sent_before_what_is_lost)
{
	retry_begin(2);
	CHECK(retry_service.ready(end[0].path));
	transit(0)->lost = 1;
	CHECK(!retry_service.ready(end[0].path));
}

/* The receiver says what has come in four words at most: the first and the last of them in turn. */
TEST(a_long_gap_is_told_from_both_its_ends_in_turn)
{
	enum { PACKETS = 700 };
	retry_begin(PACKETS);
	for (unsigned i = 1; i < PACKETS; i++)
		CHECK(bring(1, &letter[i]));
	acknowledge();
	unsigned landed = 0;
	for (unsigned i = 0; i < PACKETS; i++)
		landed += flight_at(transit(0), i)->state == FLIGHT_LANDED;
	CHECK_IS(landed, 256);
	CHECK_IS(flight_at(transit(0), 1)->state, FLIGHT_LANDED);
	CHECK_IS(flight_at(transit(0), 256)->state, FLIGHT_LANDED);
	CHECK(bring(1, &letter[1])); /* there is something to acknowledge */
	acknowledge();
	CHECK_IS(flight_at(transit(0), PACKETS - 1)->state, FLIGHT_LANDED);
	CHECK_IS(flight_at(transit(0), 0)->state, FLIGHT_FLYING);
	CHECK(bring(1, &letter[0]));
	acknowledge();
	CHECK_IS(transit(0)->first, PACKETS);
}

/* -- Retry: acknowledgements ------------------------------------------------------------------ */

static bool bring_header(unsigned to, struct header h)
{
	struct carried c = { .len = sizeof h };
	memcpy(c.bytes, &h, sizeof h);
	return bring(to, &c);
}

TEST(an_acknowledgement_of_what_was_never_sent_is_counted_and_ignored)
{
	retry_begin(3);
	CHECK(bring_header(0, (struct header){ .kind = ACK_ONLY, .expected = 4, .stamp = 1 }));
	CHECK_IS(counted(0, PULSE_PACKETS_MALFORMED), 1);
	CHECK_IS(transit(0)->first, 0);
	CHECK(bring_header(0, (struct header){ .kind = ACK_ONLY, .expected = 3, .stamp = 1 }));
	CHECK_IS(transit(0)->first, 3);
	CHECK(bring_header(0, (struct header){ .kind = ACK_ONLY, .expected = 2, .stamp = 1 }));
	CHECK_IS(transit(0)->first, 3); /* it came late, and is no mistake */
	CHECK_IS(counted(0, PULSE_PACKETS_MALFORMED), 1);
	CHECK(bring_header(0, (struct header){ .kind = ACK_ONLY | 1, .expected = 3, .stamp = 1 }));
	CHECK(bring_header(0, (struct header){ .kind = ACK_ONLY | 5, .expected = 3, .stamp = 1 }));
	CHECK_IS(counted(0, PULSE_PACKETS_MALFORMED),
		 3); /* words that are not there, or too many */
}

TEST(an_acknowledgement_comes_with_a_message_and_an_older_one_takes_nothing_back)
{
	struct carried c;
	retry_begin(3);
	for (unsigned i = 0; i < 3; i++)
		CHECK(bring(1, &letter[i]));
	send(1, 7, &c);
	CHECK_IS(header_of(&c).kind, 0);
	CHECK_IS(header_of(&c).expected, 3);
	CHECK(bring(0, &c));
	CHECK(end[0].count == 1 && end[0].got[0] == 7);
	CHECK_IS(transit(0)->first, 3);
	struct header old = header_of(&c);
	old.number = 1;
	old.expected = 1;
	struct carried late = c;
	memcpy(late.bytes, &old, sizeof old);
	CHECK(bring(0, &late));
	CHECK_IS(transit(0)->first, 3);
	CHECK_IS(counted(0, PULSE_PACKETS_MALFORMED), 0);
}

TEST(a_path_that_stops_sends_nothing_again)
{
	struct carried again[8];
	retry_begin(4);
	transit(0)->lost = 2;
	retry_service.stop(end[0].path);
	CHECK_IS(transit(0)->first, transit(0)->next);
	clock_set(now + 1000 * MS);
	CHECK_IS(tick(0, again, 8), 0);
	retry_service.close(end[0].path);
	CHECK(!transit(0)->window);
	CHECK(!retry_service.ready(end[0].path));
}

/* -- Both ------------------------------------------------------------------------------------- */

static struct carried flying[2][FLYING_MOST];
static unsigned airborne[2];

/* Sends each on its way, with a delay of its own, unless it is lost; some go twice. */
static void launch(unsigned from, struct carried *c, unsigned n, struct chance *chance)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned copies = chance_below(chance, 10) == 0 ? 2 : 1; copies--;) {
			if (chance_below(chance, 10) < 2)
				continue;
			REQUIRE(airborne[from] < FLYING_MOST);
			c[i].due = now + 50000 + chance_below(chance, 400000);
			flying[from][airborne[from]++] = c[i];
		}
}

static void land(unsigned from)
{
	for (unsigned i = 0; i < airborne[from]; i++)
		if (flying[from][i].due <= now) {
			struct carried c = flying[from][i];
			flying[from][i--] = flying[from][--airborne[from]];
			bring(!from, &c);
		}
}

TEST(whatever_is_lost_doubled_or_late_every_packet_is_passed_up_once_and_in_order)
{
	enum { PACKETS = 2000, ROUNDS = 200000, STEP_NS = 20000 };
	struct chance chance = { .state = check_seed() };
	struct carried c[PACKET_BATCH];
	unsigned sent = 0;
	open_ends(&order_service, &retry_service);
	for (unsigned round = 0; round < ROUNDS && transit(0)->first != PACKETS; round++) {
		clock_set(now + STEP_NS);
		if (sent < PACKETS && retry_service.ready(end[0].path)) {
			send(0, sent++, c);
			launch(0, c, 1, &chance);
		}
		end[1].refuses = chance_below(&chance, 20) == 0;
		for (unsigned from = 0; from < 2; from++) {
			land(from);
			launch(from, c, tick(from, c, PACKET_BATCH), &chance);
		}
		order_service.tick(end[1].path, now);
	}
	check_in_order(1, PACKETS);
	CHECK_IS(transit(0)->first, PACKETS); /* and its sender knows */
	CHECK_IS(counted(0, PULSE_PACKETS_MALFORMED) + counted(1, PULSE_PACKETS_MALFORMED), 0);
}
