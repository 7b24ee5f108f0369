/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link in virtual time: a rate, a round trip, a queue with an end, and losses by chance; and
 * flows that pace themselves over it.
 */
#include "net/packet/pace.h"

#include "base/chance.h"
#include "lib/check.h"

enum { PACKET = 1472, PACKETS = 1 << 13, FLOWS = 2, STEP_NS = 5000 };
static const uint64_t MS = 1000000, SECOND = 1000000000;

struct sent {
	uint64_t at, known; /* ns; when it is known what became of it */
	bool lost;
};

struct flow {
	struct pace pace;
	struct sent sent[PACKETS];
	uint32_t first, next;
	uint64_t landed, dropped;
};

static struct link {
	double mbit;
	uint64_t trip, queue; /* ns */
	double loss;          /* of all */
	uint64_t now, idle;
	struct chance chance;
	struct flow flow[FLOWS];
} l;

static void link_open(double mbit, uint64_t trip, uint64_t queue, double loss)
{
	l = (struct link){ .mbit = mbit,
			   .trip = trip,
			   .queue = queue,
			   .loss = loss,
			   .now = SECOND,
			   .chance = { 1 } };
	for (struct flow *f = l.flow; f < l.flow + FLOWS; f++)
		pace_open(&f->pace, PACKET);
}

static void flow_send(struct flow *f)
{
	while (f->next - f->first < PACKETS && pace_ready(&f->pace, l.now)) {
		struct sent *s = &f->sent[f->next++ % PACKETS];
		uint64_t begins = l.idle > l.now ? l.idle : l.now;
		bool full = begins - l.now > l.queue;
		s->lost = full || (double)chance_below(&l.chance, 1000000) < l.loss * 1e6;
		f->dropped += full;
		if (!full)
			l.idle = begins + (uint64_t)(PACKET * 8e3 / l.mbit);
		s->at = l.now;
		s->known = (full ? begins : l.idle) + l.trip;
		pace_sent(&f->pace, PACKET, l.now);
	}
}

static void flow_hear(struct flow *f)
{
	for (; f->first != f->next && f->sent[f->first % PACKETS].known <= l.now; f->first++) {
		const struct sent *s = &f->sent[f->first % PACKETS];
		if (s->lost) {
			pace_lost(&f->pace, PACKET, s->at, l.now);
			continue;
		}
		pace_landed(&f->pace, PACKET, l.now);
		pace_sampled(&f->pace, l.now - s->at);
		pace_round(&f->pace, f->first + 1, f->next, l.now);
		f->landed += PACKET;
	}
}

static void link_run(unsigned flows, uint64_t ns)
{
	for (uint64_t end = l.now + ns; l.now < end; l.now += STEP_NS)
		for (struct flow *f = l.flow; f < l.flow + flows; f++) {
			flow_hear(f);
			flow_send(f);
		}
}

/* What part of the link a flow has, once it has found out how much there is. */
static double link_share(unsigned flow, unsigned flows, uint64_t ns)
{
	link_run(flows, 3 * SECOND);
	for (struct flow *f = l.flow; f < l.flow + flows; f++)
		f->landed = f->dropped = 0;
	link_run(flows, ns);
	return (double)l.flow[flow].landed * 8e3 / (double)ns / l.mbit;
}

TEST(alone_most_of_a_link_is_used_and_little_is_dropped)
{
	const struct {
		double mbit;
		uint64_t trip, queue;
	} c[] = { { 100, 200000, 2 * MS },
		  { 100, 2 * MS, 5 * MS },
		  { 100, 20 * MS, 5 * MS },
		  { 100, 100 * MS, 50 * MS } };
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		link_open(c[i].mbit, c[i].trip, c[i].queue, 0);
		CHECK(link_share(0, 1, 5 * SECOND) > 0.8);
		CHECK(l.flow[0].dropped * PACKET * 50 < l.flow[0].landed);
	}
}

TEST(losses_by_chance_are_not_taken_for_congestion)
{
	link_open(100, 200000, 20 * MS, 0.01);
	CHECK(link_share(0, 1, 5 * SECOND) > 0.7);
	link_open(100, 20 * MS, 20 * MS, 0.01);
	CHECK(link_share(0, 1, 5 * SECOND) > 0.5); /* it may have been bad luck once */
}

TEST(two_flows_share_a_link)
{
	const uint64_t trip[] = { 200000, 5 * MS, 20 * MS };
	for (unsigned i = 0; i < sizeof trip / sizeof *trip; i++) {
		link_open(100, trip[i], 10 * MS, 0);
		link_run(1, 2 * SECOND); /* one has it for itself before */
		double share = link_share(1, 2, 10 * SECOND);
		CHECK(share > 0.2 && share < 0.8);
	}
}

