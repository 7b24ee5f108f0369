/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathered messages: items of 16 bytes to ranks at random, beside gathering by hand; and random
 * updates of a table that all ranks share, beside buckets that all ranks exchange. Rates are those
 * of all ranks together, until everything was handled.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tern/coll.h>
#include <tern/post.h>

#include "base/clock.h"
#include "base/error.h"
#include "lab/bench/rings.h"
#include "lab/perf/perf.h"

enum { HANDLER_TAKE, HANDLER_UPDATE };
enum {
	AHEAD = 1024,          /* updates that a rank may have made and not sent */
	TABLE_WORDS = 1 << 20, /* of a rank */
};

static uint64_t taken, sum;
static uint64_t *table;
static tern_team *team;

static inline uint64_t random_next(uint64_t x)
{
	return x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

/* Not by division, which takes longer than a post. */
static inline uint32_t random_below(uint64_t x, uint32_t n)
{
	return (uint32_t)((x >> 32) * n >> 32);
}

static uint64_t random_seed(const struct bench_rank *p)
{
	return random_next(p->rank * UINT64_C(2654435761) + 1);
}

/* From one barrier to the next, in millions a second of all ranks. */
static double gathered_rate(struct bench_rank *p)
{
	p->rc = tern_barrier(p->t);
	uint64_t began = clock_ns();
	if (!p->rc)
		p->rc = p->act(p);
	return each_microsecond(p, clock_ns() - began) * p->ranks;
}

/* -- Items ------------------------------------------------------------------------------------- */

static void take(tern *t, const tern_msg *m)
{
	(void)t;
	sum += tern_msg_word(m, 0) ^ tern_msg_word(m, 1);
	taken++;
}

static __attribute__((noinline)) void hand_take(const uint64_t *word)
{
	sum += word[0] ^ word[1];
	taken++;
}

static int items_open(struct bench_rank *p)
{
	tern_on(p->t, HANDLER_TAKE, take);
	return gather_hand_open(p, hand_take);
}

/* Another rank than this one. */
static inline uint32_t random_other(const struct bench_rank *p, uint64_t x)
{
	uint32_t to = p->rank + 1 + random_below(x, p->ranks - 1);
	return to < p->ranks ? to : to - p->ranks;
}

static int items_post(struct bench_rank *p)
{
	uint64_t x = random_seed(p);
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		x = random_next(x);
		p->rc = tern_post(p->t, random_other(p, x), HANDLER_TAKE, i, 5);
	}
	return p->rc ? p->rc : tern_barrier(p->t);
}

static int items_by_hand(struct bench_rank *p)
{
	uint64_t x = random_seed(p);
	for (uint64_t i = 0; i < p->count; i++) {
		x = random_next(x);
		gather_hand_post(random_other(p, x), i, 5);
	}
	gather_hand_barrier();
	return 0;
}

static const struct test test_gathered = {
	{ "gathered", "posted items of 2 words to ranks at random, all together", "M/s" },
	{ "ranks", 2, GATHER_RANKS, { 4, { 2, 4, 8, 16 } }, { 0 } },
	.amount = { .ranks = RANKS_BY_SIZE, .cores = 2, .count = 200000, .rounds = 31 },
	.play = { .open = items_open,
		  .measure = { .figure = gathered_rate, .act = items_post },
		  .limit = { { .figure = gathered_rate, .act = items_by_hand } } },
	.limit_name = "the same items gathered by hand into 8 lines for each rank, between the "
		      "same ranks",
	.bar = { { 16, "at least 0.80" } },
};

/* -- Updates of a table ------------------------------------------------------------------------ */

/* What one rank has for the others: words, by rank. */
static struct {
	uint64_t word[GATHER_RANKS][AHEAD];
	uint64_t fill[GATHER_RANKS];
	tern_part part[GATHER_RANKS];
} going;

/* What it has got from them. */
static struct {
	uint64_t *word; /* AHEAD for each rank */
	uint64_t fill[GATHER_RANKS];
	tern_part part[GATHER_RANKS];
} coming;

static inline void update(uint64_t x)
{
	table[x & (TABLE_WORDS - 1)] ^= x;
}

static void on_updates(tern *t, const tern_msg *m, const uint64_t *words, size_t count)
{
	(void)t, (void)m;
	for (size_t i = 0; i < count; i++)
		update(words[i]);
}

static int updates_open(struct bench_rank *p)
{
	tern_post_on(p->t, HANDLER_UPDATE, on_updates, NULL);
	tern_post_limit(p->t, AHEAD);
	table = calloc(TABLE_WORDS, sizeof *table);
	coming.word = calloc((size_t)AHEAD * p->ranks, sizeof *coming.word);
	if (!table || !coming.word)
		return error_set(-ENOMEM, "no memory for a table of %d words", TABLE_WORDS);
	return tern_team_all(p->t, &team);
}

static int updates_post(struct bench_rank *p)
{
	uint64_t x = random_seed(p);
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		x = random_next(x);
		p->rc = tern_post(p->t, random_below(x, p->ranks), HANDLER_UPDATE, x);
	}
	return p->rc ? p->rc : tern_barrier(p->t);
}

/* Sorts the next updates of this rank by the rank that has their word. */
static uint64_t buckets_fill(const struct bench_rank *p, uint64_t x, uint64_t n)
{
	memset(going.fill, 0, sizeof going.fill);
	for (uint64_t i = 0; i < n; i++) {
		x = random_next(x);
		uint32_t to = random_below(x, p->ranks);
		going.word[to][going.fill[to]++] = x;
	}
	for (uint32_t r = 0; r < p->ranks; r++)
		going.part[r] = (tern_part){ .base = going.word[r],
					     .run = going.fill[r] * sizeof going.word[0][0] };
	return x;
}

static int buckets_exchange(const struct bench_rank *p)
{
	int rc = tern_team_alltoall(team, going.fill, coming.fill, sizeof going.fill[0]);
	uint64_t *at = coming.word;
	for (uint32_t r = 0; r < p->ranks; r++) {
		coming.part[r] =
			(tern_part){ .base = at, .run = coming.fill[r] * sizeof coming.word[0] };
		at += coming.fill[r];
	}
	if (!rc)
		rc = tern_team_alltoallv(team, going.part, coming.part);
	for (const uint64_t *w = coming.word; w < at && !rc; w++)
		update(*w);
	return rc;
}

static int updates_by_hand(struct bench_rank *p)
{
	uint64_t x = random_seed(p);
	for (uint64_t left = p->count; left && !p->rc;) {
		uint64_t n = left < AHEAD ? left : AHEAD;
		x = buckets_fill(p, x, n);
		p->rc = buckets_exchange(p);
		left -= n;
	}
	return p->rc ? p->rc : tern_barrier(p->t);
}

static const struct test test_updates = {
	{ "updates", "posted updates of random words of all ranks, 1,024 ahead, all together",
	  "M/s" },
	.like = &test_gathered,
	.play = { .open = updates_open,
		  .measure = { .figure = gathered_rate, .act = updates_post },
		  .limit = { { .figure = gathered_rate, .act = updates_by_hand } } },
	.limit_name = "the same updates in buckets, 1,024 of each rank at a time, exchanged with "
		      "tern_team_alltoallv()",
	.bar = { { 16, "at least 2.00" } },
};

test_rows gathered_tests = { &test_gathered, &test_updates, NULL };
