/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a stream sends again, and when. A packet that nobody is registered for is dropped: it stands
 * for a lost one.
 */
#include <tern/sequence.h>

#include "core/layer.h"
#include "lib/local.h"
#include "sequence/stream.h"

enum { STREAM = 3, PACKETS = 20, POLLS_MOST = 1000000, BEHIND = 0 };

static uint64_t got, behind;

static void packet(tern *t, uint32_t from, unsigned id, unsigned n, const uint64_t *words,
		   void *arg)
{
	(void)t, (void)arg;
	CHECK(from == 0 && id == STREAM && n == 1);
	CHECK_IS(words[0], got);
	got++;
}

static void ignore(tern *t, uint32_t from, unsigned id, unsigned n, const uint64_t *words,
		   void *arg)
{
	(void)t, (void)from, (void)id, (void)n, (void)words, (void)arg;
}

static void begin_only(void)
{
	got = 0;
	local_polled();
	local_open(2);
}

static tern_stream *stream_begin(void)
{
	tern_stream *s;
	begin_only();
	REQUIRE(tern_stream_open(local[0], 1, STREAM, TERN_WAY_FULL, PACKETS, &s) == 0);
	return s;
}

/* All of them are lost. */
static void packets_lose(tern_stream *s)
{
	for (uint64_t i = 0; i < PACKETS; i++)
		CHECK_IS(tern_stream_put(s, 1, &i), 0);
	CHECK(tern_poll(local[1]) > 0);
}

TEST(a_poll_of_the_sender_sends_again_what_was_lost)
{
	tern_stream *s = stream_begin();
	packets_lose(s);
	CHECK_IS(tern_stream_on(local[1], STREAM, packet, NULL), 0);
	for (int i = 0; i < POLLS_MOST && got < PACKETS; i++) {
		CHECK(tern_poll(local[0]) >= 0);
		CHECK(tern_poll(local[1]) >= 0);
	}
	CHECK_IS(got, PACKETS);
	CHECK_IS(tern_stream_close(s), 0);
	local_close();
}

TEST(what_is_acknowledged_gives_polls_nothing_to_do)
{
	tern_stream *s = stream_begin();
	CHECK_IS(tern_stream_on(local[1], STREAM, packet, NULL), 0);
	packets_lose(s); /* though here they are not */
	CHECK(local[0]->own->work >> LAYER_SEQUENCE & 1);
	for (int i = 0; i < POLLS_MOST && local[0]->own->work >> LAYER_SEQUENCE & 1; i++)
		CHECK(tern_poll(local[0]) >= 0);
	CHECK(!(local[0]->own->work >> LAYER_SEQUENCE & 1));
	CHECK_IS(got, PACKETS);
	CHECK_IS(tern_stream_close(s), 0);
	local_close();
}

TEST(nothing_is_sent_again_to_a_rank_that_has_left)
{
	tern_stream *s = stream_begin();
	packets_lose(s);
	CHECK_IS(tern_close(local[1]), 0);
	for (int i = 0; i < POLLS_MOST && local[0]->own->work >> LAYER_SEQUENCE & 1; i++)
		CHECK(tern_poll(local[0]) >= 0);
	CHECK(!(local[0]->own->work >> LAYER_SEQUENCE & 1));
	CHECK_IS(tern_stream_close(s), -ESHUTDOWN);
	CHECK_IS(tern_close(local[0]), 0);
}

/* As after many tries in vain: the next packet has all the time that the first one had. */
TEST(an_acknowledgement_makes_patience_begin_anew)
{
	enum { MANY = 5 };
	const uint64_t next = PACKETS;
	tern_stream *s = stream_begin();
	CHECK_IS(tern_stream_on(local[1], STREAM, packet, NULL), 0);
	packets_lose(s); /* though here they are not */
	CHECK(tern_poll(local[0]) > 0);
	CHECK_IS(s->acked, s->next);
	s->patience = (struct patience){ .due = 1, .tries = MANY };
	CHECK_IS(tern_stream_put(s, 1, &next), 0);
	CHECK(tern_poll(local[0]) >= 0);
	CHECK(s->patience.tries < MANY);
	local_close();
}

/* What has been passed up when a message comes. */
static void on_behind(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	behind = got;
}

