/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers beside something else: round trips while a large put to the same rank is under way,
 * and what the size of its pieces has to do with it; memory copy beside plain loads and
 * stores; atomics beside the bare instruction.
 */
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "lab/bench/place.h"
#include "lab/bench/series.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { QUIET_TRIPS = 2000 };

static struct times times;

/* -- While a put is under way --------------------------------------------------------- */

enum { HEAP, PRIVATE }; /* ways */

static int during_trips(struct bench_rank *p)
{
	tern_op op = TERN_OP;
	bool heap = p->way == HEAP;
	times.n = 0;
	p->rc = tern_put_start(p->t, heap ? place.addr : private.addr,
			       heap ? place.own : private.own, p->size, &op);
	while (!p->rc && !tern_op_ready(&op) && times.n < p->count && times.n < TIMES_MOST)
		times_trip(&times, p);
	return p->rc ? p->rc : tern_op_wait(p->t, &op);
}

static int quiet_trips(struct bench_rank *p)
{
	times.n = 0;
	while (!p->rc && times.n < p->count && times.n < QUIET_TRIPS)
		times_trip(&times, p);
	return p->rc;
}

static double trip_median(struct bench_rank *p)
{
	words_acted_after(p, NULL, p->act);
	return times_median(&times);
}

/* -- The size of a piece ---------------------------------------------------------------- */

/* A piece and then a round trip, again and again. */
static int chunk_put(struct bench_rank *p)
{
	int rc = tern_put(p->t, place.addr, place.own, p->size);
	return rc ? rc : words_trips(p->t, 1, 1);
}

static REPEATS(chunks_put, chunk_put(p));
static REPEATS(chunks_copy, place_copied(place.there, place.own, p->size));

/* -- Memory copy ---------------------------------------------------------------------- */

enum { FAST = 1, DIRTY = 2 }; /* bits of the way: by Tern, and what the source is */

static int copy_fast(struct bench_rank *p)
{
	tern_op op = TERN_OP;
	int rc = tern_copy_start(p->t, place.addr, tern_addr_at(p->t, p->rank, place.own), p->size,
				 &op);
	return rc ? rc : tern_op_wait(p->t, &op);
}

/* One word after another, as a program would that knows nothing better. */
static int copy_plain(struct bench_rank *p)
{
	const uint64_t *from = (const uint64_t *)(const void *)place.own;
	uint64_t *to = (uint64_t *)(void *)place.there;
	for (size_t i = 0; i < p->size / sizeof *to; i++) {
		to[i] = from[i];
		__asm__ volatile("" : : : "memory");
	}
	return 0;
}

/* The clock stands while the source is made dirty. */
static double copy_rate(struct bench_rank *p)
{
	uint64_t ns = 0;
	if (p->rank)
		return 0;
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		if (p->way & DIRTY)
			memset(place.own, (int)i, p->size);
		else
			raw_sink += raw_sum(place.own, p->size);
		uint64_t began = clock_ns();
		p->rc = p->way & FAST ? copy_fast(p) : copy_plain(p);
		ns += clock_ns() - began;
	}
	return each_byte(p, ns);
}

/* -- Atomics -------------------------------------------------------------------------- */

/*
 * Rank 1's heap has the word that both add to, and, far from it, what they agree with.
 * Rank 0 makes `count` additions while rank 1 makes as many as it can, so that the line
 * is fought for all the time; the figure is the time of one, whoever made it.
 */
struct arena {
	_Alignas(256) _Atomic uint64_t word;
	_Alignas(256) _Atomic uint64_t begun, over; /* rounds; written by rank 1 and by rank 0 */
	_Alignas(256) _Atomic uint64_t made;        /* by rank 1 in this round, plus 1 */
};

static struct arena *arena; /* as it is mapped here */
static tern_addr word;
static uint64_t played;

static int atomic_open(struct bench_rank *p)
{
	int rc = place_make(p, sizeof(struct arena));
	if (rc)
		return rc;
	word = tern_addr_at(p->t, 1, place.own);
	arena = (struct arena *)(void *)(p->rank ? place.own : place.there);
	if (p->rank)
		memset(place.own, 0, sizeof *arena);
	return tern_barrier(p->t);
}

typedef int atomic_add(struct bench_rank *p);

static int add_fast(struct bench_rank *p)
{
	uint64_t old;
	return tern_amo(p->t, word, TERN_AMO_ADD, 1, &old);
}

