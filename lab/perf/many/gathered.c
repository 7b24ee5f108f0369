/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathered messages: items of 16 bytes to ranks at random, beside gathering by hand. Rates are
 * those of all ranks together, until everything was handled. apps/gups.c updates a table so.
 */
#include <tern/post.h>

#include "base/clock.h"
#include "lab/bench/rings.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { HANDLER_TAKE = WORDS_FREE };

static uint64_t taken, sum;

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

/* -- The rows --------------------------------------------------------------------------------- */

const struct test gathered_tests[] = {
	{ "gathered", "posted items of 2 words to ranks at random, all together", "M/s", "ranks", 2,
	  GATHER_RANKS, .sizes = { 4, { 2, 4, 8, 16 } }, .ranks = RANKS_BY_SIZE, .cores = 2,
	  .count = 200000, .rounds = 31, .open = items_open,
	  .measure = { .figure = gathered_rate, .act = items_post },
	  .limit = { { .figure = gathered_rate, .act = items_by_hand } },
	  .limit_name = "the same items gathered by hand into 8 lines for each rank, between the "
			"same ranks",
	  .bar = { { 16, "at least 0.80" } } },
	{ .like = NULL },
};
