/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory copy beside plain loads and stores; atomics beside the bare instruction. */
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "tools/bench/place.h"
#include "tools/bench/words.h"
#include "tools/perf/perf.h"

static struct place place;

/* -- Memory copy ---------------------------------------------------------------------- */

static int copy_open(struct player *p)
{
	int rc = place_open(p, &place, p->size);
	return rc ? rc : words_register(p->t);
}

typedef int copy_way(struct player *p);

static int copy_fast(struct player *p)
{
	tern_op op = TERN_OP;
	int rc = tern_fastmemcpy(p->t, place.addr, tern_addr_at(place.addr, p->rank), p->size, &op);
	return rc ? rc : tern_op_wait(p->t, &op);
}

/* One word after another, as a program would that knows nothing better. */
static int copy_plain(struct player *p)
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
static double copy_rate(struct player *p, copy_way *way, bool dirty)
{
	uint64_t ns = 0;
	if (p->rank)
		return 0;
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		if (dirty)
			memset(place.own, (int)i, p->size);
		else
			raw_sink += raw_sum(place.own, p->size);
		uint64_t began = clock_ns();
		p->rc = way(p);
		ns += clock_ns() - began;
	}
	return place_rate(p, ns);
}

static double clean_measure(struct player *p)
{
	return copy_rate(p, copy_fast, false);
}

static double clean_limit(struct player *p)
{
	return copy_rate(p, copy_plain, false);
}

static double dirty_measure(struct player *p)
{
	return copy_rate(p, copy_fast, true);
}

static double dirty_limit(struct player *p)
{
	return copy_rate(p, copy_plain, true);
}

#define COPY_SIZES                                                   \
	{                                                            \
		5,                                                   \
		{                                                    \
			1 << 10, 4 << 10, 8 << 10, 64 << 10, 1 << 20 \
		}                                                    \
	}
#define COPY_LIMIT "plain loads and stores between the same bytes, a word at a time"
#define COPY_NOTE                                                                                    \
	"the target does not read the data; the same bytes as a message are in `payload`, and read " \
	"by the target in `put-read`"

const struct test test_copy_clean = {
	.name = "copy-clean",
	.purpose = "tern_fastmemcpy() to another rank's heap of what this rank has only read",
	.size_name = "bytes",
	.size_least = 8,
	.size_most = 64 << 20,
	.sizes = COPY_SIZES,
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 2000,
	.bytes = 8 << 20,
	.rounds = 31,
	.warm = 2,
	.open = copy_open,
	.measure = clean_measure,
	.limit = { clean_limit },
	.limit_name = COPY_LIMIT,
	.note = COPY_NOTE,
};

const struct test test_copy_dirty = {
	.name = "copy-dirty",
	.purpose = "tern_fastmemcpy() to another rank's heap of what this rank has just written",
	.size_name = "bytes",
	.size_least = 8,
	.size_most = 64 << 20,
	.sizes = COPY_SIZES,
	.unit = "GB/s",
	.rate = true,
	.ranks = 2,
	.cores = 2,
	.count = 2000,
	.bytes = 8 << 20,
	.rounds = 31,
	.warm = 2,
	.open = copy_open,
	.measure = dirty_measure,
	.limit = { dirty_limit },
	.limit_name = COPY_LIMIT,
	.note = COPY_NOTE,
};

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

static int atomic_open(struct player *p)
{
	int rc = place_open(p, &place, sizeof(struct arena));
	if (rc)
		return rc;
	word = tern_addr_at(place.addr, 1);
	arena = (struct arena *)(void *)(p->rank ? place.own : place.there);
	if (p->rank)
		memset(place.own, 0, sizeof *arena);
	return tern_barrier(p->t);
}

typedef int atomic_add(struct player *p);

static int add_fast(struct player *p)
{
	uint64_t old;
	return tern_amo64(p->t, TERN_ADD, word, 1, &old);
}

static int add_bare(struct player *p)
{
	(void)p;
	uint64_t old = atomic_fetch_add(&arena->word, 1);
	__asm__ volatile("" : : "r"(old));
	return 0;
}

static inline __attribute__((always_inline)) double add_opponent(struct player *p, atomic_add *add)
{
	uint64_t made = 0;
	atomic_store(&arena->begun, played);
	for (; atomic_load_explicit(&arena->over, memory_order_relaxed) < played && !p->rc; made++)
		p->rc = add(p);
	atomic_store(&arena->made, made + 1);
	return 0;
}

static void atomic_pause(const struct player *p)
{
	if (p->raw.crowded)
		sched_yield();
	else
		cpu_relax();
}

static inline __attribute__((always_inline)) double add_time(struct player *p, atomic_add *add)
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

static double atomic_measure(struct player *p)
{
	return add_time(p, add_fast);
}

static double atomic_limit(struct player *p)
{
	return add_time(p, add_bare);
}

const struct test test_atomic = {
	.name = "atomic",
	.purpose = "fetch-and-add on a word of a heap that two ranks fight for",
	.size_name = "ranks",
	.size_least = 2,
	.size_most = 2,
	.sizes = { 1, { 2 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 2,
	.count = 20000,
	.rounds = 51,
	.warm = 2,
	.open = atomic_open,
	.measure = atomic_measure,
	.limit = { atomic_limit },
	.limit_name = "the bare instruction on the same word, by the same two",
	.bar = { { 2, "at most 1.20" } },
};
