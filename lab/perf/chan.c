/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: how long a value takes, and how long until the last of many has it. */
#include <tern/chan.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "lab/perf/perf.h"

enum { THERE = 1, BACK, ALL, ONE };

static tern_chan *chan_there, *chan_back; /* between ranks 0 and 1, which have one end each */

static int chan_pair_open(struct bench_rank *p)
{
	int rc = p->rank ? tern_chan_from(p->t, 0, THERE, &chan_there)
			 : tern_chan_to(p->t, 1, THERE, &chan_there);
	if (rc)
		return rc;
	return p->rank ? tern_chan_to(p->t, 0, BACK, &chan_back)
		       : tern_chan_from(p->t, 1, BACK, &chan_back);
}

/* -- A value there and back ---------------------------------------------------------------- */

static int chan_trips(struct bench_rank *p)
{
	tern_out out = tern_chan_out(p->rank ? chan_back : chan_there);
	tern_in in = tern_chan_in(p->rank ? chan_there : chan_back);
	uint64_t value = 0;
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		if (p->rank)
			p->rc = tern_chan_get(&in, &value, sizeof value);
		if (!p->rc)
			p->rc = tern_chan_put(&out, &i, sizeof i);
		if (!p->rc && !p->rank)
			p->rc = tern_chan_get(&in, &value, sizeof value);
	}
	raw_sink += value;
	tern_chan_out_back(&out);
	tern_chan_in_back(&in);
	return p->rc;
}

/* -- One to many ------------------------------------------------------------------------------- */

static tern_chan *all, *one; /* from rank 0: to everybody else, and to rank 1 alone */

static int many_open(struct bench_rank *p)
{
	uint32_t others[PERF_RANKS_MOST];
	int rc = 0;
	for (uint32_t r = 1; r < p->ranks; r++)
		others[r - 1] = r;
	if (p->rank == 0) {
		rc = tern_chan_to_list(p->t, others, p->ranks - 1, ALL, &all);
		return rc ? rc : tern_chan_to(p->t, 1, ONE, &one);
	}
	rc = tern_chan_from(p->t, 0, ALL, &all);
	return rc || p->rank > 1 ? rc : tern_chan_from(p->t, 0, ONE, &one);
}

/*
 * Reads until the value `count`; after each says when it came. The clock is the same for all
 * processes.
 */
static void many_receive(struct bench_rank *p, tern_chan *c)
{
	struct raw_line *mine = &p->raw.arena->token[p->rank];
	tern_in in = tern_chan_in(c);
	for (uint64_t i = 0, value; i < p->count && !p->rc; i++) {
		p->rc = tern_chan_get(&in, &value, sizeof value);
		mine->word[0] = clock_ns();
		atomic_store_explicit(&mine->head, ++p->raw.laps, memory_order_release);
	}
	tern_chan_in_back(&in);
}

/* When the last of ranks 1 to `n` had the value. */
static uint64_t many_last(struct bench_rank *p, uint32_t n)
{
	uint64_t last = 0;
	for (uint32_t r = 1; r <= n; r++) {
		struct raw_line *l = &p->raw.arena->token[r];
		while (atomic_load_explicit(&l->head, memory_order_acquire) < p->raw.laps)
			cpu_relax();
		last = l->word[0] > last ? l->word[0] : last;
	}
	return last;
}

static double many_send(struct bench_rank *p, tern_chan *c, uint32_t n)
{
	uint64_t sum = 0;
	tern_out out = tern_chan_out(c);
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		uint64_t began = clock_ns();
		p->rc = tern_chan_put(&out, &i, sizeof i);
		p->raw.laps++;
		sum += many_last(p, n) - began;
	}
	tern_chan_out_back(&out);
	return (double)sum / (double)p->count;
}

static double many_measure(struct bench_rank *p)
{
	if (p->rank == 0)
		return many_send(p, all, p->ranks - 1);
	many_receive(p, all);
	return 0;
}

static double one_limit(struct bench_rank *p)
{
	if (p->rank == 0)
		return many_send(p, one, 1);
	if (p->rank == 1)
		many_receive(p, one);
	else
		p->raw.laps += p->count;
	return 0;
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test chan_tests[] = {
	{ "chan-trip", "a value there in one channel and back in another", "ns", "bytes", 8, 8,
	  .sizes = { 1, { 8 } }, .quick = { 1, { 8 } }, .like = "raw-trip", .count = 4000,
	  .open = chan_pair_open, .measure = { .time = PHASE_ALL, .act = chan_trips },
	  .bar = { { 8, "at most 1.10" } } },
	{ "multicast", "a value to all other ranks, until the last of them has it", "ns", "ranks",
	  2, PERF_RANKS_MOST, .sizes = { 1, { 9 } }, .ranks = RANKS_BY_SIZE, .cores = 9,
	  .count = 2000, .rounds = 31, .open = many_open, .measure.figure = many_measure,
	  .limit[0].figure = one_limit,
	  .limit_name = "a value to one rank, until that has it; both with two looks at the clock",
	  .bar = { { 9, "at most 3.00" } } },
	{ .like = NULL },
};