static int add_bare(struct bench_rank *p)
{
	(void)p;
	uint64_t old = atomic_fetch_add(&arena->word, 1);
	__asm__ volatile("" : : "r"(old));
	return 0;
}

static inline __attribute__((always_inline)) double add_opponent(struct bench_rank *p,
								 atomic_add *add)
{
	uint64_t made = 0;
	atomic_store(&arena->begun, played);
	for (; atomic_load_explicit(&arena->over, memory_order_relaxed) < played && !p->rc; made++)
		p->rc = add(p);
	atomic_store(&arena->made, made + 1);
	return 0;
}

static void atomic_pause(const struct bench_rank *p)
{
	if (p->raw.crowded)
		sched_yield();
	else
		cpu_relax();
}

static inline __attribute__((always_inline)) double add_time(struct bench_rank *p, atomic_add *add)
{
	played++;
	if (p->rank)
		return add_opponent(p, add);
	while (atomic_load(&arena->begun) < played)
		atomic_pause(p);
	uint64_t began = clock_ns(), made;
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = add(p);
	uint64_t ended = clock_ns();
	atomic_store(&arena->over, played);
	while ((made = atomic_exchange(&arena->made, 0)) == 0)
		atomic_pause(p);
	return (double)(ended - began) / (double)(p->count + made - 1);
}

static double atomic_measure(struct bench_rank *p)
{
	return add_time(p, add_fast);
}

static double atomic_limit(struct bench_rank *p)
{
	return add_time(p, add_bare);
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test transfer_tests[] = {
	{ "atomic", "fetch-and-add on a word of a heap that two ranks fight for", "ns", "ranks", 2,
	  2, .sizes = { 1, { 2 } }, .count = 20000, .open = atomic_open,
	  .measure.figure = atomic_measure, .limit[0].figure = atomic_limit,
	  .limit_name = "the bare instruction on the same word, by the same two",
	  .bar = { { 2, "at most 1.20" } } },
	{ "during", "a round trip of one word while a put to that rank's heap is under way", "ns",
	  "bytes", 1 << 20, 256 << 20, .sizes = { 1, { 256 << 20 } }, .count = TIMES_MOST,
	  .rounds = 21, .warm = 1, .open = place_open,
	  .measure = { .figure = trip_median, .act = during_trips },
	  .limit = { { .figure = trip_median, .act = quiet_trips } },
	  .limit_name = "the same round trip while nothing else is under way, median in each round",
	  .bar = { { 256 << 20, "at most 3.00" } },
	  .note = "the put is split-phase, and nothing but the round trips carries it on" },
	{ "during-private",
	  "a round trip of one word while a put to that rank's private memory is under way", "ns",
	  .like = "during", .rounds = 11, .open = private_open, .measure.way = PRIVATE },
	{ "chunk-trip", "a round trip of one word that has to wait for a piece of a put", "ns",
	  "bytes", 1, 1 << 20,
	  .sizes = { 6, { 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10 } },
	  .count = 2000, .bytes = 8 << 20, .rounds = 31, .open = place_open,
	  .measure = { .time = PHASE_ACTED, .act = chunks_put },
	  .limit = { { .figure = trip_median, .act = quiet_trips } },
	  .limit_name = "the same round trip without the piece" },
	{ "chunk", "a large put in pieces, with a round trip of one word after each", "GB/s",
	  .like = "chunk-trip", .limit = { { .time = PHASE_FIRST, .act = chunks_copy } },
	  .limit_name = "memcpy of the pieces, with nothing in between",
	  .note = "the target does not read the data" },
	{ "copy-clean", "tern_copy_start() to another rank's heap of what this rank has only read",
	  "GB/s", "bytes", 8, 64 << 20,
	  .sizes = { 5, { 1 << 10, 4 << 10, 8 << 10, 64 << 10, 1 << 20 } }, .count = 2000,
	  .bytes = 8 << 20, .rounds = 31, .open = place_open,
	  .measure = { .figure = copy_rate, .way = FAST }, .limit[0].figure = copy_rate,
	  .limit_name = "plain loads and stores between the same bytes, a word at a time",
	  .note = "the target does not read the data; the same bytes as messages: `payload`" },
	{ "copy-dirty",
	  "tern_copy_start() to another rank's heap of what this rank has just written", "GB/s",
	  .like = "copy-clean", .measure.way = FAST | DIRTY,
	  .limit = { { .figure = copy_rate, .way = DIRTY } } },
	{ .like = NULL },
};
