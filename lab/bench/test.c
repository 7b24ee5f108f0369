/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test of `tern perf` inherits: rows say only what is special about them. */
#include "lab/bench/test.h"

#include <string.h>

static uint64_t inherit(uint64_t own, uint64_t otherwise)
{
	return own == TEST_NONE ? 0 : own ? own : otherwise;
}

/* Two ranks on two cores, 51 rounds of 10000 after two that warm up. */
static const struct test usual = { .ranks = 2, .count = 10000, .rounds = 51, .warm = 2 };

static void amounts_complete(struct test *own, const struct test *like)
{
	own->ranks = (uint32_t)inherit(own->ranks, like->ranks);
	own->cores = (uint32_t)inherit(own->cores, like == &usual ? own->ranks : like->cores);
	own->count = inherit(own->count, like->count);
	own->bytes = inherit(own->bytes, like->bytes);
	own->rounds = (unsigned)inherit(own->rounds, like->rounds);
	own->warm = (unsigned)inherit(own->warm, like->warm);
}

static void phases_complete(struct test *own, const struct test *like)
{
	int way = own->measure.way;
	if (!own->open)
		own->open = like->open;
	if (!phase_plays(&own->measure)) {
		own->measure = like->measure;
		own->measure.way = way;
	}
	own->both_orders |= like->both_orders;
	if (!phase_plays(&own->limit[0]))
		memcpy(own->limit, like->limit, sizeof own->limit);
}

static void sizes_complete(struct test *own, const struct test *like)
{
	if (own->size_name)
		return;
	own->size_name = like->size_name;
	own->size_least = like->size_least;
	own->size_most = like->size_most;
	own->sizes = like->sizes;
}

static void words_complete(struct test *own, const struct test *like)
{
	if (!own->unit)
		own->unit = like->unit;
	if (!own->limit_name)
		own->limit_name = like->limit_name;
	if (!own->note)
		own->note = like->note;
	if (!own->bar[0].text)
		memcpy(own->bar, like->bar, sizeof own->bar);
}

struct test test_complete(const struct test *row, const struct test *like)
{
	struct test own = *row;
	like = like ? like : &usual;
	amounts_complete(&own, like);
	phases_complete(&own, like);
	sizes_complete(&own, like);
	words_complete(&own, like);
	if (!own.set[0].name)
		memcpy(own.set, like->set, sizeof own.set);
	if (!own.usable)
		own.usable = like->usable;
	return own;
}
