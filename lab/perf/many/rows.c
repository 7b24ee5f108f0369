/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many ranks at once: all to all in turn and at random, one to all, all to one; gathered messages;
 * and a lone round trip beside a flood. Each beside rings by hand between the same processes.
 */
#include <math.h>
#include <sched.h>

#include <tern/post.h>

#include "base/clock.h"
#include "lab/bench/rings.h"
#include "lab/bench/series.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { BY_TERN, BY_HAND = 1, NINETY_NINE = 2 }; /* bits of the way */
enum { HAND_TAKE, HAND_ASK, HAND_BACK };        /* the first word of a message by hand */
enum { STOP_EVERY = 64 };                       /* sends, between two looks at whether to stop */

static uint64_t hand_answers;

/* -- Messages by hand, handled as those of words.h -------------------------------------------- */

static __attribute__((noinline)) void hand_take(const uint64_t *word)
{
	raw_sink += 1 + word[1] + word[2] + word[3];
}

/* Messages by hand have a handler that is called through a pointer, too. */
static void (*volatile hand_taker)(const uint64_t *) = hand_take;

static void hand_handle(uint32_t from, const uint64_t *word)
{
	if (word[0] == HAND_TAKE)
		hand_taker(word);
	else if (word[0] == HAND_ASK)
		rings_send(from, HAND_BACK, 0, 0, 0);
	else
		hand_answers++;
}

static int many_open(struct bench_rank *p)
{
	return rings_open(p, hand_handle);
}

/* -- Rates ------------------------------------------------------------------------------------ */

/* Of the ranks `first` to `last` without this one, the next after r. */
static inline uint32_t next_rank(const struct bench_rank *p, uint32_t r, uint32_t first,
				 uint32_t last)
{
	do
		r = r >= last ? first : r + 1;
	while (r == p->rank);
	return r;
}

static inline int send_one(struct bench_rank *p, uint32_t to, uint64_t i)
{
	if (!(p->way & BY_HAND))
		return tern_request(p->t, to, WORDS_TAKE + 4, i, 2, 3, i);
	rings_send(to, HAND_TAKE, i, 3, i);
	rings_sent();
	return 0;
}

static int send_around(struct bench_rank *p)
{
	uint32_t to = p->rank;
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = send_one(p, to = next_rank(p, to, 0, p->ranks - 1), i);
	return p->rc;
}

/* Another rank than this one, at random; not by division, which takes longer than a send. */
static inline uint32_t random_rank(const struct bench_rank *p, uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	uint32_t to = p->rank + 1 + (uint32_t)((uint64_t)*x * (p->ranks - 1) >> 32);
	return to < p->ranks ? to : to - p->ranks;
}

static uint32_t random_seed(const struct bench_rank *p)
{
	return p->rank * 2654435761u + 1;
}

static int send_random(struct bench_rank *p)
{
	uint32_t x = random_seed(p);
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = send_one(p, random_rank(p, &x), i);
	return p->rc;
}

static int send_in(struct bench_rank *p)
{
	for (uint64_t i = 0; p->rank && i < p->count && !p->rc; i++)
		p->rc = send_one(p, 0, i);
	return p->rc;
}

static int send_out(struct bench_rank *p)
{
	return p->rank ? 0 : send_around(p);
}

static int many_barrier(struct bench_rank *p)
{
	if (p->way == BY_TERN)
		return tern_barrier(p->t);
	rings_barrier();
	return 0;
}

/* From one barrier to the next: until everything has been handled. */
static uint64_t many_ns(struct bench_rank *p, phase_act *act)
{
	p->rc = many_barrier(p);
	uint64_t began = clock_ns();
	if (!p->rc)
		p->rc = act(p);
	if (!p->rc)
		p->rc = many_barrier(p);
	return clock_ns() - began;
}

/* Of all that send together. */
static double rate_figure(struct bench_rank *p)
{
	uint32_t senders = p->act == send_in ? p->ranks - 1 : p->act == send_out ? 1 : p->ranks;
	return each_microsecond(p, many_ns(p, p->act)) * senders;
}

/* -- Items of 16 bytes, gathered ------------------------------------------------------------- */

static __attribute__((noinline)) void hand_item_take(const uint64_t *word)
{
	raw_sink += 1 + word[0] + word[1];
}

static int items_open(struct bench_rank *p)
{
	return gather_hand_open(p, hand_item_take);
}

static int items_post(struct bench_rank *p)
{
	uint32_t x = random_seed(p);
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_post(p->t, random_rank(p, &x), WORDS_TAKE + 2, i, 5);
	return p->rc;
}

static int items_by_hand(struct bench_rank *p)
{
	uint32_t x = random_seed(p);
	for (uint64_t i = 0; i < p->count; i++)
		gather_hand_post(random_rank(p, &x), i, 5);
	gather_hand_barrier();
	return 0;
}

/* -- A lone round trip beside a flood --------------------------------------------------------- */

static uint64_t before; /* the word of the rings, when the phase began */

static bool over(void)
{
	return atomic_load_explicit(rings_word(), memory_order_acquire) != before;
}

/* Handles what comes. */
static int many_serve(struct bench_rank *p)
{
	while (!p->rc && !over()) {
		int n = p->way & BY_HAND ? (int)rings_look() : tern_poll(p->t);
		p->rc = n < 0 ? n : 0;
		if (!n && p->raw.crowded)
			sched_yield();
	}
	return p->rc;
}

/* Sends and does nothing else, to the others from `first` to `last` in turn. */
static int many_flood(struct bench_rank *p, uint32_t first, uint32_t last)
{
	uint32_t to = p->rank;
	while (!p->rc && !over())
		for (uint64_t i = 0; i < STOP_EVERY && !p->rc; i++)
			p->rc = send_one(p, to = next_rank(p, to, first, last), i);
	return p->rc;
}

