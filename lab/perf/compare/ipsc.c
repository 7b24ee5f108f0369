/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Section 4 of Rosing and Saltz: a word that bounces between two ranks, and a pipelined solve in
 * which every value goes to the next rank as a message of its own. apps/bounce.c and apps/banded.c
 * are the whole programs.
 */
#include <string.h>
#include <tern/chan.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "base/clock.h"
#include "lab/bench/words.h"
#include "lab/perf/compare/paper.h"
#include "lab/perf/perf.h"

enum { HANDLER_VALUE = WORDS_FREE, VALUES = 2048 };
enum { ID = 1, END };                                /* ids of messages */
enum { NONE, SEND, PROBE, MESSAGE, CHANNEL, FETCH }; /* ways */

static const double near = 0.25, far = 0.5; /* coefficients */

static double came[VALUES]; /* by bare messages, in their order */
static uint64_t came_count, came_taken;
static tern_flag arrived;

/* Products that rank 0 offers, and how many it ever has; at the same place of every heap. */
struct offer {
	_Atomic uint64_t ready;
	double product[VALUES];
};
static struct offer *offer;
static tern_addr offer_at;
static uint64_t offered; /* before this phase */

static void on_value(tern *t, const tern_msg *m)
{
	came[came_count++ % VALUES] = tern_msg_double(m, 0);
	tern_signal(t, &arrived, 1);
}

static int ipsc_open(struct bench_rank *p)
{
	void *own;
	int rc = words_register(p->t);
	if (!rc)
		rc = tern_on(p->t, HANDLER_VALUE, on_value);
	if (!rc)
		rc = tern_alloc_all(p->t, sizeof *offer, &own);
	if (rc)
		return rc;
	offer = memset(own, 0, sizeof *offer);
	offer_at = tern_addr_at(p->t, 0, own);
	rc = chan_pair_open(p);
	return rc ? rc : tern_barrier(p->t);
}

/* -- A word that bounces ----------------------------------------------------------------- */

static int word_take(struct bench_rank *p, uint64_t *word)
{
	tern_match match = { .rank = 1 - p->rank, .id = ID };
	int rc = 0;
	while (p->way == PROBE && !rc)
		rc = tern_probe(p->t, &match, NULL);
	return rc < 0 ? rc : tern_recv(p->t, 1 - p->rank, ID, word, sizeof *word, NULL);
}

static int bounce_once(struct bench_rank *p, uint64_t *word)
{
	int rc = p->rank ? word_take(p, word) : 0;
	if (!rc)
		rc = tern_send(p->t, 1 - p->rank, ID, &(uint64_t){ *word }, sizeof(uint64_t));
	return rc || p->rank ? rc : word_take(p, word);
}

/* One way: half of there and back. */
static int bounce(struct bench_rank *p)
{
	static uint64_t word;
	return bounce_once(p, &word);
}

static double bounce_sends(struct bench_rank *p)
{
	return acts_ns(p, bounce) / 2;
}

static double bounce_messages(struct bench_rank *p)
{
	return each_ns(p, words_acted_after(p, words_trips_of, words_trips_of)) / 2;
}

static double bounce_channel(struct bench_rank *p)
{
	uint64_t began = clock_ns();
	chan_trips(p);
	return each_ns(p, clock_ns() - began) / 2;
}

/* -- The pipelined solve ------------------------------------------------------------------ */

static int value_give(struct bench_rank *p, tern_out *out, uint64_t k, double value)
{
	uint64_t word;
	memcpy(&word, &value, sizeof word);
	switch (p->way) {
	case SEND:
		return tern_send(p->t, 1, ID, &word, sizeof word);
	case MESSAGE:
		return tern_request(p->t, 1, HANDLER_VALUE, value);
	case CHANNEL:
		return tern_chan_put(out, &word, sizeof word);
	case FETCH: /* pairs with the owner's or the reader's acquire in tern_get_when() */
		offer->product[k] = value;
		atomic_store_explicit(&offer->ready, offered + k + 1, memory_order_release);
		return 0;
	default:
		return 0;
	}
}

