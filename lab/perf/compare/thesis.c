/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables 4-1, 4-7 and 4-8 of von Eicken's thesis: what it measured of CMAM, measured of Tern. What
 * a handler adds to a batch (a reply, a transfer) is the difference to a batch of as many requests
 * whose handler only counts; both are played in the same phase. Then the phases by which the thesis
 * finds overheads, between processes, for messages and for send&receive.
 */
#include <string.h>

#include <tern/mem.h>

#include "base/clock.h"
#include "lab/bench/pair.h"
#include "lab/bench/words.h"
#include "lab/logp/overhead.h"
#include "lab/logp/phase.h"
#include "lab/perf/compare/paper.h"

enum {
	PAPER_ASK = WORDS_FREE,
	PAPER_ASK_XFER4,
	PAPER_ASK_XFER,
	PAPER_FETCH,
	PAPER_FETCHED,
};

enum { XFER_BATCH = 32, SEGMENTS = 2, ROOM = 1 << 20, WORDS = 4, KIB = 1024 };

/* One segment of the requester, which replies fill, and two of the server. */
static tern_segment asked, served[SEGMENTS];
static char room[ROOM], payload[TERN_PAYLOAD_MAX];
static uint64_t xfer_words; /* of a transfer of N words */
static uint64_t counter, fetched;
static _Atomic uint64_t fetches;

/* -- Handlers ---------------------------------------------------------------------- */

static void ask(tern *t, const tern_msg *m)
{
	tern_reply(t, m, WORDS_LAND, m->word[0], m->word[1], m->word[2], m->word[3]);
}

static void ask_xfer4(tern *t, const tern_msg *m)
{
	tern_segment_reply(t, m, asked, m->word, 32);
}

static void ask_xfer(tern *t, const tern_msg *m)
{
	tern_segment_reply(t, m, asked, payload, 8 * xfer_words);
}

static void fetch(tern *t, const tern_msg *m)
{
	uint64_t *at = &counter + tern_msg_word(m, 0), was = *at;
	*at = was + tern_msg_word(m, 1);
	tern_reply(t, m, PAPER_FETCHED, was);
}

static void fetch_answer(tern *t, const tern_msg *m)
{
	fetched = tern_msg_word(m, 0);
	tern_signal(t, &fetches, 1);
}

static int handlers_register(tern *t)
{
	static tern_handler *const handlers[] = { ask, ask_xfer4, ask_xfer, fetch, fetch_answer };
	return handlers_on(t, PAPER_ASK, handlers, sizeof handlers / sizeof *handlers);
}

/* A segment that is full begins again: it stays open for all batches. */
static size_t segment_again(tern *t, void *base, void *info)
{
	(void)t, (void)base, (void)info;
	return ROOM;
}

static int paper_open(struct bench_rank *p)
{
	memset(room, 1, sizeof room);
	memset(payload, 1, sizeof payload);
	int rc = pair_open(p);
	if (!rc)
		rc = handlers_register(p->t);
	for (int i = 0; i < 2 && !rc; i++)
		rc = handlers_register(pair[i]);
	if (!rc)
		rc = tern_segment_open(pair[0], room, ROOM, segment_again, NULL, &asked);
	for (int i = 0; i < SEGMENTS && !rc; i++)
		rc = tern_segment_open(pair[1], room, ROOM, segment_again, NULL, &served[i]);
	return rc;
}

/* -- Batches ----------------------------------------------------------------------- */

/* Requests of four words to one handler; a batch's size says nothing then. */
#define SENDS(name, handler)                                         \
	static int name(uint32_t size, unsigned n)                   \
	{                                                            \
		(void)size;                                          \
		return words_send_to(pair[0], 1, handler, WORDS, n); \
	}                                                            \
	struct bench_rank
SENDS(send_signals, WORDS_LAND);
SENDS(send_asks, PAPER_ASK);
SENDS(send_asks_xfer4, PAPER_ASK_XFER4);

static int send_asks_xfer(uint32_t words, unsigned n)
{
	xfer_words = words;
	return words_send_to(pair[0], 1, PAPER_ASK_XFER, WORDS, n);
}

static int send_fetches(uint32_t size, unsigned n)
{
	int rc = 0;
	(void)size;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = tern_request(pair[0], 1, PAPER_FETCH, 0, 1);
	return rc;
}

