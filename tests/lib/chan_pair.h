/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel between two ranks of one thread, and its two ends. */
#ifndef TERN_TESTS_CHAN_PAIR_H
#define TERN_TESTS_CHAN_PAIR_H

#include <errno.h>
#include <tern/chan.h>

#include "chan/chan.h"
#include "local.h"

static tern_chan *pair_to, *pair_from;
static tern_out out;
static tern_in in;

/* Rank 0 sends to rank 1. */
static inline void pair_open(uint64_t name)
{
	REQUIRE(tern_chan_to(local[0], 1, name, &pair_to) == 0);
	REQUIRE(tern_chan_from(local[1], 0, name, &pair_from) == 0);
	out = tern_chan_out(pair_to);
	in = tern_chan_in(pair_from);
}

static inline void pair_start(void)
{
	local_open(2);
	pair_open(7);
}

static inline void pair_end(void)
{
	CHECK_IS(tern_chan_close(pair_to), 0);
	CHECK_IS(tern_chan_close(pair_from), 0);
	local_close();
}

static inline bool chan_settled(tern *t)
{
	struct endpoint *e = t->own;
	struct chans *s = chans_of(t);
	for (unsigned i = 0; i < e->nets; i++)
		if (e->net[i]->ops->settled && !e->net[i]->ops->settled(e->net[i], false))
			return false;
	for (uint32_t r = 0; r < t->size; r++)
		if (e->site.peer[r].draining)
			return false;
	return !s->owes;
}

static inline void chan_holds(uint32_t held[LOCAL_MOST], bool take)
{
	for (uint32_t r = 0; r < local_size; r++)
		for (uint32_t i = 0; local[r] && i < held[r]; i++)
			take ? tern_hold(local[r]) : tern_release(local[r]);
}

/*
 * Over a network of packets: until what was put has come, and what was told of it. Also under
 * holds.
 */
static inline void chan_settle(void)
{
	static uint32_t holds[LOCAL_MOST];
	bool settled = local_size == 1 || layer_maps(local[0]->own, 1);
	for (uint32_t r = 0; r < local_size && !settled; r++)
		holds[r] = local[r] ? held(local[r]->own) : 0;
	if (settled)
		return;
	chan_holds(holds, false);
	while (!settled) {
		settled = !local_settle();
		for (uint32_t r = 0; r < local_size; r++)
			settled &= !local[r] || chan_settled(local[r]);
	}
	chan_holds(holds, true);
}

/* Without waiting: -EAGAIN when there is no room, or no data. */
static inline int try_put(tern_out *o, uint64_t value)
{
	int rc = tern_chan_room(o, sizeof value);
	return rc ? rc : tern_chan_put(o, &value, sizeof value);
}

static inline int try_get(tern_in *i, uint64_t *value)
{
	int rc = tern_chan_ready(i, sizeof *value);
	return rc ? rc : tern_chan_get(i, value, sizeof *value);
}

/* The next value, which must be there. */
static inline uint64_t pair_get(void)
{
	uint64_t value = 0;
	int rc = try_get(&in, &value);
	bool far = pair_from && pair_from->mirror;
	for (int i = 0; rc == -EAGAIN && far && i < 4; i++) { /* it nearly always comes at once */
		(void)!tern_poll(local[0]);
		(void)!tern_poll(local[1]);
		rc = try_get(&in, &value);
	}
	if (rc == -EAGAIN && far) {
		chan_settle();
		rc = try_get(&in, &value);
	}
	REQUIRE(rc == 0);
	return value;
}

#endif
