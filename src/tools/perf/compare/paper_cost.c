/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the thesis measured of CMAM, measured of Tern. What a handler adds to a batch (a reply,
 * a transfer) is the difference to a batch of as many requests whose handler
 * only counts; both are played in the same phase.
 */
#include <string.h>

#include <tern/mem.h>

#include "base/clock.h"
#include "tools/bench/pair.h"
#include "tools/bench/words.h"
#include "tools/perf/compare/paper.h"

enum {
	PAPER_ASK = WORDS_FREE,
	PAPER_ANSWER,
	PAPER_ASK_XFER4,
	PAPER_ASK_XFER,
	PAPER_FETCH,
	PAPER_FETCHED,
	PAPER_SIGNAL,
};

enum { XFERS = 32, SEGMENTS = 2, ROOM = 1 << 20, WORDS = 4 };

/* One segment of the requester, which replies fill, and two of the server. */
static tern_segment asked, served[SEGMENTS];
static char room[ROOM], payload[TERN_PAYLOAD_MAX];
static uint64_t xfer_words; /* of a transfer of N words */
static uint64_t counter, fetched;
static _Atomic uint64_t fetches;

/* -- Handlers ---------------------------------------------------------------------- */

static void ask(tern *t, const tern_msg *m)
{
	tern_reply(t, m, PAPER_ANSWER, m->word[0], m->word[1], m->word[2], m->word[3]);
}

static void answer(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	raw_sink++;
}

static void ask_xfer4(tern *t, const tern_msg *m)
{
	tern_reply_xfer4(t, m, asked, m->word);
}

static void ask_xfer(tern *t, const tern_msg *m)
{
	tern_reply_xfer(t, m, asked, payload, 8 * xfer_words);
}

static void fetch(tern *t, const tern_msg *m)
{
	uint64_t *at = &counter + tern_msg_arg(m, 0), was = *at;
	*at = was + tern_msg_arg(m, 1);
	tern_reply(t, m, PAPER_FETCHED, was);
}

static void fetch_answer(tern *t, const tern_msg *m)
{
	fetched = tern_msg_arg(m, 0);
	tern_signal(t, &fetches, 1);
}

static int handlers_register(tern *t)
{
	static tern_handler *const handlers[] = { ask,   answer,       ask_xfer4, ask_xfer,
						  fetch, fetch_answer, answer };
	int rc = 0;
	for (unsigned i = 0; i < sizeof handlers / sizeof *handlers && !rc; i++)
		rc = tern_on(t, PAPER_ASK + i, handlers[i]);
	return rc;
}

/* A segment that is full begins again: it stays open for all batches. */
static size_t segment_again(tern *t, void *base, void *info)
{
	(void)t, (void)base, (void)info;
	return ROOM;
}

int paper_open(struct bench_rank *p)
{
	memset(room, 1, sizeof room);
	memset(payload, 1, sizeof payload);
	int rc = words_register(p->t);
	if (!rc)
		rc = pair_open();
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

static int send_signals(uint32_t size, unsigned n)
{
	(void)size;
	return words_send_to(pair[0], 1, PAPER_SIGNAL, WORDS, n);
}

static int send_asks(uint32_t size, unsigned n)
{
	(void)size;
	return words_send_to(pair[0], 1, PAPER_ASK, WORDS, n);
}

static int send_asks_xfer4(uint32_t size, unsigned n)
{
	(void)size;
	return words_send_to(pair[0], 1, PAPER_ASK_XFER4, WORDS, n);
}

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
		rc = tern_xfer4(pair[0], served[i % segments], words, &op);
	return rc;
}

static int send_xfers(uint32_t words, unsigned n)
{
	static tern_op op = TERN_OP;
	int rc = 0;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = tern_xfer(pair[0], served[0], payload, 8 * (size_t)words, &op);
	return rc;
}

static const struct pair_batch signals = { send_signals, PAIR_REPLIES, false };
static const struct pair_batch asks = { send_asks, PAIR_REPLIES, true };
static const struct pair_batch asks_xfer4 = { send_asks_xfer4, PAIR_REPLIES, true };
static const struct pair_batch asks_xfer = { send_asks_xfer, PAIR_PAYLOADS, true };
static const struct pair_batch fetch_batch = { send_fetches, PAIR_REPLIES, true };
static const struct pair_batch xfer4s = { send_xfer4s, XFERS, true };
static const struct pair_batch xfers = { send_xfers, PAIR_PAYLOADS, true };

