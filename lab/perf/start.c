/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on mapped memory that are complete on return: split-phase puts and gets, atomics, and puts
 * that end in a request. The limit is what a program does by itself with the same bytes.
 */
#include "base/clock.h"
#include "lab/bench/place.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { HANDLER_PUT = WORDS_FREE, HANDLER_ASK };

static tern_op op;
static uint64_t value;

/* What a rank puts lies elsewhere than what is put there; and so does the word of the atomics. */
enum { SOURCE_AT = 8 << 10, WORD_AT = 2 * SOURCE_AT, BYTES = WORD_AT + 64 };

/* Puts as much back, and answers. */
static void handler_put(tern *t, const tern_msg *m)
{
	tern_put(t, place.addr, place.own + SOURCE_AT, tern_msg_word(m, 0));
	tern_reply(t, m, WORDS_ANSWER);
}

/* Answers with so many bytes, in place. */
static void handler_ask(tern *t, const tern_msg *m)
{
	tern_put_reply(t, m, place.addr, WORDS_ANSWER, place.own + SOURCE_AT, tern_msg_word(m, 0),
		       NULL);
}

static int start_open(struct bench_rank *p)
{
	int rc = place_make(p, BYTES);
	if (!rc)
		rc = tern_on(p->t, HANDLER_PUT, handler_put);
	return rc ? rc : tern_on(p->t, HANDLER_ASK, handler_ask);
}

/* -- Each call, `count` times ----------------------------------------------------------- */

static REPEATS(put_starts, tern_put_start(p->t, place.addr, place.own + SOURCE_AT, p->size, &op));
static REPEATS(get_starts, tern_get_start(p->t, place.own + SOURCE_AT, place.addr, p->size, &op));
static REPEATS(copies_there, place_copied(place.there, place.own + SOURCE_AT, p->size));
static REPEATS(copies_here, place_copied(place.own + SOURCE_AT, place.there, p->size));

/* -- Atomics that nobody fights for -------------------------------------------------------- */

static int adds(struct bench_rank *p)
{
	const tern_addr word = place.addr + WORD_AT;
	uint32_t half;
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = p->size == sizeof half ? tern_amo(p->t, word, TERN_AMO_ADD, 1, &half)
					       : tern_amo(p->t, word, TERN_AMO_ADD, 1, &value);
	return p->rc;
}

static int adds_bare(struct bench_rank *p)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)(place.there + WORD_AT);
	_Atomic uint32_t *half = (_Atomic uint32_t *)(void *)(place.there + WORD_AT);
	for (uint64_t i = 0; i < p->count; i++)
		value += p->size == sizeof *half ? atomic_fetch_add(half, 1)
						 : atomic_fetch_add(word, 1);
	return 0;
}

static int sums(struct bench_rank *p)
{
	const tern_addr word = place.addr + WORD_AT;
	double was;
	float short_was;
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = p->size == sizeof was
				? tern_amo(p->t, word, TERN_AMO_ADD, 1.0, &was)
				: tern_amo(p->t, word, TERN_AMO_ADD, 1.0f, &short_was);
	return p->rc;
}

static int sums_bare(struct bench_rank *p)
{
	_Atomic double *word = (_Atomic double *)(void *)(place.there + WORD_AT);
	_Atomic float *half = (_Atomic float *)(void *)(place.there + WORD_AT);
	for (uint64_t i = 0; i < p->count; i++) {
		double was = p->size == sizeof *word ? *word : 0;
		float short_was = p->size == sizeof *half ? *half : 0;
		while (p->size == sizeof *word
			       ? !atomic_compare_exchange_weak(word, &was, was + 1.0)
			       : !atomic_compare_exchange_weak(half, &short_was, short_was + 1.0f))
			;
	}
	return 0;
}

/* -- A list of one part ------------------------------------------------------------------------ */

static REPEATS(part_puts,
	       tern_put_parts(p->t, &(tern_part){ .addr = place.addr, .run = p->size }, 1,
			      &(tern_part){ .base = place.own + SOURCE_AT, .run = p->size }, 1));

/* -- A put that ends in a request ----------------------------------------------------------- */

/* There and back, each with the data: half of it is one. */
static REPEATS(put_request_trips,
	       words_answered(p->t, tern_put_request(p->t, place.addr, HANDLER_PUT,
						     place.own + SOURCE_AT, p->size, p->size)));

static double put_request_figure(struct bench_rank *p)
{
	return each_ns(p, words_acted_after(p, NULL, put_request_trips)) / 2;
}