/* The size is how many segments take turns. */
static int send_xfer4s(uint32_t segments, unsigned n)
{
	static const uint64_t words[WORDS] = { 1, 2, 3, 4 };
	static tern_op op = TERN_OP;
	int rc = 0;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = tern_segment_put_start(pair[0], served[i % segments], words, 32, &op);
	return rc;
}

static int send_xfers(uint32_t words, unsigned n)
{
	static tern_op op = TERN_OP;
	int rc = 0;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = tern_segment_put_start(pair[0], served[0], payload, 8 * (size_t)words, &op);
	return rc;
}

enum batch { SIGNALS, ASKS, ASKS_XFER4, ASKS_XFER, FETCHES, XFER4S, XFERS }; /* ways */

static const struct pair_batch batches[] = {
	[SIGNALS] = { send_signals, PAIR_REPLIES, false },
	[ASKS] = { send_asks, PAIR_REPLIES, true },
	[ASKS_XFER4] = { send_asks_xfer4, PAIR_REPLIES, true },
	[ASKS_XFER] = { send_asks_xfer, PAIR_PAYLOADS, true },
	[FETCHES] = { send_fetches, PAIR_REPLIES, true },
	[XFER4S] = { send_xfer4s, XFER_BATCH, true },
	[XFERS] = { send_xfers, PAIR_PAYLOADS, true },
};

static struct pair_each batch_play(struct bench_rank *p, const struct pair_batch *b, uint32_t size)
{
	struct pair_each each = pair_each(p, b, size);
	atomic_store(&fetches, 0);
	return each;
}

/* -- Messages and transfers ---------------------------------------------------------- */

static double batch_send(struct bench_rank *p)
{
	return batch_play(p, &batches[p->way], p->size).send;
}

static double batch_handle(struct bench_rank *p)
{
	return batch_play(p, &batches[p->way], p->size).handle;
}

static double batch_answer(struct bench_rank *p)
{
	return batch_play(p, &batches[p->way], p->size).answer;
}

static double batch_ask(struct bench_rank *p)
{
	struct pair_each c = batch_play(p, &batches[p->way], p->size);
	return c.send + c.answer;
}

static double batch_reply(struct bench_rank *p)
{
	const struct pair_batch *with = &batches[p->way];
	const struct pair_batch without = { send_signals, with->n, false };
	return batch_play(p, with, p->size).handle - batch_play(p, &without, WORDS).handle;
}

static double paper_segment(struct bench_rank *p)
{
	tern_segment s;
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rank && !p->rc; i++) {
		p->rc = tern_segment_open(pair[1], room, ROOM, NULL, NULL, &s);
		if (!p->rc)
			p->rc = tern_segment_close(pair[1], s);
	}
	return (double)pair_since(began) / (double)p->count;
}

/* -- Polls --------------------------------------------------------------------------- */

enum { POLL, POLL_REQUESTS, POLL_REPLIES }; /* ways */

/* That find nothing, after one that found something: there is an active peer to look at. */
static double paper_poll(struct bench_rank *p)
{
	static int (*const polls[])(tern * t) = { tern_poll, tern_poll_requests,
						  tern_poll_replies };
	int (*const poll)(tern * t) = polls[p->way];
	if (p->rank)
		return 0;
	p->rc = words_send(pair[0], 1, WORDS, 1);
	if (!p->rc)
		p->rc = tern_poll(pair[1]);
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && p->rc >= 0; i++)
		p->rc = poll(pair[1]);
	p->rc = p->rc < 0 ? p->rc : 0;
	return (double)pair_since(began) / (double)p->count;
}

/* -- Fetch and add, as messages --------------------------------------------------------- */

static int fetch_trip(struct bench_rank *p)
{
	int rc = tern_request(p->t, 1, PAPER_FETCH, 0, 1);
	return rc ? rc : tern_wait(p->t, &fetches, 1);
}

static REPEATS(fetch_trips, fetch_trip(p));

/* -- Injection --------------------------------------------------------------------------- */

/* For each byte of large messages, which nobody reads. */
static int trip_of_nothing(struct bench_rank *p)
{
	return words_trips(p->t, 0, p->count);
}

static REPEATS(inject, tern_request_data(p->t, 1, WORDS_LAND, payload, sizeof payload));

