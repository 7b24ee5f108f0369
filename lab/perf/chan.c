/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: how long a value takes, and how many a second reach all others. */
#include <tern/chan.h>

#include "lab/perf/perf.h"

enum { THERE = 1, BACK, ALL };

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

static tern_chan *all; /* from rank 0 to everybody else */

static int all_open(struct bench_rank *p)
{
	uint32_t others[PERF_RANKS_MOST];
	for (uint32_t r = 1; r < p->ranks; r++)
		others[r - 1] = r;
	return p->rank ? tern_chan_from(p->t, 0, ALL, &all)
		       : tern_chan_to_list(p->t, others, p->ranks - 1, ALL, &all);
}

static int multicasts_send(struct bench_rank *p)
{
	tern_out out = tern_chan_out(all);
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_chan_put(&out, &i, sizeof i);
	tern_chan_out_back(&out);
	return p->rc;
}

static int multicasts(struct bench_rank *p)
{
	uint64_t value = 0;
	if (!p->rank)
		return multicasts_send(p);
	tern_in in = tern_chan_in(all);
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_chan_get(&in, &value, sizeof value);
	tern_chan_in_back(&in);
	raw_sink += value;
	return p->rc;
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test chan_tests[] = {
	{ "chan-trip", "a value there in one channel and back in another", "ns", "bytes", 8, 8,
	  .sizes = { 1, { 8 } }, .quick = { 1, { 8 } }, .like = "raw-trip", .count = 4000,
	  .open = chan_pair_open, .measure = { chan_trips, PHASE_ALL },
	  .bar = { { 8, "at most 1.10" } } },
	{ "multicast", "values to all other ranks, until the slowest has them", "M/s", "ranks", 2,
	  PERF_RANKS_MOST, .sizes = { 1, { 9 } }, .ranks = RANKS_BY_SIZE, .cores = 9, .count = 2000,
	  .rounds = 31, .open = all_open, .measure = { multicasts, PHASE_SLOWEST } },
	{ .like = NULL },
};
