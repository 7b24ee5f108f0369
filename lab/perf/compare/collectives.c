/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --collectives`: for each number of ranks, one job plays all operations and all their
 * limits in each round, and every other round plays them in the other order. So a figure and its
 * limit see the same machine. A time is that of the slowest rank.
 */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "lab/perf/coll.h"
#include "lab/perf/perf.h"

enum {
	ROUNDS = 21,
	QUICK_ROUNDS = 3,
	COUNT = 200,     /* calls in a round, */
	BYTES = 8 << 20, /* unless that is more bytes than this */
	SIZES = 8,
	SHORT = 4 << 10, /* below as many bytes a row has times */
	TRIP_RANKS = 2,  /* among as many a barrier is compared with a round trip */
};

static const uint32_t ranks_all[] = { 2, 4, 8, 16 }, ranks_quick[] = { 2, 8 };
static const uint32_t sizes_all[SIZES] = { 8,        64,        512,     4 << 10,
					   32 << 10, 256 << 10, 1 << 20, 4 << 20 };
static const uint32_t sizes_quick[] = { 8, 1 << 20 };

/* What is asked for. */
struct plan {
	const uint32_t *ranks, *sizes;
	unsigned n_ranks, n_sizes, rounds;
	uint64_t count; /* 0: as the size likes */
};

/* What one job plays; those from BROADCAST on have a part for each size. */
enum { BARRIER, TRIP_RAW, LAP_RAW, BROADCAST };
enum { SUM = BROADCAST + SIZES, COPY = SUM + SIZES, PARTS = COPY + SIZES };

/* Few bytes are a matter of time, and many of bandwidth. */
enum { ROW_TRIP, ROW_LAP, ROW_BROADCAST, ROW_BROADCAST_LONG, ROW_SUM, ROW_SUM_LONG, ROWS };
static const struct test rows[ROWS] = {
	[ROW_TRIP] = { { "barrier-trip", NULL, "us" },
		       { .size_name = "ranks" },
		       .limit_name = COLL_LIMIT_TRIP,
		       .bar = { { 2, "at most 0.90" } } },
	[ROW_LAP] = { { "barrier-lap", NULL, "us" },
		      { .size_name = "ranks" },
		      .limit_name = COLL_LIMIT_LAP,
		      .bar = { { 8, "at most 0.40" } } },
	[ROW_BROADCAST] = { { "broadcast", NULL, "us" },
			    { .size_name = "bytes" },
			    .limit_name = COLL_LIMIT_BARRIER },
	[ROW_BROADCAST_LONG] = { { "broadcast", NULL, "GB/s" },
				 { .size_name = "bytes" },
				 .limit_name = COLL_LIMIT_COPY,
				 .bar = { { 1 << 20, "at least 0.50" } } },
	[ROW_SUM] = { { "allreduce", NULL, "us" },
		      { .size_name = "bytes" },
		      .limit_name = COLL_LIMIT_BARRIER,
		      .bar = { { 8, "at most 1.50" } } },
	[ROW_SUM_LONG] = { { "allreduce", NULL, "GB/s" },
			   { .size_name = "bytes" },
			   .limit_name = COLL_LIMIT_COPY,
			   .bar = { { 1 << 20, "at least 0.25" } } },
};

/* -- The job ------------------------------------------------------------------------------ */

static uint64_t part_count(const struct plan *plan, uint32_t size)
{
	uint64_t fit = size ? BYTES / size : COUNT;
	if (plan->count)
		return plan->count;
	return fit < COUNT ? fit : COUNT;
}

static struct part part_of(const struct plan *plan, phase_act *act, uint32_t size)
{
	return (struct part){ .phase = { .time = PHASE_SLOWEST, .act = act },
			      .size = size,
			      .count = part_count(plan, size) };
}

static int job_play(const struct plan *plan, uint32_t ranks, struct ranks_result *result)
{
	const struct test test = { { "collectives", NULL, "ns" },
				   .amount = { .ranks = ranks, .cores = ranks, .warm = 2 },
				   .play = { .open = coll_open, .both_orders = true } };
	struct part parts[PARTS] = { 0 };
	parts[BARRIER] = part_of(plan, coll_barriers, 0);
	if (ranks == TRIP_RANKS)
		parts[TRIP_RAW] = part_of(plan, coll_trips_raw, 0);
	parts[LAP_RAW] = part_of(plan, coll_laps_raw, 0);
	for (unsigned i = 0; i < plan->n_sizes; i++) {
		parts[BROADCAST + i] = part_of(plan, coll_broadcasts, plan->sizes[i]);
		parts[SUM + i] = part_of(plan, coll_sums, plan->sizes[i]);
		parts[COPY + i] = part_of(plan, coll_copies, plan->sizes[i]);
	}
	memset(result, 0, sizeof *result);
	return ranks_play(&test, 0, parts, PARTS, plan->rounds, result);
}

/* -- What is shown ------------------------------------------------------------------------ */

/* From the ns of one call: us, or what each rank gets of the bytes. */
static double figure_of(const struct test *row, uint32_t size, double ns)
{
	return strcmp(row->unit, "us") == 0 ? ns / 1000 : size / ns;
}

/* One row: the figure and its limit, as parts of what a job played. */
struct shown {
	unsigned row, value, limit;
	uint32_t ranks, size;
};

static void row_show(struct report *r, const struct plan *plan, const struct shown *s,
		     const struct ranks_result *job)
{
	static struct ranks_result result; /* large */
	struct test test = rows[s->row];
	const struct series *from[] = { &job->part[s->value], &job->part[s->limit] };
	bool sized = s->row >= ROW_BROADCAST;
	char name[32];
	memset(&result, 0, sizeof result);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < from[i]->n; k++)
			series_add(&result.part[PART_MEASURED + i],
				   figure_of(&test, s->size, from[i]->at[k]));
	result.disturbed = job->disturbed;
	snprintf(name, sizeof name, sized ? "%s/%u" : "%s", test.name, s->ranks);
	test.name = name;
	test.amount.ranks = s->ranks;
	struct record record = { .test = &test, .size = s->size, .rounds = plan->rounds };
	record.count = part_count(plan, sized ? s->size : 0);
	record_fill(&record, &result);
	report_add(r, &record);
}

static void sizes_show(struct report *r, const struct plan *plan, uint32_t ranks,
		       unsigned first_part, unsigned row, const struct ranks_result *job)
{
	for (unsigned i = 0; i < plan->n_sizes; i++) {
		bool few = plan->sizes[i] < SHORT;
		const struct shown s = { few ? row : row + 1, first_part + i,
					 few ? BARRIER : COPY + i, ranks, plan->sizes[i] };
		row_show(r, plan, &s, job);
	}
}

static void job_show(struct report *r, const struct plan *plan, uint32_t ranks,
		     const struct ranks_result *job)
{
	const struct shown trip = { ROW_TRIP, BARRIER, TRIP_RAW, ranks, ranks };
	const struct shown lap = { ROW_LAP, BARRIER, LAP_RAW, ranks, ranks };
	if (ranks == TRIP_RANKS)
		row_show(r, plan, &trip, job);
	row_show(r, plan, &lap, job);
	sizes_show(r, plan, ranks, BROADCAST, ROW_BROADCAST, job);
	sizes_show(r, plan, ranks, SUM, ROW_SUM, job);
}

static void remarks(struct report *r, const struct plan *plan, unsigned disturbed)
{
	uint32_t cores = cpu_count(), most = plan->ranks[plan->n_ranks - 1];
	report_remark(r, "barrier-trip", "limit: %s", COLL_LIMIT_TRIP);
	report_remark(r, "barrier-lap", "limit: %s", COLL_LIMIT_LAP);
	report_remark(r, "in us", "limit of broadcast/N and allreduce/N, among N ranks: %s",
		      COLL_LIMIT_BARRIER);
	report_remark(r, "in GB/s", "for each rank; limit: %s", COLL_LIMIT_COPY);
	report_remark(r, "value", "of the slowest rank, with other buffers in each call");
	report_remark(r, "ratio",
		      "value over limit: of times less is better, of rates (GB/s) more");
	report_remark(r, "bar", "what the project wants on two cores; shown, not judged");
	if (most > cores)
		report_remark(r, "ranks", "more than %u share the %u core%s", cores, cores,
			      cores == 1 ? "" : "s");
	if (disturbed)
		report_remark(r, "disturbed",
			      "%u times another program took a core during a part of a round, "
			      "which was played again",
			      disturbed);
}

static struct plan plan_of(const struct perf_options *o)
{
	struct plan plan = { ranks_all,
			     sizes_all,
			     sizeof ranks_all / sizeof *ranks_all,
			     SIZES,
			     perf_rounds(o, ROUNDS, QUICK_ROUNDS),
			     o->count };
	if (o->quick) {
		plan.ranks = ranks_quick;
		plan.n_ranks = sizeof ranks_quick / sizeof *ranks_quick;
		plan.sizes = sizes_quick;
		plan.n_sizes = sizeof sizes_quick / sizeof *sizes_quick;
	}
	return plan;
}

int collectives_main(const struct perf_options *o)
{
	static struct ranks_result job; /* large */
	static const struct test name = { { .name = "collectives" },
					  { .size_name = "ranks" },
					  .like = NULL };
	const struct plan plan = plan_of(o);
	struct report r;
	unsigned disturbed = 0;
	int rc = 0;
	report_begin(&r, o->json, o->plain, plan.n_ranks);
	for (unsigned i = 0; i < plan.n_ranks && !rc; i++) {
		report_progress(&r, &name, plan.ranks[i]);
		rc = job_play(&plan, plan.ranks[i], &job);
		disturbed += job.disturbed;
		if (!rc)
			job_show(&r, &plan, plan.ranks[i], &job);
	}
	report_end(&r);
	if (!rc)
		remarks(&r, &plan, disturbed);
	return rc;
}
