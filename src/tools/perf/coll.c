/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: short ones beside a raw token and beside the barrier, long ones beside a memcpy()
 * that all ranks run at once. Buffers change from call to call, as they do in programs, and the
 * time is that of the slowest rank.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tern/coll.h>

#include "base/clock.h"
#include "base/error.h"
#include "tools/perf/perf.h"

enum { BUFFERS_BYTES = 64 << 20, WORDS = 1024 };

static tern_team *team;
static struct {
	char *in, *out;
	size_t each, n, turn; /* bytes of one, how many there are, whose turn it is */
} buffers;
static uint64_t words[2][WORDS];

static int team_open(struct bench_rank *p)
{
	return tern_team_all(p->t, &team);
}

static int buffers_open(struct bench_rank *p)
{
	size_t each = (p->size + 4095u) & ~(size_t)4095;
	buffers.each = each;
	buffers.n = BUFFERS_BYTES / each ? BUFFERS_BYTES / each : 1;
	buffers.in = calloc(buffers.n, each);
	buffers.out = calloc(buffers.n, each);
	if (!buffers.in || !buffers.out)
		return error_set(-ENOMEM, "no memory for buffers of %zu bytes", each);
	memset(buffers.in, 1, buffers.n * each);
	memset(buffers.out, 1, buffers.n * each);
	return team_open(p);
}

static char *buffer_next(char *all)
{
	return all + buffers.turn++ % buffers.n * buffers.each;
}

/* -- Acts -------------------------------------------------------------------------------------- */

static int barriers_pass(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_team_barrier(team);
	return p->rc;
}

static int laps_raw(struct bench_rank *p)
{
	raw_laps(&p->raw, p->rank, p->ranks, p->count);
	return 0;
}

static int words_reduce(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_team_allreduce(team, &words[0][i % WORDS], &words[1][i % WORDS], 1,
					    TERN_TYPE_UINT64, TERN_REDUCE_SUM);
	return p->rc;
}

static int words_broadcast(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_team_broadcast(team, (uint32_t)(i % p->ranks), &words[0][i % WORDS],
					    sizeof words[0][0]);
	return p->rc ? p->rc : tern_team_barrier(team);
}

static int long_broadcast(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_team_broadcast(team, (uint32_t)(i % p->ranks), buffer_next(buffers.in),
					    p->size);
	return p->rc ? p->rc : tern_team_barrier(team);
}

static int long_reduce(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		size_t turn = buffers.turn;
		char *in = buffer_next(buffers.in);
		buffers.turn = turn;
		p->rc = tern_team_allreduce(team, in, buffer_next(buffers.out),
					    p->size / sizeof(double), TERN_TYPE_DOUBLE,
					    TERN_REDUCE_SUM);
	}
	return p->rc ? p->rc : tern_team_barrier(team);
}

static int all_copy(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count; i++) {
		size_t turn = buffers.turn;
		char *in = buffer_next(buffers.in);
		buffers.turn = turn;
		memcpy(buffer_next(buffers.out), in, p->size);
	}
	return tern_team_barrier(team);
}

/* -- Rows -------------------------------------------------------------------------------------- */

static const struct test test_barrier = {
	{ "team-barrier", "a barrier of a team of all ranks", "us" },
	{ "ranks", 2, PERF_RANKS_MOST, { 3, { 2, 8, 16 } }, { 0 } },
	.amount = { .ranks = RANKS_BY_SIZE, .count = 200 },
	.play = { .open = team_open,
		  .measure = { .time = PHASE_ALL, .act = barriers_pass },
		  .limit = { { .time = PHASE_ALL, .act = laps_raw } } },
	.limit_name =
		"a raw token once around the same processes, which yield if they are more than "
		"the cores",
	.bar = { { 2, "at most 0.90" }, { 8, "at most 0.40" } },
};

static const struct test test_reduce = {
	{ "team-allreduce", "a sum of one word of each rank, at all of them", "us" },
	.like = &test_barrier,
	.play = { .measure = { .time = PHASE_ALL, .act = words_reduce },
		  .limit = { { .time = PHASE_ALL, .act = barriers_pass } } },
	.limit_name = "a barrier of the same team",
	.bar = { { 2, "at most 1.50" }, { 8, "at most 1.50" }, { 16, "at most 1.50" } },
};

static const struct test test_broadcast = {
	{ "team-broadcast", "a word of each rank in turn, to all", "us" },
	.like = &test_reduce,
	.play = { .measure = { .time = PHASE_ALL, .act = words_broadcast } },
	.bar = { { 2, "at most 1.50" } },
};

static const struct test test_broadcast_long = {
	{ "team-broadcast-long", "many bytes of each rank in turn, to all", "GB/s" },
	{ "bytes", 1, 64 << 20, { 3, { 64 << 10, 1 << 20, 4 << 20 } }, { 0 } },
	.amount = { .ranks = 2, .count = 200, .bytes = 64 << 20 },
	.play = { .open = buffers_open,
		  .measure = { .time = PHASE_ALL, .act = long_broadcast },
		  .limit = { { .time = PHASE_ALL, .act = all_copy } } },
	.limit_name = "memcpy() of other buffers each time, run by all ranks at once",
	.bar = { { 1 << 20, "at least 0.50" } },
};

static const struct test test_reduce_long = {
	{ "team-allreduce-long", "sums of many doubles, at all ranks", "GB/s" },
	.like = &test_broadcast_long,
	.play = { .measure = { .time = PHASE_ALL, .act = long_reduce } },
	.bar = { { 1 << 20, "at least 0.25" } },
};

static const struct test test_broadcast_16 = {
	{ "team-broadcast-16", "the same among 16 ranks", "GB/s" },
	.like = &test_broadcast_long,
	.amount = { .ranks = 16, .cores = 16 },
};

static const struct test test_reduce_16 = {
	{ "team-allreduce-16", "the same among 16 ranks", "GB/s" },
	.like = &test_reduce_long,
	.amount = { .ranks = 16, .cores = 16 },
};

test_rows coll_tests = { &test_barrier,     &test_reduce,
			 &test_broadcast,   &test_broadcast_long,
			 &test_reduce_long, &test_broadcast_16,
			 &test_reduce_16,   NULL };