TEST(a_message_behind_a_flush_finds_every_packet_passed_up)
{
	tern_stream *s = stream_begin();
	local_on(BEHIND, on_behind);
	CHECK_IS(tern_stream_on(local[1], STREAM, packet, NULL), 0);
	for (uint64_t i = 0; i < PACKETS; i++) {
		CHECK_IS(tern_stream_put(s, 1, &i), 0);
		CHECK_IS(tern_stream_flush(s), 0);
		CHECK_IS(tern_request(local[0], 1, BEHIND), 0);
		while (behind <= i)
			if (!CHECK(tern_poll(local[1]) > 0))
				break;
		CHECK_IS(behind, i + 1);
	}
	CHECK_IS(tern_stream_close(s), 0);
	local_close();
}

TEST(an_acknowledgement_of_what_was_never_sent_is_passed_over)
{
	tern_stream *s = stream_begin();
	CHECK_IS(tern_stream_on(local[1], STREAM, packet, NULL), 0);
	const uint64_t ahead[] = { 1000 << 8 | STREAM, 0 }, none[] = { UINT64_MAX, 0 };
	CHECK_IS(layer_request(local[1]->own, 0, STREAM_ACK, NULL, 0, 2, ahead), 0);
	CHECK_IS(layer_request(local[1]->own, 0, STREAM_ACK, NULL, 0, 2, none), 0);
	CHECK_IS(layer_request(local[1]->own, 0, STREAM_ACK, NULL, 0, 0, none), 0);
	packets_lose(s);
	CHECK_IS(tern_stream_close(s), 0);
	CHECK_IS(got, PACKETS);
	local_close();
}

static void pair(tern *t, uint32_t from, unsigned id, unsigned n, const uint64_t *words, void *arg)
{
	(void)t, (void)arg;
	CHECK(from == 0 && id == STREAM && n == 2);
	CHECK(words[0] == got && words[1] == ~got);
	got++;
}

/* A packet of rank 0's, as if the network had kept it until now. */
static void packet_comes(unsigned handler, uint64_t number)
{
	const uint64_t words[] = { number << 8 | STREAM, number, ~number };
	CHECK_IS(layer_request(local[0]->own, 1, handler, NULL, 0, 3, words), 0);
}

/* The same number twice, the one behind the window, and one whose name is of no stream. */
TEST(packets_are_passed_up_in_order_and_once_however_they_come)
{
	static const uint64_t order[] = { 2, 1, 2, 0, 0, 5, 4, 68, 67, 3, 6, UINT64_MAX >> 8, 1 };
	begin_only();
	CHECK_IS(tern_stream_on(local[1], STREAM, pair, NULL), 0);
	for (unsigned i = 0; i < sizeof order / sizeof *order; i++) {
		packet_comes(i % 2 ? STREAM_TWO : STREAM_TWO_ASKS, order[i]);
		CHECK(tern_poll(local[1]) > 0);
	}
	const uint64_t odd[] = { 7 << 8 | 0x80 | STREAM, 7, ~UINT64_C(7) };
	CHECK_IS(layer_request(local[0]->own, 1, STREAM_TWO, NULL, 0, 3, odd), 0);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(got, 7);
	for (uint64_t i = 8; i < 7 + TERN_STREAM_WINDOW; i++) /* all but the next */
		packet_comes(STREAM_TWO, i);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(got, 7);
	packet_comes(STREAM_TWO, 7);
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(got, 7 + TERN_STREAM_WINDOW);
	local_close();
}

TEST(a_packet_of_any_number_of_words_waits_for_those_before_it)
{
	begin_only();
	CHECK_IS(tern_stream_on(local[1], STREAM, packet, NULL), 0);
	for (uint64_t left = 3; left-- > 0;) {
		const uint64_t words[] = { left << 8 | STREAM, 1, left, 0, 0, 0 };
		CHECK_IS(got, 0);
		CHECK_IS(layer_request(local[0]->own, 1, STREAM_PACKET, NULL, 0, 6, words), 0);
		CHECK(tern_poll(local[1]) > 0);
	}
	CHECK_IS(got, 3);
	local_close();
}

static void four(tern *t, uint32_t from, unsigned id, unsigned n, const uint64_t *words, void *arg)
{
	(void)t, (void)from, (void)id, (void)arg;
	CHECK(n == 4 && words[0] == got);
	got++;
}

