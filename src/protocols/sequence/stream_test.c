/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a stream sends again, and when. A packet that nobody is registered for is dropped: it stands
 * for a lost one.
 */
#include <tern/sequence.h>

#include "../../../tests/local.h"
#include "core/layer.h"
#include "protocols/sequence/sequence.h"

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

static tern_stream *stream_begin(void)
{
	tern_stream *s;
	got = 0;
	local_polled();
	local_open(2);
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
