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

static int async_trip_open(struct player *p)
{
	return tern_async_on(p->t, PING, word_drain, NULL);
}

static double async_trip_measure(struct player *p)
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
	return (double)(clock_ns() - began) / (double)p->count;
}

const struct test test_async_trip = {
	.name = "async-trip",
	.purpose = "a message that is handed over there, and its answer back",
	.size_name = "bytes",
	.size_least = 8,
	.size_most = 8,
	.sizes = { 1, { 8 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 2,
	.count = 2000,
	.rounds = 51,
	.warm = 2,
	.open = async_trip_open,
	.measure = async_trip_measure,
	.limit = { trip_raw_pause, trip_raw_bare },
	.limit_name = "a raw cache line there and back, 512 lines in turn, the better of two ways to spin",
};

/* -- Turns ------------------------------------------------------------------------------------- */

static int turn_one(tern *t, void *arg)
{
	(void)t;
	return --*(uint64_t *)arg ? 1 : 0;
}

static tern *alone;

static int turn_open(struct player *p)
{
	(void)p;
	return tern_open_local(1, &alone);
}

static double turn_measure(struct player *p)
{
	uint64_t left = p->count, began = clock_ns();
	p->rc = tern_queue(alone, turn_one, &left, NULL);
	return (double)(clock_ns() - began) / (double)p->count;
}

static double poll_limit(struct player *p)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		int rc = tern_poll(alone);
		p->rc = rc < 0 ? rc : 0;
	}
	return (double)(clock_ns() - began) / (double)p->count;
}

const struct test test_turn = {
	.name = "turn",
	.purpose = "one turn of something in the queue, with the poll that gives it",
	.size_name = "ranks",
	.size_least = 1,
	.size_most = 1,
	.sizes = { 1, { 1 } },
	.unit = "ns",
	.ranks = 1,
	.cores = 1,
	.count = 20000,
	.rounds = 51,
	.warm = 2,
	.open = turn_open,
	.measure = turn_measure,
	.limit = { poll_limit },
	.limit_name = "a poll that finds nothing",
};

/* -- A transfer behind a computation ----------------------------------------------------------- */

static struct place place;

static int overlap_open(struct player *p)
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

static double overlap_measure(struct player *p)
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
	return (double)(clock_ns() - began) / (double)p->count / 1000;
}

static double overlap_limit(struct player *p)
{
	uint64_t began = clock_ns();
	if (p->rank)
		return 0;
	for (uint64_t i = 0; i < p->count; i++)
		compute(p->size);
	return (double)(clock_ns() - began) / (double)p->count / 1000;
}

const struct test test_overlap = {
	.name = "overlap",
	.purpose = "a computation with a read of remote memory handed over, and a communication thread",
	.size_name = "bytes",
	.size_least = 1 << 10,
	.size_most = 64 << 20,
	.sizes = { 2, { 1 << 20, 8 << 20 } },
	.unit = "us",
	.ranks = 2,
	.cores = 2,
	.count = 8,
	.bytes = 16 << 20,
	.rounds = 21,
	.warm = 2,
	.open = overlap_open,
	.measure = overlap_measure,
	.limit = { overlap_limit },
	.limit_name = "the computation alone",
	.set = { { "TERN_DELIVERY", "thread" } },
};

const struct test test_no_overlap = {
	.name = "no-overlap",
	.purpose = "the same where nobody polls while the program computes",
	.size_name = "bytes",
	.size_least = 1 << 10,
	.size_most = 64 << 20,
	.sizes = { 2, { 1 << 20, 8 << 20 } },
	.unit = "us",
	.ranks = 2,
	.cores = 2,
	.count = 8,
	.bytes = 16 << 20,
	.rounds = 21,
	.warm = 2,
	.open = overlap_open,
	.measure = overlap_measure,
	.limit = { overlap_limit },
	.limit_name = "the computation alone",
	.set = { { "TERN_DELIVERY", "poll" } },
};