static int value_take(struct bench_rank *p, tern_in *in, uint64_t k, double *value)
{
	uint64_t word = 0;
	int rc = 0;
	switch (p->way) {
	case SEND:
		rc = tern_recv(p->t, 0, ID, &word, sizeof word, NULL);
		break;
	case MESSAGE:
		rc = tern_wait(p->t, &arrived, 1);
		*value = came[came_taken++ % VALUES];
		return rc;
	case CHANNEL:
		rc = tern_chan_get(in, &word, sizeof word);
		break;
	case FETCH:
		return tern_get_when(p->t, value,
				     offer_at + offsetof(struct offer, product) + k * sizeof *value,
				     sizeof *value, offer_at, offered + k + 1);
	default:
		return 0;
	}
	memcpy(value, &word, sizeof word);
	return rc;
}

/* A rank has a column; the ends of channels are local, so that they live in registers. */
static void solve(struct bench_rank *p, uint64_t n)
{
	bool channel = p->way == CHANNEL;
	tern_in in = channel && p->rank ? tern_chan_in(chan_there) : (tern_in){ 0 };
	tern_out out = channel && !p->rank ? tern_chan_out(chan_there) : (tern_out){ 0 };
	double y = 0, west = 0;
	for (uint64_t k = 0; k < n && !p->rc; k++) {
		if (p->rank)
			p->rc = value_take(p, &in, k, &west);
		y = 1 + (double)(k % 11) - far * y - west;
		if (!p->rank && !p->rc)
			p->rc = value_give(p, &out, k, near * y);
	}
	raw_sink += (uint64_t)(y > 0);
	if (channel && p->rank)
		tern_chan_in_back(&in);
	if (channel && !p->rank)
		tern_chan_out_back(&out);
}

/* Ns for one value, until the last rank has told that it is done, less the computation. */
static double solve_play(struct bench_rank *p)
{
	uint64_t word = 0, n = p->count < VALUES ? p->count : VALUES;
	int way = p->way;
	p->way = NONE;
	uint64_t began = clock_ns();
	if (!p->rank)
		solve(p, n);
	double compute = (double)(clock_ns() - began);
	p->way = way;
	if (way == NONE)
		return compute / (double)n;
	began = clock_ns();
	solve(p, n);
	if (!p->rc)
		p->rc = p->rank ? tern_send(p->t, 0, END, &(uint64_t){ 0 }, sizeof(uint64_t))
				: tern_recv(p->t, 1, END, &word, sizeof word, NULL);
	double all = (double)(clock_ns() - began);
	offered += way == FETCH ? n : 0;
	return all > compute ? (all - compute) / (double)n : 0;
}

static const struct paper_row rows[] = {
	{ "bounce, receive", "4", bounce_sends, .way = SEND, .share = 20, .other = { .us = 70 } },
	{ "bounce, it comes early", "4", bounce_sends, .way = PROBE, .share = 20,
	  .other = { .us = 130 } },
	{ "bounce, bare message", "4", bounce_messages, .size = 1, .share = 20,
	  .other = { .us = 25 } },
	{ "bounce, channel", "4", bounce_channel, .share = 20 },
	{ "solve, computation", "4", solve_play, .way = NONE, .share = 5, .other = { .us = 5 } },
	{ "solve, send and receive", "4", solve_play, .way = SEND, .share = 5,
	  .other = { .us = 474 } },
	{ "solve, bare messages", "4", solve_play, .way = MESSAGE, .share = 5,
	  .other = { .us = 89 } },
	{ "solve, open channel", "4", solve_play, .way = CHANNEL, .share = 5,
	  .other = { .us = 4 } },
	{ "solve, fetch", "4", solve_play, .way = FETCH, .share = 5, .other = { .us = 385 } },
};

static const char *const notes[] = {
	"bounce: one way. It comes early: the receiver probes until it is there; on the iPSC/860 "
	"it was interrupted.",
	"solve: for one value, of 2048 at most between two ranks, until the last rank is done; "
	"communication is what",
	"goes beyond the computation. The paper does not say that its figures are for one value; a "
	"message took 25 us",
	"at least, so they are read so. A fetch interrupted its owner there; here the owner serves "
	"it in its own waits",
	NULL
};

const struct paper_table paper_ipsc = {
	.title = "Section 4 of Rosing and Saltz",
	.key = "ipsc860",
	.machine = "iPSC/860",
	.row = rows,
	.rows = sizeof rows / sizeof *rows,
	.test = { { .name = "ipsc860" },
		  .amount = { .ranks = 2, .cores = 2, .warm = 2 },
		  .play.open = ipsc_open },
	.notes = notes,
};
