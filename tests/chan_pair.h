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

/* The next value, which must be there. */
static inline uint64_t pair_get(void)
{
	uint64_t value = 0;
	REQUIRE(tern_chan_try_get8(&in, &value) == 0);
	return value;
}

#endif