/* Sends all that it may, and has it acknowledged; bytes. */
static size_t turn_take(struct pace *p, uint64_t now)
{
	size_t bytes = 0;
	for (; pace_ready(p, now); bytes += PACKET)
		pace_sent(p, PACKET, now);
	for (size_t landed = 0; landed < bytes; landed += PACKET)
		pace_landed(p, PACKET, now);
	return bytes;
}

TEST(a_sender_that_waits_for_a_core_catches_up_and_an_idle_one_does_not)
{
	struct pace p;
	size_t bytes = 0, burst = 20 * PACKET;
	uint64_t now = SECOND;
	pace_open(&p, PACKET);
	p.window = p.enough = 100 * PACKET;
	pace_sampled(&p, 8 * MS);
	CHECK(turn_take(&p, now) < burst);
	for (unsigned turn = 0; turn < 10; turn++)
		bytes += turn_take(&p, now += 4 * MS);
	CHECK(bytes > 10 * 50 * PACKET); /* half of the window in half of a round trip */
	now += 4 * MS;
	CHECK(pace_ready(&p, now));
	pace_sent(&p, PACKET, now); /* and has no more to send for a second */
	CHECK(turn_take(&p, now + SECOND) < burst);
}

/* Packets of a window that waited in a queue: round trips were short once. */
static void queue_fill(struct pace *p)
{
	pace_open(p, PACKET);
	for (unsigned i = 0; i < 20; i++) {
		pace_sent(p, PACKET, SECOND + i);
		pace_sampled(p, i < 4 ? 20 * MS : 40 * MS);
	}
}

TEST(a_loss_in_a_queue_closes_the_window_once_for_all_that_was_sent_before)
{
	struct pace p;
	queue_fill(&p);
	size_t before = p.window;
	pace_lost(&p, PACKET, SECOND, SECOND + 40 * MS);
	CHECK(p.window < before && p.window > before / 2);
	before = p.window;
	pace_lost(&p, PACKET, SECOND + 1, SECOND + 41 * MS);
	CHECK_IS(p.window, before);
	pace_sent(&p, PACKET, SECOND + 50 * MS);
	pace_lost(&p, PACKET, SECOND + 50 * MS, SECOND + 90 * MS);
	CHECK(p.window < before);
}

TEST(what_has_no_answer_yet_closes_nothing)
{
	struct pace p;
	pace_open(&p, PACKET);
	size_t before = p.window;
	for (unsigned i = 0; i < 16; i++)
		pace_sent(&p, PACKET, SECOND);
	for (unsigned i = 0; i < 16; i++)
		pace_lost(&p, PACKET, SECOND, SECOND + 20 * MS);
	pace_timeout(&p, SECOND + 60 * MS);
	pace_sampled(&p, 100 * MS);
	pace_round(&p, 16, 16, SECOND + 100 * MS);
	CHECK_IS(p.window, before);
	CHECK(p.enough > before);
}

TEST(after_silence_the_window_opens_quickly)
{
	link_open(100, 20 * MS, 10 * MS, 0);
	link_run(1, 5 * SECOND);
	struct pace *p = &l.flow[0].pace;
	size_t before = p->window;
	for (unsigned i = 0; i < 5; i++)
		pace_timeout(p, l.now);
	CHECK(p->window < before / 8);
	l.flow[0].first = l.flow[0].next;
	p->flying = 0;
	link_run(1, 200 * MS); /* ten round trips */
	CHECK(p->window > before / 3);
}

TEST(patience_is_longer_than_the_answer_to_what_is_sent_again)
{
	struct pace p;
	pace_open(&p, PACKET);
	for (unsigned i = 0; i < 100; i++)
		pace_sampled(&p, 300 * MS); /* always the same, so nothing is added for variation */
	CHECK(pace_patience(&p) > 400 * MS);
}

/* What a peer acknowledges after it has computed for minutes says nothing of the way to it. */
TEST(a_peer_that_computes_does_not_make_its_way_long)
{
	struct pace p;
	pace_open(&p, 1400);
	pace_sampled(&p, 100000);
	pace_sampled(&p, UINT64_C(1000000000) * 600);
	CHECK(pace_patience(&p) < 1000000000);
}