/* A line there and back, so many times as `ways` has halves of that; and the copy. */
static double line_figure(struct bench_rank *p, int ways)
{
	uint64_t began = clock_ns();
	raw_trips(p);
	double trip = each_ns(p, clock_ns() - began) / 2 * ways;
	began = clock_ns();
	if (!p->rank)
		copies_there(p);
	return trip + each_ns(p, clock_ns() - began);
}

static double put_line_figure(struct bench_rank *p)
{
	return line_figure(p, 1);
}

static double ask_line_figure(struct bench_rank *p)
{
	return line_figure(p, 2);
}

static REPEATS(put_reply_trips, words_answered(p->t, tern_request(p->t, 1, HANDLER_ASK, p->size)));

/* -- Named memory --------------------------------------------------------------------------- */

static char block[8 << 10], *block_at = block;

static int block_open(struct bench_rank *p)
{
	return tern_block_name(p->t, 0, (void *const *)(void *)&block_at, sizeof block);
}

static char block_to[sizeof block];

static REPEATS(block_gets, tern_block_get(p->t, block_to, p->size, 1,
					  &(tern_block){ .run = p->size, .count = 1 }));

static int block_trips(struct bench_rank *p)
{
	return words_trips(p->t, 1, p->count);
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test start_tests[] = {
	{ "mapped", NULL, "ns", "bytes", 1, 8 << 10, .sizes = { 3, { 8, 512, 4 << 10 } },
	  .count = 20000, .open = start_open, .limit = { { copies_there, PHASE_FIRST } },
	  .limit_name = "memcpy by the same process between the same bytes of the two heaps" },
	{ "put-start", "split-phase puts to another rank's heap, complete on return", NULL,
	  .like = "mapped", .measure = { put_starts, PHASE_FIRST },
	  .bar = { { 512, "at most 1.10" }, { 4 << 10, "at most 1.10" } } },
	{ "get-start", "split-phase gets from another rank's heap, complete on return", NULL,
	  .like = "put-start", .measure = { get_starts, PHASE_FIRST },
	  .limit = { { copies_here, PHASE_FIRST } } },
	{ "part", "a put of a list of one part", NULL, "bytes", 1, 8 << 10,
	  .sizes = { 3, { 8, 64, 512 } }, .like = "mapped", .measure = { part_puts, PHASE_FIRST } },
	{ "add", "fetch-and-add on a word of a heap that nobody else touches", NULL, "bytes", 4, 8,
	  .sizes = { 2, { 4, 8 } }, .like = "mapped", .measure = { adds, PHASE_FIRST },
	  .limit = { { adds_bare, PHASE_FIRST } },
	  .limit_name = "the bare instruction on the same word", .bar = { { 4, "at most 1.30" } } },
	{ "sum", "the same of a float and a double", NULL, .like = "add",
	  .measure = { sums, PHASE_FIRST }, .limit = { { sums_bare, PHASE_FIRST } },
	  .limit_name = "a load and a compare-and-swap on the same word",
	  .bar = { { 4, "at most 1.30" }, { 8, "at most 1.30" } } },
	{ "put-request", "a put with a message after it, to its handler's first instruction", "ns",
	  "bytes", 1, 8 << 10, .sizes = { 2, { 64, 512 } }, .count = 4000, .open = start_open,
	  .measure.figure = put_request_figure,
	  .limit = { { .figure = put_line_figure, .way = RAW_PAUSE },
		     { .figure = put_line_figure, .way = RAW_BARE } },
	  .limit_name = "memcpy of the same bytes, and one way of a raw cache line",
	  .bar = { { 512, "at most 1.15" } },
	  .note = "half of a round trip in which each side puts; nobody reads the data" },
	{ "put-reply", "a request, and a reply with data that are put in place", "ns", "bytes", 1,
	  8 << 10, .sizes = { 3, { 64, 512, 8192 } }, .count = 4000, .open = start_open,
	  .measure = { put_reply_trips, PHASE_ACTED },
	  .limit = { { .figure = ask_line_figure, .way = RAW_PAUSE },
		     { .figure = ask_line_figure, .way = RAW_BARE } },
	  .limit_name = "memcpy of the same bytes, and a raw cache line there and back",
	  .note = "nobody reads the data" },
	{ "block-get", "a block of another rank's named memory", "ns", "bytes", 1, 8 << 10,
	  .sizes = { 2, { 64, 4 << 10 } }, .count = 2000, .open = block_open,
	  .measure = { block_gets, PHASE_ACTED }, .limit = { { block_trips, PHASE_ACTED } },
	  .limit_name = "a round trip of a request of one word",
	  .bar = { { 64, "at most 3.00" } } },
	{ .like = NULL },
};
