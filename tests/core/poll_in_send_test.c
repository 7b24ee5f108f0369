/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/*
 * Sends look for what has arrived: a rank that only sends still serves. How often they look at
 * which inlet is counted here; see docs/design.md, Who looks at what.
 */
#include "endpoint/endpoint.h"
#include "lib/handed.h"
#include "lib/local.h"

enum { ASK, TELL, STREAM };
enum {
	SENDS_MOST = 100000,
	LOOK = 16,      /* sends between two looks at the inlets of a few ranks */
	LOOK_MOST = 32, /* inlets of one look, and sends before it */
	GATHERED = 16,  /* messages of a stream that a look finds, on average, at least */
};

static void answer(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
}

static unsigned sends_until_handled(int (*send)(void))
{
	unsigned before = requests.count, sends = 0;
	while (requests.count == before && sends < SENDS_MOST) {
		CHECK_IS(send(), 0);
		sends++;
	}
	return sends;
}

static int send_word(void)
{
	return tern_request(local[1], 2, TELL, 1);
}

static int send_words(void)
{
	return tern_request(local[1], 2, TELL, 1, 2, 3);
}

static int send_data(void)
{
	return tern_request_data(local[1], 2, TELL, "x", 1);
}

static int send_claim(void)
{
	void *claimed = handed_claim(local[1], 2, 10);
	return tern_commit(local[1], claimed, TELL);
}

TEST(a_request_is_handled_during_sends_of_every_kind)
{
	local_polled();
	int (*const sends[])(void) = { send_word, send_words, send_data, send_claim };
	ranks_open(3);
	for (int i = 0; i < 4; i++)
		for (int round = 0; round < 20; round++) {
			CHECK_IS(tern_request(local[0], 1, ASK, round), 0);
			/* A network of packets goes by time. */
			unsigned most = local[1]->own->site.asks ? SENDS_MOST - 1 : LOOK;
			CHECK(sends_until_handled(sends[i]) <= most);
			CHECK_IS(requests.rank, 1);
			tern_poll(local[2]);
		}
	local_close();
}

TEST(two_ranks_that_only_send_serve_each_other)
{
	ranks_open(2);
	for (int i = 0; i < 10000; i++) {
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
		CHECK_IS(tern_request(local[1], 0, ASK, i), 0);
	}
	CHECK(requests.count > 19000); /* without a single poll */
	local_settle();
	CHECK_IS(requests.count, 20000);
	CHECK_IS(replies.count, 20000);
	local_close();
}

TEST(a_rank_that_sends_to_itself_serves_itself)
{
	ranks_open(1);
	for (int i = 0; i < 1000; i++)
		CHECK_IS(tern_request(local[0], 0, ASK, i), 0);
	CHECK(requests.count > 900);
	local_close();
}

/* -- Streams ----------------------------------------------------------------------------------- */

static unsigned streamed, batches; /* messages, and sends of rank 1 that handled some */

static void take(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	streamed++;
}

/* Rank 1 sends once; all else that happens in the test is driven by this. */
static void send_beside(void)
{
	unsigned before = streamed;
	CHECK_IS(send_words(), 0);
	batches += streamed != before;
	tern_poll(local[2]);
}

/* Rank 1 sends to rank 2 so many times; before each `every`th, rank 0 sends to rank 1. */
static void stream(unsigned sends, unsigned every)
{
	for (unsigned i = 0; i < sends; i++) {
		if (i % every == 0)
			CHECK_IS(tern_request(local[0], 1, STREAM, i, 2), 0);
		send_beside();
	}
}

static void streams_open(uint32_t n)
{
	local_polled();
	ranks_open(n);
	local_on(STREAM, take);
	streamed = 0;
}

static bool goes_by_time(void)
{
	return local[1]->own->site.asks;
}

TEST(messages_of_a_stream_gather_between_looks)
{
	streams_open(3);
	for (unsigned every = 1; every <= 8 && !goes_by_time(); every *= 2) {
		stream(2000, every);
		unsigned before = streamed;
		batches = 0;
		stream(8000, every);
		CHECK(streamed - before >= GATHERED * batches);
		CHECK(streamed - before + 100 > 8000 / every);
		CHECK(batches > 0);
	}
	local_close();
}

TEST(a_rank_that_asks_beside_a_stream_is_served_as_soon_as_without)
{
	streams_open(4);
	for (unsigned round = 0; round < 100 && !goes_by_time(); round++) {
		unsigned before = requests.count, sends = 0;
		stream(100 + round, 8);
		CHECK_IS(tern_request(local[3], 1, ASK, round), 0);
		for (; requests.count == before && sends < 1000; sends++)
			send_beside();
		CHECK(sends <= LOOK);
		tern_poll(local[3]);
	}
	local_close();
}

/* Rank 0 sends `few`, and no more until they are handled, many times: that is no stream. */
static unsigned sends_for_bursts(unsigned rounds, unsigned few)
{
	unsigned sends = 0, most = 1000 * rounds;
	for (unsigned round = 0; round < rounds; round++) {
		unsigned before = streamed;
		for (unsigned i = 0; i < few; i++)
			CHECK_IS(tern_request(local[0], 1, STREAM, i, 2), 0);
		for (; streamed == before && sends < most; sends++)
			send_beside();
		CHECK_IS(streamed - before, few);
	}
	return sends;
}

TEST(a_rank_that_waits_for_its_answers_waits_for_two_looks_at_most)
{
	streams_open(3);
	for (unsigned few = 2; few < 40 && !goes_by_time(); few += 1 + few / 4) {
		stream(1000, 1); /* it was one before */
		local_settle();
		sends_for_bursts(20, few);
		CHECK(sends_for_bursts(100, few) <= 100 * 2 * LOOK);
	}
	local_close();
}

/* With more inlets than one look takes, each of them has its turn. */
TEST(a_rank_among_many_is_served_within_as_many_sends_as_there_are_inlets)
{
	enum { RANKS = 60 };
	streams_open(RANKS);
	for (uint32_t r = 0; r < RANKS && !goes_by_time(); r++)
		if (r != 1)
			CHECK_IS(tern_request(local[r], 1, ASK, r), 0);
	local_settle();
	for (uint32_t r = 3; r < RANKS && !goes_by_time(); r++) {
		unsigned most = local[1]->own->site.pollset + LOOK_MOST;
		CHECK_IS(tern_request(local[r], 1, ASK, r), 0);
		CHECK(sends_until_handled(send_words) <= most);
		tern_poll(local[2]);
	}
	local_close();
}
