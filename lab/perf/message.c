/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages and payloads between two processes: how long one takes, how many a second, how
 * many bytes; and what sending costs the sender and handling the receiver.
 *
 * The papers measure overhead with three nodes: one that sends to two is the bottleneck,
 * and so is one that receives from two. That needs three cores. Everywhere else,
 * two endpoints of one thread give the processor's part: a batch is sent while
 * nobody polls, then handled, and every line stays in this core's cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lab/bench/pair.h"
#include "lab/bench/place.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { HANDLER_ASK = WORDS_FREE };

/* -- Payload -------------------------------------------------------------------- */

static char *payload; /* of the sender: its own memory, as a program's would be */

static int payload_fill(struct bench_rank *p)
{
	payload = aligned_alloc(64, (p->size + 63) / 64 * 64);
	if (!payload)
		return error_set(-ENOMEM, "no memory for %u bytes to copy", p->size);
	memset(payload, 1, p->size);
	return 0;
}

static REPEATS(payload_send, tern_request_data(p->t, 1, WORDS_READ, payload, p->size));

static int payload_raw(struct bench_rank *p)
{
	return raw_copies(p, payload);
}

/* A request with a payload, and a reply without. */
static void handler_ask(tern *t, const tern_msg *m)
{
	words_read(t, m);
	tern_reply(t, m, WORDS_ANSWER);
}

static int payload_trip_open(struct bench_rank *p)
{
	int rc = payload_fill(p);
	return rc ? rc : tern_on(p->t, HANDLER_ASK, handler_ask);
}

static REPEATS(payload_trips,
	       words_answered(p->t, tern_request_data(p->t, 1, HANDLER_ASK, payload, p->size, i)));
static REPEATS(bare_trips, words_answered(p->t, tern_request(p->t, 1, HANDLER_ASK, i)));

/* -- The processor's part ---------------------------------------------------------- */

enum { SENDING, HANDLING }; /* ways */

static struct raw_line own[RAW_LINES];

static double own_measure(struct bench_rank *p)
{
	uint64_t write = 0, read = 0, lines = 0;
	for (; lines < p->count; lines += PAIR_BATCH) {
		uint64_t began = clock_ns();
		raw_write_own(own, lines, PAIR_BATCH);
		write += pair_since(began);
		began = clock_ns();
		raw_sink += raw_read_own(own, lines, PAIR_BATCH);
		read += pair_since(began);
	}
	return (double)(p->way == SENDING ? write : read) / (double)lines;
}

/* -- An empty poll ---------------------------------------------------------------- */

enum { PEERS_MOST = 255, POLLS_TO_SILENCE = 20000 };

/* Rank 0 and its peers, all of which this thread plays; each has sent once, and is silent since. */
static tern *circle[PEERS_MOST + 1];

static double poll_time(struct bench_rank *p, tern *t)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && p->rc >= 0; i++)
		p->rc = tern_poll(t);
	return each_ns(p, clock_ns() - began);
}

static double poll_measure(struct bench_rank *p)
{
	return poll_time(p, circle[0]);
}

/* One peer, which has sent lately. */
static double poll_one(struct bench_rank *p)
{
	p->rc = words_send(pair[0], 1, 1, 1);
	if (!p->rc)
		p->rc = tern_poll(pair[1]);
	return p->rc < 0 ? 0 : poll_time(p, pair[1]);
}