TEST(a_timeout_that_was_for_nothing_is_undone)
{
	link_open(100, 20 * MS, 50 * MS, 0);
	link_run(1, 2 * SECOND);
	struct pace *p = &l.flow[0].pace;
	size_t window = p->window, enough = p->enough;
	uint64_t since = p->since;
	uint32_t lost = p->lost;
	struct pace before = *p;
	pace_lost(p, PACKET, l.now, l.now);
	pace_timeout(p, l.now);
	CHECK(p->window < window);
	pace_undo(p, &before);
	CHECK_IS(p->window, window);
	CHECK_IS(p->enough, enough);
	CHECK_IS(p->since, since);
	CHECK_IS(p->lost, lost);
}

/* -- Each figure by itself --------------------------------------------------------------------- */

/* A window of so many packets that opens slowly, where round trips take 20 ms. */
static struct pace paced(size_t packets)
{
	struct pace p;
	pace_open(&p, PACKET);
	pace_sampled(&p, 20 * MS);
	p.window = p.enough = packets * PACKET;
	return p;
}

TEST(a_window_that_is_full_and_a_time_that_has_not_come_hold_a_packet_back)
{
	struct pace p = paced(20);
	p.flying = p.window;
	CHECK(!pace_ready(&p, SECOND));
	p.flying--;
	p.earliest = SECOND + 1;
	p.late = 5;
	CHECK(!pace_ready(&p, SECOND) && p.held && !p.late);
	CHECK(pace_ready(&p, SECOND + 8) && !p.held);
	CHECK_IS(p.late, 7);
	CHECK(pace_ready(&p, SECOND + 9));
	CHECK_IS(p.late, 7); /* it did not wait */
	p.earliest = SECOND + 10;
	CHECK(pace_ready(&p, SECOND + 10));
}

TEST(a_burst_is_spread_where_the_window_or_the_way_is_long)
{
	static const struct {
		size_t packets;
		uint64_t smooth;
		bool spread;
	} c[] = {
		{ 16, 500000, false }, { 17, 500000, true }, { 16, 500001, true }, { 17, 0, false }
	};
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct pace p = paced(c[i].packets);
		p.smooth = c[i].smooth;
		pace_sent(&p, PACKET, SECOND);
		CHECK_IS(p.earliest != 0, c[i].spread);
		CHECK(p.sent == 1 && p.flying == PACKET);
	}
}

TEST(a_timeout_leaves_four_packets_and_half_of_the_window_is_opened_quickly)
{
	struct pace p = paced(100);
	p.lost = 3;
	pace_timeout(&p, SECOND);
	CHECK_IS(p.window, 4 * PACKET);
	CHECK_IS(p.enough, 50 * PACKET);
	CHECK_IS(p.peak, 100 * PACKET);
	CHECK_IS(p.until_peak, 5000); /* 0.4 packets for each cubed second: 50 of them */
	CHECK(p.closed == SECOND && p.since == SECOND && p.used == SECOND && !p.lost);
	pace_timeout(&p, 2 * SECOND);
	CHECK_IS(p.closed, SECOND); /* it is as small as it gets */
}

TEST(the_window_follows_its_cube_around_its_peak_and_no_longer_than_a_minute)
{
	static const struct {
		uint64_t until_peak, ms;
		size_t tenths; /* of a packet that it has at last */
	} c[] = { { 5000, 5000, 1000 },   { 5000, 4000, 996 },     { 5000, 6000, 1004 },
		  { 59000, 60000, 1004 }, { 59000, 100000, 1004 }, { 5000, 1000, 995 } };
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct pace p = paced(99);
		p.peak = 100 * PACKET;
		p.until_peak = c[i].until_peak;
		p.since = SECOND;
		p.flying = p.window;
		pace_landed(&p, p.window, SECOND + c[i].ms * MS - p.smooth);
		CHECK(p.window + 2 >= c[i].tenths * PACKET / 10 &&
		      p.window <= c[i].tenths * PACKET / 10 + 2);
	}
	struct pace p = paced(96);
	p.flying = p.window;
	pace_landed(&p, p.window, SECOND);
	CHECK_IS(p.window, 108 * PACKET); /* by an eighth before there was a loss */
}

TEST(a_window_is_opened_where_it_is_used_and_up_to_four_mebibytes)
{
	struct pace p = paced(100);
	p.flying = p.window / 2;
	p.since = 7;
	p.used = SECOND;
	pace_landed(&p, PACKET, SECOND + 5);
	CHECK_IS(p.window, 100 * PACKET);
	CHECK(p.since == 12 && p.used == SECOND + 5); /* nor has time passed */
	p.flying = p.window / 2 + 1;
	p.enough++;
	pace_landed(&p, PACKET, SECOND + 5);
	CHECK_IS(p.window, 101 * PACKET);
	CHECK_IS(p.since, 12);
	p.window = p.enough = p.flying = ((size_t)4 << 20) - 1;
	pace_landed(&p, p.window, SECOND);
	CHECK_IS(p.window, (size_t)4 << 20);
}

