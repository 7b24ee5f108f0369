/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test of `tern perf` inherits: rows say only what is special about them. */
#include "lab/bench/test.h"

#include <string.h>

/* Two ranks on two cores, 51 rounds of 10000 after two that warm up. */
static const struct test usual = { .ranks = 2, .count = 10000, .rounds = 51, .warm = 2 };

/* Fields that are inherited together, if all of them are 0. */
#define FROM_TO(first, last)                                                         \
	{                                                                            \
		offsetof(struct test, first),                                        \
			offsetof(struct test, last) + sizeof((struct test *)0)->last \
	}
static const struct {
	size_t from, to;
} inherited[] = {
	FROM_TO(unit, unit),   FROM_TO(size_name, sizes), FROM_TO(ranks, ranks),
	FROM_TO(cores, cores), FROM_TO(count, count),     FROM_TO(bytes, bytes),
	FROM_TO(warm, warm),   FROM_TO(rounds, rounds),   FROM_TO(limit_name, limit_name),
	FROM_TO(limit, limit), FROM_TO(open, open),       FROM_TO(bar, bar),
	FROM_TO(note, note),   FROM_TO(set, set),         FROM_TO(usable, usable),
};

static bool all_zero(const char *at, const char *end)
{
	while (at < end && !*at)
		at++;
	return at == end;
}

struct test test_complete(const struct test *row, const struct test *like)
{
	struct test own = *row;
	char *to = (char *)&own;
	const char *from = (const char *)(like ? like : &usual);
	for (size_t i = 0; i < sizeof inherited / sizeof *inherited; i++)
		if (all_zero(to + inherited[i].from, to + inherited[i].to))
			memcpy(to + inherited[i].from, from + inherited[i].from,
			       inherited[i].to - inherited[i].from);
	if (!phase_plays(&own.measure) && like) {
		own.measure = like->measure;
		own.measure.way = row->measure.way;
	}
	own.ranks = own.ranks == RANKS_BY_SIZE ? 0 : own.ranks;
	if (!like && !own.cores)
		own.cores = own.ranks;
	return own;
}
