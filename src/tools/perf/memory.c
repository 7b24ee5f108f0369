/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put and get between the heaps of two ranks. The limit is memcpy by the same process
 * between the same bytes, so a ratio of 1 says that the library costs nothing.
 */
#include "base/clock.h"
#include "tools/bench/place.h"
#include "tools/bench/words.h"
#include "tools/perf/perf.h"

enum {
	HANDLER_TAKE = WORDS_FREE,
	HANDLER_TAKEN,
	MOST = 64 << 20,
};

static struct place place;

static int heap_open(struct player *p)
{
	int rc = place_open(p, &place, p->size);
	return rc ? rc : words_register(p->t);
}

/* -- By the initiator alone ------------------------------------------------------- */

typedef int heap_move(struct player *p, size_t len);

static int move_put(struct player *p, size_t len)
{
	return tern_put(p->t, place.addr, place.own, len);
}

static int move_get(struct player *p, size_t len)
{
	return tern_get(p->t, place.own, place.addr, len);
}

static int copy_put(struct player *p, size_t len)
{
	(void)p;
	place_copy(place.there, place.own, len);
	return 0;
}

static int copy_get(struct player *p, size_t len)
{
	(void)p;
	place_copy(place.own, place.there, len);
	return 0;
}

static inline __attribute__((always_inline)) double heap_rate(struct player *p, heap_move *move)
{
	if (p->rank)
		return 0;
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = move(p, p->size);
	return place_rate(p, clock_ns() - began);
}

static double put_measure(struct player *p)
{
	return heap_rate(p, move_put);
}

static double put_limit(struct player *p)
{
	return heap_rate(p, copy_put);
}

static double get_measure(struct player *p)
{
	return heap_rate(p, move_get);
}

static double get_limit(struct player *p)
{
	return heap_rate(p, copy_get);
}

#define HEAP_BARS                                                                                            \
	{                                                                                                    \
		{ 4 << 10, "at least 0.80" }, { 64 << 10, "at least 0.95" }, { 256 << 10, "at least 0.95" }, \
			{ 1 << 20, "at least 0.95" }, { 4 << 20, "at least 0.95" },                          \
			{ 16 << 20, "at least 0.95" }, { 64 << 20, "at least 0.95" },                        \
	}
#define HEAP_SIZES                                                                                     \
	{                                                                                              \
		12,                                                                                    \
		{                                                                                      \
			8, 64, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, \
				16 << 20, 64 << 20                                                     \
		}                                                                                      \
	}

const struct test test_put = {
	.name = "put",
	.purpose = "blocking puts from this rank's heap to another's, which nobody reads",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = MOST,
	.sizes = HEAP_SIZES,
	.quick = { 2, { 4 << 10, 1 << 20 } },
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 16 << 20,
	.rounds = 51,
	.warm = 2,
	.open = heap_open,
	.measure = put_measure,
	.limit = { put_limit },
	.limit_name = "memcpy by the same process between the same bytes of the two heaps",
	.bar = HEAP_BARS,
	.note = "the target does not read the data",
};

const struct test test_get = {
	.name = "get",
	.purpose = "blocking gets from another rank's heap to this one's, which nobody reads",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = MOST,
	.sizes = HEAP_SIZES,
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 16 << 20,
	.rounds = 51,
	.warm = 2,
	.open = heap_open,
	.measure = get_measure,
	.limit = { get_limit },
	.limit_name = "memcpy by the same process between the same bytes of the two heaps",
	.bar = HEAP_BARS,
	.note = "nobody writes the source or reads what was got",
};

/* -- With a target that reads ------------------------------------------------------- */

static _Atomic uint64_t taken;

/* Places that the puts use in turn, so that one is filled while another is read. */
static unsigned read_places(const struct player *p)
{
	enum { FEW = 2, MANY = TERN_POOL_BLOCKS, ALL = 1 << 20 };
	unsigned fit = ALL / p->size;
	return fit < FEW ? FEW : fit > MANY ? MANY : fit;
}

static void take(tern *t, const tern_msg *m)
{
	raw_sink += raw_sum(place.own + tern_msg_arg(m, 0), tern_msg_arg(m, 1));
	tern_reply(t, m, HANDLER_TAKEN);
}

static void take_answered(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &taken, 1);
}

static int read_open(struct player *p)
{
	int rc = place_open(p, &place, (size_t)p->size * read_places(p));
	if (!rc)
		rc = words_register(p->t);
	if (!rc)
		rc = tern_on(p->t, HANDLER_TAKE, take);
	return rc ? rc : tern_on(p->t, HANDLER_TAKEN, take_answered);
}

/* A place is filled again when its data has been read. */
static int read_put(struct player *p, uint64_t i, unsigned places)
{
	uint64_t at = i % places * p->size;
	int rc = i >= places ? tern_wait(p->t, &taken, 1) : 0;
	return rc ? rc
		  : tern_put_request(p->t, place.addr + at, place.own, p->size, HANDLER_TAKE, at, p->size);
}

static double read_measure(struct player *p)
{
	unsigned places = read_places(p);
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = read_put(p, i, places);
	if (!p->rc)
		p->rc = tern_wait(p->t, &taken, p->count < places ? p->count : places);
	uint64_t ended = clock_ns();
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return place_rate(p, ended - began);
}