TEST(a_loss_counts_unless_the_window_was_closed_for_it)
{
	struct pace p = paced(100);
	p.flying = 3 * PACKET;
	p.closed = SECOND;
	pace_lost(&p, PACKET, SECOND, 2 * SECOND);
	CHECK(p.lost == 0 && p.flying == 2 * PACKET);
	pace_lost(&p, PACKET, SECOND + 1, 2 * SECOND);
	CHECK(p.lost == 1 && p.flying == PACKET);
	pace_lost(&p, 2 * PACKET, SECOND + 1, 2 * SECOND);
	CHECK(p.lost == 2 && p.flying == 0);
	CHECK_IS(p.window, 100 * PACKET); /* there is no queue */
}

TEST(ten_losses_that_are_one_of_32_packets_close_the_window_at_the_end_of_a_round)
{
	static const struct {
		uint32_t sent, lost;
		bool closes, again; /* the window; and packets are counted from 0 */
	} c[] = { { 319, 10, true, true }, { 320, 10, false, true }, { 100, 9, false, false },
		  { 100, 10, true, true }, { 255, 1, false, false }, { 256, 1, false, true } };
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct pace p = paced(100);
		p.sent = c[i].sent;
		p.lost = c[i].lost;
		p.round_end = 5;
		pace_round(&p, 4, 9, SECOND);
		CHECK(p.round_end == 5 && p.sent == c[i].sent && p.window == 100 * PACKET);
		pace_round(&p, 5, 9, SECOND);
		CHECK_IS(p.round_end, 9);
		CHECK_IS(p.window < 100 * PACKET, c[i].closes);
		CHECK_IS(p.sent == 0 && p.lost == 0, c[i].again);
	}
}

TEST(what_a_timeout_has_changed_is_as_before_if_it_was_for_nothing)
{
	struct pace p = paced(100), before;
	p.peak = 80, p.closed = 70, p.since = 60, p.until_peak = 50, p.lost = 4;
	before = p;
	p.window = p.enough = p.peak = p.closed = p.since = p.until_peak = p.lost = 1;
	pace_undo(&p, &before);
	CHECK(p.window == before.window && p.enough == before.enough && p.peak == 80);
	CHECK(p.closed == 70 && p.since == 60 && p.until_peak == 50 && p.lost == 4);
	p.peak = p.lost = 1; /* where the window is not smaller, nothing was closed */
	pace_undo(&p, &before);
	CHECK(p.peak == 1 && p.lost == 4);
}

TEST(a_round_trip_is_smoothed_and_so_is_how_much_it_varies)
{
	struct pace p;
	pace_open(&p, PACKET);
	pace_sampled(&p, 80 * MS);
	CHECK(p.smooth == 80 * MS && p.spread == 40 * MS);
	pace_sampled(&p, 160 * MS);
	CHECK(p.smooth == 90 * MS && p.spread == 50 * MS && p.least == 80 * MS);
	pace_sampled(&p, 10 * MS);
	CHECK(p.smooth == 80 * MS && p.spread == 57500000 && p.least == 10 * MS);
}

TEST(a_queue_is_seen_when_all_of_two_groups_of_round_trips_are_longer)
{
	struct pace p;
	pace_open(&p, PACKET);
	pace_sampled(&p, 20 * MS);
	for (unsigned i = 0; i < 15; i++)
		pace_sampled(&p, 40 * MS);
	CHECK_IS(p.enough, SIZE_MAX);
	pace_sampled(&p, 40 * MS);
	CHECK_IS(p.enough, p.window);
	pace_open(&p, PACKET);
	pace_sampled(&p, 20 * MS);
	for (unsigned i = 0; i < 64; i++)
		pace_sampled(&p, i % 8 == 3 ? 20 * MS : 40 * MS);
	CHECK_IS(p.enough, SIZE_MAX); /* one of each group is not */
}

TEST(a_queue_is_a_64th_and_a_millisecond_and_closes_the_window_further_on_a_short_way)
{
	static const struct {
		uint64_t least, now;
		size_t packets; /* of a hundred, after a loss */
	} c[] = { { 64 * MS, 66 * MS, 100 },
		  { 64 * MS, 66 * MS + 1, 70 },
		  { 5 * MS, 9 * MS, 70 },
		  { 5 * MS - 1, 9 * MS, 50 } };
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct pace p = paced(100);
		p.least = c[i].least;
		p.low[0] = p.low[1] = c[i].now;
		pace_lost(&p, PACKET, SECOND, SECOND);
		CHECK_IS(p.window, c[i].packets * PACKET);
	}
}
