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

#include "base/error.h"
#include "lab/perf/perf.h"

enum {
	BUFFERS_BYTES = 64 << 20,
	WORDS = 1024,
	LINE = 64,
	PAGE = 4096,
};

static tern_team *team;
static struct {
	char *in, *out;
	size_t len, next; /* bytes of either, and where the next buffers begin */
} buffers;
static uint64_t words[2][WORDS];

static int team_open(struct bench_rank *p)
{
	return tern_team_all(p->t, &team);
}

static int coll_open(struct bench_rank *p)
{
	buffers.len = BUFFERS_BYTES < p->size ? p->size : BUFFERS_BYTES;
	buffers.in = aligned_alloc(PAGE, buffers.len);
	buffers.out = aligned_alloc(PAGE, buffers.len);
	if (!buffers.in || !buffers.out)
		return error_set(-ENOMEM, "no memory for buffers of %zu bytes", buffers.len);
	memset(buffers.in, 0, buffers.len);
	memset(buffers.out, 0, buffers.len);
	return team_open(p);
}

/* The place in both for the next call. */
static size_t buffer_next(const struct bench_rank *p)
{
	size_t unit = p->size < PAGE ? LINE : PAGE, each = (p->size + unit - 1) / unit * unit;
	if (buffers.next + each > buffers.len)
		buffers.next = 0;
	buffers.next += each;
	return buffers.next - each;
}

/* -- Acts -------------------------------------------------------------------------------------- */

static REPEATS(job_barriers, tern_barrier(p->t));
static REPEATS(barriers, tern_team_barrier(team));
static REPEATS(words_reduce, tern_team_allreduce(team, &words[0][i % WORDS], &words[1][i % WORDS],
						 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM));

static int words_broadcast(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_team_broadcast(team, (uint32_t)(i % p->ranks), &words[0][i % WORDS],
					    sizeof words[0][0]);
	return p->rc ? p->rc : tern_team_barrier(team);
}

static int coll_broadcasts(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_team_broadcast(team, (uint32_t)(i % p->ranks),
					    buffers.in + buffer_next(p), p->size);
	return p->rc ? p->rc : tern_team_barrier(team);
}

static int coll_sums(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		size_t at = buffer_next(p);
		p->rc = tern_team_allreduce(team, buffers.in + at, buffers.out + at,
					    p->size / sizeof(double), TERN_TYPE_DOUBLE,
					    TERN_REDUCE_SUM);
	}
	return p->rc ? p->rc : tern_team_barrier(team);
}

static int coll_copies(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count; i++) {
		size_t at = buffer_next(p);
		memcpy(buffers.out + at, buffers.in + at, p->size);
	}
	return tern_team_barrier(team);
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test coll_tests[] = {
	{ "barrier", "a barrier of all ranks", "us", "ranks", 2, PERF_RANKS_MOST,
	  .sizes = { 2, { 2, 8 } }, .quick = { 1, { 8 } }, .ranks = RANKS_BY_SIZE, .count = 100,
	  .measure = { job_barriers, PHASE_ALL }, .limit = { { raw_laps, PHASE_ALL } },
	  .limit_name = "a raw token once around the same processes, which yield if they are more "
			"than the cores",
	  .bar = { { 8, "at most 0.40" } } },
	{ "team-barrier", "a barrier of a team of all ranks", "us", "ranks", 2, PERF_RANKS_MOST,
	  .sizes = { 3, { 2, 8, 16 } }, .like = "barrier", .count = 200, .open = team_open,
	  .measure = { barriers, PHASE_SLOWEST }, .limit = { { raw_laps, PHASE_SLOWEST } },
	  .bar = { { 2, "at most 0.90" }, { 8, "at most 0.40" } } },
	{ "team-allreduce", "a sum of one word of each rank, at all of them", "us",
	  .like = "team-barrier", .measure = { words_reduce, PHASE_SLOWEST },
	  .limit = { { barriers, PHASE_SLOWEST } }, .limit_name = "a barrier of the same team",
	  .bar = { { 2, "at most 1.50" }, { 8, "at most 1.50" }, { 16, "at most 1.50" } } },
	{ "team-broadcast", "a word of each rank in turn, to all", "us", .like = "team-allreduce",
	  .measure = { words_broadcast, PHASE_SLOWEST }, .bar = { { 2, "at most 1.50" } } },
	{ "team-broadcast-long", "many bytes of each rank in turn, to all", "GB/s", "bytes", 1,
	  64 << 20, .sizes = { 3, { 64 << 10, 1 << 20, 4 << 20 } }, .ranks = 2, .count = 200,
	  .bytes = 64 << 20, .open = coll_open, .measure = { coll_broadcasts, PHASE_SLOWEST },
	  .limit = { { coll_copies, PHASE_SLOWEST } },
	  .limit_name = "memcpy() of other buffers each time, run by all ranks at once",
	  .bar = { { 1 << 20, "at least 0.50" } } },
	{ "team-allreduce-long", "sums of many doubles, at all ranks", "GB/s",
	  .like = "team-broadcast-long", .measure = { coll_sums, PHASE_SLOWEST },
	  .bar = { { 1 << 20, "at least 0.25" } } },
	{ .like = NULL },
};