static double read_raw(struct player *p, enum raw_manner manner)
{
	const struct raw_places to = { p->rank ? place.own : place.there, read_places(p), p->size };
	uint64_t began = clock_ns();
	raw_copies_to(&p->raw, p->rank, p->count, place.own, p->size, &to, manner);
	return place_rate(p, clock_ns() - began);
}

static double read_raw_pause(struct player *p)
{
	return read_raw(p, RAW_PAUSE);
}

static double read_raw_bare(struct player *p)
{
	return read_raw(p, RAW_BARE);
}

const struct test test_put_read = {
	.name = "put-read",
	.purpose = "puts that end in a request, whose handler reads the data",
	.size_name = "bytes",
	.size_least = 1,
	.size_most = MOST,
	.sizes = { 7, { 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20 } },
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 10000,
	.bytes = 16 << 20,
	.rounds = 51,
	.warm = 2,
	.open = read_open,
	.measure = read_measure,
	.limit = { read_raw_pause, read_raw_bare },
	.limit_name =
		"memcpy to as many places of the same heap, each read with the same loop when a flag says so",
	.bar = { { 4 << 10, "at least 0.80" },
		 { 64 << 10, "at least 0.95" },
		 { 1 << 20, "at least 0.95" },
		 { 16 << 20, "at least 0.95" },
		 { 64 << 20, "at least 0.95" } },
};

/* -- The curve ----------------------------------------------------------------------- */

enum { CURVE_POINTS = 32, CURVE_LEAST = 8 };

struct curve {
	unsigned n;
	double bytes[CURVE_POINTS], rate[CURVE_POINTS];
};

static uint64_t curve_count(const struct player *p, size_t len)
{
	uint64_t fit = (256 << 10) / len;
	return fit > p->count ? p->count : fit ? fit : 1;
}

/* Rates of 8 bytes, 16 and so on, up to the size. */
static void curve_draw(struct player *p, heap_move *move, struct curve *c)
{
	c->n = 0;
	for (size_t len = CURVE_LEAST; len <= p->size && c->n < CURVE_POINTS; len *= 2) {
		uint64_t count = curve_count(p, len), began = clock_ns();
		for (uint64_t i = 0; i < count && !p->rc; i++)
			p->rc = move(p, len);
		c->bytes[c->n] = (double)len;
		c->rate[c->n++] = (double)(count * len) / (double)(clock_ns() - began + 1);
	}
}

static double curve_peak(const struct curve *c)
{
	double peak = 0;
	for (unsigned i = 0; i < c->n; i++)
		if (c->rate[i] > peak)
			peak = c->rate[i];
	return peak;
}

/* The least size that reaches half of the peak, on a line between two points. */
static double curve_half(const struct curve *c)
{
	double half = curve_peak(c) / 2;
	unsigned i = 0;
	while (i < c->n && c->rate[i] < half)
		i++;
	if (i == 0 || i == c->n)
		return CURVE_LEAST;
	double part = (half - c->rate[i - 1]) / (c->rate[i] - c->rate[i - 1]);
	return c->bytes[i - 1] + part * (c->bytes[i] - c->bytes[i - 1]);
}

static double curve_figure(struct player *p, heap_move *move, double (*of)(const struct curve *c))
{
	struct curve c;
	if (p->rank)
		return 0;
	curve_draw(p, move, &c);
	return of(&c);
}

static double peak_measure(struct player *p)
{
	return curve_figure(p, move_put, curve_peak);
}

static double peak_limit(struct player *p)
{
	return curve_figure(p, copy_put, curve_peak);
}

static double half_measure(struct player *p)
{
	return curve_figure(p, move_put, curve_half);
}

static double half_limit(struct player *p)
{
	return curve_figure(p, copy_put, curve_half);
}

const struct test test_r_infinity = {
	.name = "r-infinity",
	.purpose = "the best rate of puts of 8 bytes, 16 and so on up to a size",
	.size_name = "bytes",
	.size_least = 1 << 10,
	.size_most = MOST,
	.sizes = { 1, { 1 << 20 } },
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 2000,
	.rounds = 51,
	.warm = 2,
	.open = heap_open,
	.measure = peak_measure,
	.limit = { peak_limit },
	.limit_name = "the best rate of memcpy, found in the same way",
	.bar = { { 1 << 20, "at least 0.95" } },
	.note = "the target does not read the data",
};

const struct test test_n_half = {
	.name = "n-half",
	.purpose = "the least size of a put that reaches half of r-infinity",
	.size_name = "bytes",
	.size_least = 1 << 10,
	.size_most = MOST,
	.sizes = { 1, { 1 << 20 } },
	.unit = "B",
	.ranks = 2,
	.cores = 2,
	.count = 2000,
	.rounds = 51,
	.warm = 2,
	.open = heap_open,
	.measure = half_measure,
	.limit = { half_limit },
	.limit_name = "the size at which memcpy reaches half of its best rate",
	.bar = { { 1 << 20, "at most 1024 B" } },
	.note = "the target does not read the data",
};