static int hand_trip(struct bench_rank *p)
{
	uint64_t answered = hand_answers;
	rings_send(1, HAND_ASK, 0, 0, 0);
	while (hand_answers == answered)
		if (!rings_look() && p->raw.crowded)
			sched_yield();
	return 0;
}

static int lone_trip(struct bench_rank *p)
{
	if (p->way & BY_HAND)
		return hand_trip(p);
	return words_trips(p->t, 4, 1);
}

static double lone_times(struct bench_rank *p)
{
	static struct times times; /* large */
	times.n = 0;
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		uint64_t began = clock_ns();
		p->rc = lone_trip(p);
		times_add(&times, clock_ns() - began);
	}
	atomic_fetch_add(rings_word(), 1);
	return times_quantile(&times, p->way & NINETY_NINE ? 0.99 : 0.5);
}

/* The act is what all but rank 0 do meanwhile. */
static double lone_figure(struct bench_rank *p)
{
	double figure = 1;
	before = atomic_load(rings_word());
	p->rc = tern_barrier(p->t);
	if (!p->rc && p->rank == 0)
		figure = lone_times(p);
	else if (!p->rc)
		p->rc = p->act(p);
	if (!p->rc && p->way & BY_HAND)
		rings_barrier();
	if (!p->rc)
		p->rc = tern_barrier(p->t);
	return figure;
}

/* Rank 1 floods the ranks from 2 on. */
static int flooding(struct bench_rank *p)
{
	return p->rank == 1 ? many_flood(p, 2, p->ranks - 1) : many_serve(p);
}

/* They flood rank 1. */
static int flooded(struct bench_rank *p)
{
	return p->rank == 1 ? many_serve(p) : many_flood(p, 1, 1);
}

/* All but rank 0 flood all but rank 0. */
static int flood_among(struct bench_rank *p)
{
	return many_flood(p, 1, p->ranks - 1);
}

/* -- The rows --------------------------------------------------------------------------------- */

#define RINGS_NAME "rings by hand between the same ranks, which look after each 128 sends"

/* The same by Tern and by hand. */
#define BOTH(figure_, act_, ways)                                                   \
	.open = many_open,                                                          \
	.measure = { .figure = (figure_), .act = (act_), .way = BY_TERN | (ways) }, \
	.limit = { { .figure = (figure_), .act = (act_), .way = BY_HAND | (ways) } }

const struct test many_tests[] = {
	{ "all-to-all", "4-word requests from every rank to every other in turn, all together",
	  "M/s", "ranks", 2, PERF_RANKS_MOST, .sizes = { 4, { 2, 4, 8, 16 } },
	  .ranks = RANKS_BY_SIZE, .cores = 2, .count = 10000, .rounds = 51,
	  BOTH(rate_figure, send_around, 0), .limit_name = RINGS_NAME,
	  .bar = { { 4, "at least 1.40" }, { 8, "at least 1.40" }, { 16, "at least 1.40" } } },
	{ "random", "4-word requests from every rank to ranks at random, all together", "M/s",
	  .like = "all-to-all", BOTH(rate_figure, send_random, 0) },
	{ "fan-in", "4-word requests from all other ranks to one, all together", "M/s",
	  .like = "all-to-all", BOTH(rate_figure, send_in, 0),
	  .bar = { { 4, "" }, { 8, "" }, { 16, "" } } },
	{ "fan-out", "4-word requests from one rank to the others in turn", "M/s", .like = "fan-in",
	  BOTH(rate_figure, send_out, 0) },
	{ "flooding-trip", "a lone round trip to a rank that sends to others without a pause", "ns",
	  "ranks", 3, PERF_RANKS_MOST, .sizes = { 3, { 4, 8, 16 } }, .ranks = RANKS_BY_SIZE,
	  .cores = 2, .count = 2000, .rounds = 11, BOTH(lone_figure, flooding, 0),
	  .limit_name = RINGS_NAME },
	{ "flooding-trip-99", "the same, 99th percentile", "ns", .like = "flooding-trip",
	  BOTH(lone_figure, flooding, NINETY_NINE) },
	{ "flooded-trip", "a lone round trip to a rank that all others send to without a pause",
	  "ns", .like = "flooding-trip", BOTH(lone_figure, flooded, 0) },
	{ "flooded-trip-99", "the same, 99th percentile", "ns", .like = "flooding-trip",
	  BOTH(lone_figure, flooded, NINETY_NINE) },
	{ "among-trip",
	  "a lone round trip to one of the ranks that all send to each other without a pause", "ns",
	  .like = "flooding-trip", BOTH(lone_figure, flood_among, 0) },
	{ "among-trip-99", "the same, 99th percentile", "ns", .like = "flooding-trip",
	  BOTH(lone_figure, flood_among, NINETY_NINE) },
	{ "gathered", "posted items of 2 words to ranks at random, all together", "M/s", "ranks", 2,
	  GATHER_RANKS, .sizes = { 4, { 2, 4, 8, 16 } }, .ranks = RANKS_BY_SIZE, .cores = 2,
	  .count = 200000, .rounds = 31, .open = items_open,
	  .measure = { .figure = rate_figure, .act = items_post, .way = BY_TERN },
	  .limit = { { .figure = rate_figure, .act = items_by_hand, .way = BY_HAND } },
	  .limit_name = "the same items gathered by hand into 8 lines for each rank, between the "
			"same ranks",
	  .bar = { { 16, "at least 0.80" } } },
	{ .like = NULL },
};