TEST(so_does_one_of_four)
{
	begin_only();
	CHECK_IS(tern_stream_on(local[1], STREAM, four, NULL), 0);
	for (uint64_t left = 6; left-- > 0;) {
		const uint64_t words[] = { left << 8 | STREAM, left, 0, 0, 0 };
		unsigned id = left % 3 ? STREAM_FOUR : STREAM_FOUR_ASKS;
		CHECK_IS(layer_request(local[0]->own, 1, id, NULL, 0, 5, words), 0);
		CHECK(tern_poll(local[1]) > 0);
	}
	CHECK_IS(got, 6);
	local_close();
}

TEST(a_packet_to_a_rank_that_has_given_up_looking_is_seen)
{
	tern_stream *s = stream_begin();
	struct endpoint *e = local[1]->own;
	CHECK_IS(tern_stream_on(local[1], STREAM, pair, NULL), 0);
	for (uint64_t i = 0; i < 3; i++) {
		CHECK_IS(tern_stream_put(s, 2, (uint64_t[]){ i, ~i }), 0);
		CHECK(tern_poll(local[1]) > 0);
		for (unsigned k = 0; k < 3 * e->nets; k++)
			e->net[k % e->nets]->ops->demote(e->net[k % e->nets]);
	}
	CHECK_IS(got, 3);
	CHECK_IS(tern_stream_close(s), 0);
	local_close();
}

/* More of them than the ring of replies has lines, and of another stream between them. */
TEST(a_flush_takes_acknowledgements_without_a_poll)
{
	enum { OTHER = STREAM + 1, ROUNDS = 300 };
	tern_stream *s, *other;
	begin_only();
	CHECK_IS(tern_stream_on(local[1], STREAM, pair, NULL), 0);
	CHECK_IS(tern_stream_on(local[1], OTHER, ignore, NULL), 0);
	REQUIRE(tern_stream_open(local[0], 1, STREAM, TERN_WAY_FULL, 1, &s) == 0);
	REQUIRE(tern_stream_open(local[0], 1, OTHER, TERN_WAY_FULL, 1, &other) == 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		const uint64_t words[] = { i, ~i };
		CHECK_IS(tern_stream_put(s, 2, words), 0);
		if (i % 7 == 0)
			CHECK_IS(tern_stream_put(other, 2, words), 0);
		CHECK(tern_poll(local[1]) > 0);
		CHECK_IS(tern_stream_flush(s), 0);
		CHECK_IS(tern_stream_flush(other), 0);
	}
	CHECK_IS(got, ROUNDS);
	CHECK_IS(inlet_handled(&local[0]->own->site.peer[1].replies), ROUNDS + ROUNDS / 7 + 1);
	CHECK_IS(tern_stream_close(s), 0);
	CHECK_IS(tern_stream_close(other), 0);
	local_close();
}

/* The count of packets up to the next one that asks is of 32 bits, and here it is at its end. */
TEST(where_each_packet_asks_the_count_of_those_that_do_not_changes_nothing)
{
	tern_stream *s;
	begin_only();
	CHECK_IS(tern_stream_on(local[1], STREAM, pair, NULL), 0);
	REQUIRE(tern_stream_open(local[0], 1, STREAM, TERN_WAY_FULL, 1, &s) == 0);
	for (uint64_t i = 0; i < 4; i++) {
		const uint64_t words[] = { i, ~i };
		s->left = i % 2 ? 1 : s->left;
		CHECK_IS(tern_stream_put(s, 2, words), 0);
		CHECK(tern_poll(local[1]) > 0);
		CHECK_IS(tern_stream_flush(s), 0);
	}
	CHECK_IS(got, 4);
	CHECK_IS(tern_stream_close(s), 0);
	local_close();
}

/* Packets of two words go the common way, those of one the rare one. */
TEST(a_group_of_packets_is_acknowledged_once)
{
	static const uint64_t words[2];
	for (unsigned n = 1; n <= 2; n++)
		for (unsigned group = 1; group <= PACKETS; group = group == 1 ? 5 : group * 2) {
			tern_stream *s;
			begin_only();
			CHECK_IS(tern_stream_on(local[1], STREAM, ignore, NULL), 0);
			REQUIRE(tern_stream_open(local[0], 1, STREAM, TERN_WAY_FULL, group, &s) ==
				0);
			for (unsigned i = 0; i < PACKETS; i++)
				CHECK_IS(tern_stream_put(s, n, words), 0);
			CHECK(tern_poll(local[1]) > 0);
			CHECK(tern_poll(local[0]) > 0);
			CHECK_IS(inlet_handled(&local[0]->own->site.peer[1].replies),
				 PACKETS / group);
			CHECK_IS(s->acked, s->next);
			CHECK_IS(tern_stream_close(s), 0);
			local_close();
		}
}

