/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that is handed over: what it costs, and how much of it is hidden behind a computation. */
#include <tern/async.h>

#include "base/clock.h"
#include "tools/bench/place.h"
#include "tools/perf/perf.h"

/* -- A message there and back ---------------------------------------------------------------- */

enum { PING };

static tern_op sent;
static _Atomic uint64_t pings;

static int word_fill(tern *t, tern_out *out, void *arg)
{
	(void)t, (void)arg;
	return tern_chan_put8(out, 1);
}

/* Rank 1 hands its answer over as soon as it has the word. */
static int word_drain(tern *t, tern_incoming *m, void *arg)
{
	uint64_t word;
	(void)arg;
	int rc = tern_chan_get8(m->in, &word);
	if (rc)
		return rc;
	tern_signal(t, &pings, 1);
	return tern_rank(t) ? tern_async(t, 0, word_fill, PING, NULL, &sent) : 0;
}

static int async_trip_open(struct bench_rank *p)
{
	return tern_async_on(p->t, PING, word_drain, NULL);
}

static double async_trip_measure(struct bench_rank *p)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		if (!p->rank)
			p->rc = tern_async(p->t, 1, word_fill, PING, NULL, &sent);
		if (!p->rc)
			p->rc = tern_wait(p->t, &pings, 1);
	}
	if (!p->rc)
		p->rc = tern_op_wait(p->t, &sent);
	return each_ns(p, clock_ns() - began);
}

static const struct test test_async_trip = {
	{ "async-trip", "a message that is handed over there, and its answer back", "ns" },
	{ "bytes", 8, 8, { 1, { 8 } }, { 0 } },
	.amount = { .count = 2000 },
	.play = { .open = async_trip_open,
		  .measure = async_trip_measure,
		  .limit = { trip_raw, trip_raw },
		  .limit_way = { RAW_PAUSE, RAW_BARE } },
	.limit_name = TRIP_RAW,
};

/* -- Turns ------------------------------------------------------------------------------------- */

static int turn_one(tern *t, void *arg)
{
	(void)t;
	return --*(uint64_t *)arg ? 1 : 0;
}

static tern *alone;

static int turn_open(struct bench_rank *p)
{
	(void)p;
	return tern_open_local(1, &alone);
}

static double turn_measure(struct bench_rank *p)
{
	uint64_t left = p->count, began = clock_ns();
	p->rc = tern_queue(alone, turn_one, &left, NULL);
	return each_ns(p, clock_ns() - began);
}

static double poll_limit(struct bench_rank *p)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		int rc = tern_poll(alone);
		p->rc = rc < 0 ? rc : 0;
	}
	return each_ns(p, clock_ns() - began);
}

static const struct test test_turn = {
	{ "turn", "one turn of something in the queue, with the poll that gives it", "ns" },
	{ "ranks", 1, 1, { 1, { 1 } }, { 0 } },
	.amount = { .ranks = 1, .count = 20000 },
	.play = { .open = turn_open, .measure = turn_measure, .limit = { poll_limit } },
	.limit_name = "a poll that finds nothing",
};

/* -- A transfer behind a computation ----------------------------------------------------------- */

static struct place place;

static int overlap_open(struct bench_rank *p)
{
	return place_open(p, &place, p->size);
}

/* As long as the transfer several times over, and touching no memory. */
static void compute(uint64_t steps)
{
	uint64_t x = steps;
	for (uint64_t i = 0; i < steps; i++)
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	raw_sink += x;
}

static double overlap_measure(struct bench_rank *p)
{
	tern_op op = TERN_OP;
	uint64_t began = clock_ns();
	if (p->rank)
		return 0; /* whose heap is read, and who need not take part */
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		p->rc = tern_read_async(p->t, place.own, place.addr, p->size, &op);
		compute(p->size);
		if (!p->rc)
			p->rc = tern_op_wait(p->t, &op);
	}
	return each_ns(p, clock_ns() - began) / 1000;
}

static double overlap_limit(struct bench_rank *p)
{
	uint64_t began = clock_ns();
	if (p->rank)
		return 0;
	for (uint64_t i = 0; i < p->count; i++)
		compute(p->size);
	return each_ns(p, clock_ns() - began) / 1000;
}

static const struct test test_overlap = {
	{ "overlap",
	  "a computation with a read of remote memory handed over, and a progress thread", "us" },
	{ "bytes", 1 << 10, 64 << 20, { 2, { 1 << 20, 8 << 20 } }, { 0 } },
	.amount = { .count = 8, .bytes = 16 << 20, .rounds = 21 },
	.play = { .open = overlap_open, .measure = overlap_measure, .limit = { overlap_limit } },
	.limit_name = "the computation alone",
	.set = { { "TERN_DELIVERY", "thread" } },
};

static const struct test test_no_overlap = {
	{ "no-overlap", "the same where nobody polls while the program computes", "us" },
	.like = &test_overlap,
	.set = { { "TERN_DELIVERY", "poll" } },
};

const struct test *const async_tests[] = { &test_async_trip, &test_turn, &test_overlap,
					   &test_no_overlap, NULL };