static double paper_injection(struct bench_rank *p)
{
	return each_ns(p, words_handled_after(p, trip_of_nothing, inject)) / sizeof payload;
}

enum { N_WORDS = 128 };

/*
 * Of the nCUBE/2 the thesis gives microseconds, and in the text the instructions of two paths; of
 * the CM-5 microseconds and cycles, whose words have 32 bits and whose messages carry 16 bytes.
 */
static const struct paper_row rows[] = {
	{ "send request, 4 words", "4-1, 4-7", words_sending, .size = 4, .bytes = 32,
	  .ncube = { 13.1, 24 }, .cm5 = { 1.5, 50.7, 10.6 } },
	{ "send reply, 4 words", "4-7", batch_reply, .way = ASKS, .bytes = 32,
	  .cm5 = { 1.3, 42.8, 12.3 } },
	{ "handle request", "4-1, 4-7", words_handling, .size = 4, .bytes = 32,
	  .ncube = { 15.0, 37 }, .cm5 = { 1.6, 52.2, 10.0 } },
	{ "handle reply", "4-7", batch_answer, .way = ASKS, .size = WORDS, .bytes = 32,
	  .cm5 = { 1.6, 52.2, 10.0 } },
	{ "open and close a segment", "4-7", paper_segment, .share = 2,
	  .cm5 = { .us = 6.7, .cycles = 221.7 } },
	{ "xfer 4 words, request", "4-7", batch_send, .way = XFER4S, .size = 1, .share = 2,
	  .bytes = 32, .cm5 = { 2.3, 75.4, 7.0 } },
	{ "xfer 4 words, reply", "4-7", batch_reply, .way = ASKS_XFER4, .share = 2, .bytes = 32,
	  .cm5 = { 1.6, 54.1, 9.8 } },
	{ "xfer N words, request", "4-7", batch_send, .way = XFERS, .size = N_WORDS, .share = 20,
	  .bytes = 8 * N_WORDS, .cm5 = { 1.7, 56.7, 9.3 } },
	{ "xfer N words, reply", "4-7", batch_reply, .way = ASKS_XFER, .size = N_WORDS, .share = 20,
	  .bytes = 8 * N_WORDS, .cm5 = { 1.6, 52.9, 10.0 } },
	{ "handle xfer, 1 segment", "4-7", batch_handle, .way = XFER4S, .size = 1, .share = 2,
	  .bytes = 32, .cm5 = { 1.6, 52.6, 10.0 } },
	{ "handle xfer, 2 segments", "4-7", batch_handle, .way = XFER4S, .size = SEGMENTS,
	  .share = 2, .bytes = 32, .cm5 = { 2.2, 71.1, 7.4 } },
	{ "poll, nothing there", "4-7", paper_poll, .way = POLL,
	  .cm5 = { .us = 0.7, .cycles = 22.0 } },
	{ "poll requests", "", paper_poll, .way = POLL_REQUESTS },
	{ "poll replies", "4-7", paper_poll, .way = POLL_REPLIES,
	  .cm5 = { .us = 0.3, .cycles = 11.0 } },
	{ "round trip, neighbour", "4-1, 4-7", logp_trip, .size = 4, .share = 20,
	  .ncube = { .us = 76.2 }, .cm5 = { .us = 11.2, .cycles = 368.1 } },
	{ "latency of a hop", "4-1, 4-7", NULL, .ncube = { .us = 2.2 },
	  .cm5 = { .us = 0.8, .cycles = 8.0 } },
	{ "injection, for each byte", "4-1", paper_injection, .share = 100, .bytes = 1,
	  .ncube = { .us = 0.45 } },
	{ "fetch&add, requester", "4-8", batch_ask, .way = FETCHES,
	  .cm5 = { .us = 4.3, .cycles = 143 } },
	{ "fetch&add, server", "4-8", batch_handle, .way = FETCHES,
	  .cm5 = { .us = 3.5, .cycles = 115 } },
	{ "fetch&add, round trip", "4-8", words_acted, .act = fetch_trips, .share = 20,
	  .cm5 = { .us = 12.2, .cycles = 404 } },
	{ "send 0 words", "", words_sending, .way = 0 },
	{ "send 1 word", "", words_sending, .size = 1, .bytes = 8 },
	{ "send 2 words", "", words_sending, .size = 2, .bytes = 16 },
	{ "send 3 words", "", words_sending, .size = 3, .bytes = 24 },
	{ "send 4 words", "", words_sending, .size = 4, .bytes = 32 },
	{ "send 5 words", "", words_sending, .size = 5, .bytes = 40 },
	{ "send 6 words", "", words_sending, .size = 6, .bytes = 48 },
	{ "handle 0 words", "", words_handling, .way = 0 },
	{ "handle 1 word", "", words_handling, .size = 1, .bytes = 8 },
	{ "handle 2 words", "", words_handling, .size = 2, .bytes = 16 },
	{ "handle 3 words", "", words_handling, .size = 3, .bytes = 24 },
	{ "handle 4 words", "", words_handling, .size = 4, .bytes = 32 },
	{ "handle 5 words", "", words_handling, .size = 5, .bytes = 40 },
	{ "handle 6 words", "", words_handling, .size = 6, .bytes = 48 },
};

