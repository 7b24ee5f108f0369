/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: how long a value takes. */
#include <tern/chan.h>

#include "lab/perf/perf.h"

enum { THERE = 1, BACK };

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

/* -- The rows --------------------------------------------------------------------------------- */

const struct test chan_tests[] = {
	{ "chan-trip", "a value there in one channel and back in another", "ns", "bytes", 8, 8,
	  .sizes = { 1, { 8 } }, .quick = { 1, { 8 } }, .like = "raw-trip", .count = 4000,
	  .open = chan_pair_open, .measure = { chan_trips, PHASE_ALL },
	  .bar = { { 8, "at most 1.10" } } },
	{ .like = NULL },
};
