/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages beside bulk data: how long a round trip takes while a large put to the
 * same rank is under way, and what the size of the pieces has to do with it.
 */
#include "base/clock.h"
#include "tools/bench/place.h"
#include "tools/bench/times.h"
#include "tools/bench/words.h"
#include "tools/perf/perf.h"

enum { QUIET_TRIPS = 2000 };

static struct place place;
static struct private_place private;

static struct times times;

/* -- While a put is under way --------------------------------------------------------- */

static int during_open(struct player *p)
{
	int rc = place_open(p, &place, p->size);
	return rc ? rc : words_register(p->t);
}

static int during_private_open(struct player *p)
{
	int rc = private_open(p, &private, p->size);
	return rc ? rc : words_register(p->t);
}

static void during_trips(struct player *p, tern_addr to, const void *from)
{
	tern_op op = TERN_OP;
	times.n = 0;
	p->rc = tern_put_start(p->t, to, from, p->size, &op);
	while (!p->rc && op.pending && times.n < p->count && times.n < TIMES_MOST)
		times_trip(&times, p);
	if (!p->rc)
		p->rc = tern_op_wait(p->t, &op);
}

static double during_put(struct player *p, tern_addr to, const void *from)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	during_trips(p, to, from);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return times_median(&times);
}

static double during_measure(struct player *p)
{
	return during_put(p, place.addr, place.own);
}

static double during_private_measure(struct player *p)
{
	return during_put(p, private.addr, private.own);
}

static double quiet_trips(struct player *p)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	times.n = 0;
	while (!p->rc && times.n < p->count && times.n < QUIET_TRIPS)
		times_trip(&times, p);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return times_median(&times);
}

const struct test test_during = {
	.name = "during",
	.purpose = "a round trip of one word while a put to that rank's heap is under way",
	.size_name = "bytes",
	.size_least = 1 << 20,
	.size_most = 256 << 20,
	.sizes = { 1, { 256 << 20 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 2,
	.count = TIMES_MOST,
	.rounds = 21,
	.warm = 1,
	.open = during_open,
	.measure = during_measure,
	.limit = { quiet_trips },
	.limit_name = "the same round trip while nothing else is under way, median of many in each round",
	.bar = { { 256 << 20, "at most 3.00" } },
	.note = "the put is split-phase, and nothing but the round trips carries it on",
};

const struct test test_during_private = {
	.name = "during-private",
	.purpose = "a round trip of one word while a put to that rank's private memory is under way",
	.size_name = "bytes",
	.size_least = 1 << 20,
	.size_most = 256 << 20,
	.sizes = { 1, { 256 << 20 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 2,
	.count = TIMES_MOST,
	.rounds = 11,
	.warm = 1,
	.open = during_private_open,
	.measure = during_private_measure,
	.limit = { quiet_trips },
	.limit_name = "the same round trip while nothing else is under way, median of many in each round",
	.bar = { { 256 << 20, "at most 3.00" } },
	.note = "the put is split-phase, and nothing but the round trips carries it on",
};

/* -- The size of a piece ---------------------------------------------------------------- */

/* A piece and then a round trip, again and again: ns for all. */
static uint64_t chunks_put(struct player *p)
{
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		p->rc = tern_put(p->t, place.addr, place.own, p->size);
		if (!p->rc)
			p->rc = words_trips(p->t, 1, 1);
	}
	uint64_t ended = clock_ns();
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return ended - began;
}

static double chunk_measure(struct player *p)
{
	if (!p->rank)
		return place_rate(p, chunks_put(p));
	p->rc = words_serve(p->t, 1);
	return 0;
}

static double chunk_limit(struct player *p)
{
	if (p->rank)
		return 0;
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count; i++)
		place_copy(place.there, place.own, p->size);
	return place_rate(p, clock_ns() - began);
}

static double chunk_trip_measure(struct player *p)
{
	if (!p->rank)
		return (double)chunks_put(p) / (double)p->count;
	p->rc = words_serve(p->t, 1);
	return 0;
}

const struct test test_chunk = {
	.name = "chunk",
	.purpose = "a large put in pieces, with a round trip of one word after each",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = 1 << 20,
	.sizes = { 6, { 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10 } },
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 2000,
	.bytes = 8 << 20,
	.rounds = 31,
	.warm = 2,
	.open = during_open,
	.measure = chunk_measure,
	.limit = { chunk_limit },
	.limit_name = "memcpy of the pieces, with nothing in between",
	.note = "the target does not read the data",
};

const struct test test_chunk_trip = {
	.name = "chunk-trip",
	.purpose = "a round trip of one word that has to wait for a piece of a put",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = 1 << 20,
	.sizes = { 6, { 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 2,
	.count = 2000,
	.bytes = 8 << 20,
	.rounds = 31,
	.warm = 2,
	.open = during_open,
	.measure = chunk_trip_measure,
	.limit = { quiet_trips },
	.limit_name = "the same round trip without the piece",
};