enum side { SEND, HANDLE, ANSWER, SEND_AND_ANSWER };

/* ns for one message of the batch, at one of the sides. */
static double batch_ns(struct bench_rank *p, const struct pair_batch *b, uint32_t size, enum side side)
{
	struct pair_cost c;
	uint64_t sent;
	if (p->rank || p->rc)
		return 0;
	p->rc = pair_play(b, size, p->count, &c, &sent);
	const uint64_t ns[] = { c.send, c.handle, c.answer, c.send + c.answer };
	return (double)ns[side] / (double)sent;
}

static double reply_ns(struct bench_rank *p, const struct pair_batch *with)
{
	struct pair_batch without = signals;
	without.n = with->n;
	return batch_ns(p, with, p->size, HANDLE) - batch_ns(p, &without, WORDS, HANDLE);
}

/* -- Messages and transfers ---------------------------------------------------------- */

double paper_reply(struct bench_rank *p)
{
	return reply_ns(p, &asks);
}

double paper_handle_reply(struct bench_rank *p)
{
	return batch_ns(p, &asks, WORDS, ANSWER);
}

double paper_xfer4(struct bench_rank *p)
{
	return batch_ns(p, &xfer4s, 1, SEND);
}

double paper_xfer4_reply(struct bench_rank *p)
{
	return reply_ns(p, &asks_xfer4);
}

double paper_xfer(struct bench_rank *p)
{
	return batch_ns(p, &xfers, p->size, SEND);
}

double paper_xfer_reply(struct bench_rank *p)
{
	return reply_ns(p, &asks_xfer);
}

double paper_handle_one(struct bench_rank *p)
{
	return batch_ns(p, &xfer4s, 1, HANDLE);
}

double paper_handle_two(struct bench_rank *p)
{
	return batch_ns(p, &xfer4s, SEGMENTS, HANDLE);
}

double paper_segment(struct bench_rank *p)
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

/* That find nothing, after one that found something: there is an active peer to look at. */
static double poll_ns(struct bench_rank *p, int (*poll)(tern *t))
{
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

double paper_poll(struct bench_rank *p)
{
	return poll_ns(p, tern_poll);
}

double paper_poll_requests(struct bench_rank *p)
{
	return poll_ns(p, tern_poll_requests);
}

double paper_poll_replies(struct bench_rank *p)
{
	return poll_ns(p, tern_poll_replies);
}

/* -- Fetch and add, as messages --------------------------------------------------------- */

double paper_fetch_ask(struct bench_rank *p)
{
	double ns = batch_ns(p, &fetch_batch, 0, SEND_AND_ANSWER);
	atomic_store(&fetches, 0);
	return ns;
}

double paper_fetch_serve(struct bench_rank *p)
{
	double ns = batch_ns(p, &fetch_batch, 0, HANDLE);
	atomic_store(&fetches, 0);
	return ns;
}

static int fetch_trips(struct bench_rank *p, uint64_t count)
{
	int rc = 0;
	for (uint64_t i = 0; i < count && !rc; i++) {
		rc = tern_request(p->t, 1, PAPER_FETCH, 0, 1);
		if (!rc)
			rc = tern_wait(p->t, &fetches, 1);
	}
	raw_sink += fetched;
	return rc;
}

/* Once untimed: the other rank may still be on its way. */
double paper_fetch_trip(struct bench_rank *p)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	p->rc = fetch_trips(p, 1);
	uint64_t began = clock_ns();
	if (!p->rc)
		p->rc = fetch_trips(p, p->count);
	uint64_t ended = clock_ns();
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return (double)(ended - began) / (double)p->count;
}

/* -- Injection --------------------------------------------------------------------------- */

/* For each byte of large messages, which nobody reads. */
double paper_injection(struct bench_rank *p)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	p->rc = words_trips(p->t, 0, 1);
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_request_data(p->t, 1, PAPER_SIGNAL, payload, sizeof payload);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return (double)(clock_ns() - began) / (double)(p->count * sizeof payload);
}