static const char *const notes[] = {
	"overheads are the processor's part alone: two endpoints of one thread, no line travels",
	"N: 128 words of 64 bits here, in one message; on the CM-5, one message of 16 bytes",
	"transfers are acknowledged here: handling includes the reply, which the sender takes in",
	"handling on the CM-5 is one figure for requests and replies",
	"a hop: none here; the thesis' 0.8 us and 8 cycles for the CM-5 do not agree",
	NULL
};

const struct paper_table paper_thesis = {
	.title =
		"Tables 4-1, 4-7 and 4-8 of von Eicken's thesis: the processor's part of overheads",
	.key = "thesis",
	.row = rows,
	.rows = sizeof rows / sizeof *rows,
	.test = { .name = "paper", .ranks = 2, .cores = 2, .warm = 2, .open = paper_open },
	.notes = notes,
};

/* -- The phases ---------------------------------------------------------------------- */

/* For each byte of large ones. */
static double sends_injection(struct bench_rank *p)
{
	return sends_stream(p) / p->size;
}

static const struct paper_row phase_rows[] = {
	{ "send, to two ranks", "4-1, 4-7", words_two_receivers, .size = WORDS, .bytes = 32,
	  .ncube = { .us = 13.1 }, .cm5 = { 1.5, 50.7, 10.6 } },
	{ "handle, from one rank", "4-1", logp_gap, .way = LOGP_WORDS, .size = WORDS, .bytes = 32,
	  .ncube = { .us = 15.0 } },
	{ "handle, from two ranks", "4-7", words_two_senders, .size = WORDS, .bytes = 32,
	  .cm5 = { 1.6, 52.2, 10.0 } },
	{ "send, 1 KiB", "4-2", bytes_two_receivers, .size = KIB, .share = 20, .bytes = KIB },
	{ "handle, 1 KiB", "4-2", bytes_two_senders, .size = KIB, .share = 20, .bytes = KIB },
	{ "send&receive, send", "4-1", sends_two_receivers, .size = 8 * WORDS, .share = 4,
	  .bytes = 32, .ncube = { .us = 92 } },
	{ "send&receive, receive", "4-1", sends_two_senders, .size = 8 * WORDS, .share = 4,
	  .bytes = 32, .ncube = { .us = 102 } },
	{ "send&receive, round trip", "4-1", sends_trip, .size = 8 * WORDS, .share = 20,
	  .ncube = { .us = 328 } },
	{ "send&receive, each byte", "4-1", sends_injection, .size = TERN_PAYLOAD_MAX, .share = 100,
	  .bytes = 1, .ncube = { .us = 0.45 } },
};

static const char *const phase_notes[] = {
	"as the thesis measures overhead: a rank that sends to two in turn, and one that two send "
	"to, is the",
	"bottleneck; until the last message has been handled. It contains the way of cache lines; "
	"over a network the",
	"kernel's work. The nCUBE/2's receive overhead is that of a stream from one node, the "
	"larger of both sides",
	NULL
};

const struct paper_table paper_phases = {
	.title = "The thesis' phases between processes, three ranks",
	.key = "phases",
	.row = phase_rows,
	.rows = sizeof phase_rows / sizeof *phase_rows,
	.test = { .name = "phases",
		  .ranks = OVERHEAD_RANKS,
		  .cores = OVERHEAD_RANKS,
		  .warm = 2,
		  .open = logp_payload_fill },
	.notes = phase_notes,
};