/* A flush asks only for what no packet has asked for. */
TEST(a_flush_asks_once_and_only_within_a_group)
{
	for (unsigned group = 1; group <= 3; group++) {
		tern_stream *s;
		begin_only();
		CHECK_IS(tern_stream_on(local[1], STREAM, packet, NULL), 0);
		REQUIRE(tern_stream_open(local[0], 1, STREAM, TERN_WAY_FULL, group, &s) == 0);
		for (uint64_t i = 0; i < 4; i++)
			CHECK_IS(tern_stream_put(s, 1, &i), 0);
		CHECK_IS(tern_stream_flush(s), 0);
		CHECK_IS(got, 4);
		CHECK_IS(inlet_handled(&local[1]->own->site.peer[0].requests), 4 + (group == 3));
		CHECK_IS(tern_stream_close(s), 0);
		local_close();
	}
}

static tern_stream *of_handler;
static int code[4];

static void put_here(tern *t, const tern_msg *m)
{
	const uint64_t words[2] = { 0, 0 };
	tern_stream *other;
	(void)m;
	code[0] = tern_stream_open(t, 1, STREAM + 1, TERN_WAY_FULL, 0, &other);
	code[1] = tern_stream_put(of_handler, 2, words);
	code[2] = tern_stream_flush(of_handler);
	code[3] = tern_stream_close(of_handler);
}

TEST(a_handler_is_refused_whatever_it_does_with_a_stream)
{
	of_handler = stream_begin();
	local_on(BEHIND, put_here);
	packets_lose(of_handler);
	CHECK_IS(tern_request(local[1], 0, BEHIND), 0);
	CHECK(tern_poll(local[0]) > 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_IS(code[i], -EPERM);
	CHECK(of_handler->open);
	local_close();
}

TEST(a_wrong_stream_is_refused_with_a_sentence)
{
	tern_stream *s;
	begin_only();
	CHECK_IS(tern_stream_open(local[0], 2, STREAM, TERN_WAY_FULL, 0, &s), -ERANGE);
	CHECK(sentence_has(-ERANGE, "rank 2"));
	CHECK_IS(tern_stream_open(local[0], 1, TERN_SEQUENCES_MAX, TERN_WAY_FULL, 0, &s), -ERANGE);
	CHECK(sentence_has(-ERANGE, "tern_stream_open()"));
	CHECK_IS(tern_stream_open(local[0], 1, STREAM, TERN_WAY_FULL, TERN_STREAM_WINDOW / 2 + 1,
				  &s),
		 -EINVAL);
	CHECK_IS(tern_stream_open(local[0], 1, STREAM, TERN_WAY_FULL, TERN_STREAM_WINDOW / 2, &s),
		 0);
	CHECK_IS(tern_stream_on(local[0], TERN_SEQUENCES_MAX, ignore, NULL), -ERANGE);
	CHECK(sentence_has(-ERANGE, "tern_stream_on()"));
	CHECK_IS(tern_stream_on(local[0], STREAM, NULL, NULL), -EINVAL);
	CHECK_IS(tern_stream_on(local[0], STREAM, ignore, NULL), 0);
	CHECK_IS(tern_stream_on(local[0], STREAM, ignore, NULL), -EEXIST);
	local_close();
}

TEST(a_stream_that_is_closed_refuses_what_it_is_given)
{
	static const uint64_t words[2];
	tern_stream *s = stream_begin();
	CHECK_IS(tern_stream_close(s), 0);
	CHECK_IS(tern_stream_put(s, 2, words), -EINVAL);
	CHECK_IS(tern_stream_flush(s), -EINVAL);
	CHECK_IS(tern_stream_close(s), -EINVAL);
	CHECK(sentence_has(-EINVAL, "closed"));
	CHECK_IS(tern_stream_close(NULL), -EINVAL);
	local_close();
}