static int poll_open(struct bench_rank *p)
{
	int rc = pair_open(p);
	if (!rc)
		rc = tern_open_local(p->size + 1, circle);
	for (uint32_t r = 0; !rc && r <= p->size; r++)
		rc = words_register(circle[r]);
	for (uint32_t r = 1; !rc && r <= p->size; r++)
		rc = words_send(circle[r], 0, 1, 1);
	for (int i = 0; rc >= 0 && i < POLLS_TO_SILENCE; i++)
		rc = tern_poll(circle[0]);
	return rc < 0 ? rc : 0;
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test message_tests[] = {
	{ "raw-trip", NULL, "ns",
	  .limit = { { raw_trips, PHASE_ALL, RAW_PAUSE }, { raw_trips, PHASE_ALL, RAW_BARE } },
	  .limit_name =
		  "a raw cache line there and back, 512 lines in turn, the better of two ways to "
		  "spin" },
	{ "round-trip", "a request and its reply, with as many words", "ns", "words", 0,
	  TERN_WORDS_MAX, .sizes = { 6, { 0, 1, 2, 4, 6, 8 } }, .quick = { 1, { 4 } },
	  .like = "raw-trip", .count = 4000, .measure = { words_trips_of, PHASE_ACTED },
	  .bar = { { 4, "at most 1.10" } } },
	{ "rate", "requests one way, a handler called for each", "M/s", "words", 0, TERN_WORDS_MAX,
	  .sizes = { 6, { 0, 1, 2, 4, 6, 8 } }, .quick = { 2, { 1, 4 } }, .count = 200000,
	  .measure = { words_sends_of, PHASE_HANDLED },
	  .limit = { { raw_stream, PHASE_ALL, RAW_PAUSE }, { raw_stream, PHASE_ALL, RAW_BARE } },
	  .limit_name =
		  "a bare ring, one cache line with 4 words for each message, or two for 7 and 8 "
		  "words (0 and 1 word share lines)",
	  .bar = { { 1, "at least 150 M/s" },
		   { 4, "at least 0.70, 80 M/s" },
		   { 8, "at least 0.90" } } },
	{ "payload", "requests with a payload that the handler reads", "GB/s", "bytes", 1,
	  TERN_REQUEST_MAX, .sizes = { 7, { 64, 256, 1024, 2048, 4096, 8192, TERN_REQUEST_MAX } },
	  .quick = { 1, { 4096 } }, .bytes = 8 << 20, .open = payload_fill,
	  .measure = { payload_send, PHASE_HANDLED },
	  .limit = { { payload_raw, PHASE_ALL, RAW_PAUSE }, { payload_raw, PHASE_ALL, RAW_BARE } },
	  .limit_name =
		  "up to 512 bytes a bare ring, each payload in the lines behind its message; else "
		  "as many bare blocks, one after another; read with the same loop",
	  .bar = { { 64, "at least 0.80" }, { 256, "at least 0.80" }, { 4096, "at least 0.80" } } },
	{ "payload-trip", "a request with a word and a payload that the handler reads, and a reply",
	  "ns", "bytes", 0, TERN_PAYLOAD_MAX, .sizes = { 2, { 0, 64 } }, .count = 4000,
	  .open = payload_trip_open, .measure = { payload_trips, PHASE_ACTED },
	  .limit = { { bare_trips, PHASE_ACTED } }, .limit_name = "the same without a payload",
	  .bar = { { 0, "at most 1.00" } } },
	{ "send-overhead", "what a request costs its sender", "ns",
	  /* More than a line has take two, and a ring has no room for a batch of those. */ "words",
	  0, TERN_LINE_WORDS, .sizes = { 2, { 1, 4 } }, .ranks = 1, .count = 40 * PAIR_BATCH,
	  .open = pair_open, .measure.figure = words_sending,
	  .limit = { { .figure = own_measure, .way = SENDING } },
	  .limit_name = "writing one line with 4 words, in this core's cache",
	  .note = "two endpoints of one thread, so that no line travels: the instructions alone" },
	{ "handling-overhead",
	  "what a request costs its receiver, up to and including a small handler", "ns",
	  .like = "send-overhead", .measure.figure = words_handling,
	  .limit = { { .figure = own_measure, .way = HANDLING } },
	  .limit_name = "reading one line with 4 words, in this core's cache" },
	{ "two-receivers", "one rank sends to two in turn, so that the sender is the bottleneck",
	  "ns", "words", 4, 4, .sizes = { 1, { 4 } }, .ranks = 3, .count = 200000,
	  .measure.figure = words_two_receivers },
	{ "two-senders", "two ranks send to one, so that the receiver is the bottleneck", "ns",
	  .like = "two-receivers", .measure.figure = words_two_senders },
	{ "poll", "a poll that finds nothing, with as many peers that have fallen silent", "ns",
	  "peers", 1, PEERS_MOST, .sizes = { 2, { 1, PEERS_MOST } }, .ranks = 1, .count = 100000,
	  .open = poll_open, .measure.figure = poll_measure, .limit[0].figure = poll_one,
	  .limit_name = "the same with one peer that has sent lately" },
	{ .like = NULL },
};
