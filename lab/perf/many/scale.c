/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern perf --scale`: how each row of many ranks grows with their number. */
#include "lab/perf/many/scale.h"

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "lab/perf/many/many.h"
#include "tools/common/svg.h"

enum {
	RATE_ROUNDS = 21,
	TRIP_ROUNDS = 5,
	QUICK_ROUNDS = 3,
	RANKS_LEAST = 4, /* the last step, on however few cores: lone trips need 3 ranks */
	RANKS_MOST = PERF_RANKS_MOST,
};

static const struct test *const rows[SCALE_ROWS] = {
	[SCALE_ALL_TO_ALL] = &test_all_to_all, [SCALE_RANDOM] = &test_random,
	[SCALE_FAN_IN] = &test_fan_in,         [SCALE_FAN_OUT] = &test_fan_out,
	[SCALE_FLOODING] = &test_flooding,     [SCALE_FLOODING_99] = &test_flooding_99,
	[SCALE_FLOODED] = &test_flooded,       [SCALE_FLOODED_99] = &test_flooded_99,
	[SCALE_AMONG] = &test_among,           [SCALE_AMONG_99] = &test_among_99,
};

void scale_steps(struct scale *s, uint32_t cores)
{
	uint32_t most = cores < RANKS_LEAST ? RANKS_LEAST : cores;
	if (most > RANKS_MOST)
		most = RANKS_MOST;
	s->n = 0;
	for (uint32_t ranks = 2; ranks < most; ranks *= 2)
		s->ranks[s->n++] = ranks;
	s->ranks[s->n++] = most;
}

static bool row_has(unsigned row, uint32_t ranks)
{
	return ranks >= (row < SCALE_FLOODING ? 2 : 3);
}

static int step_run(const struct perf_options *o, struct report *r, struct scale *s, unsigned row,
		    unsigned step)
{
	static struct ranks_result result; /* large */
	const struct test test = test_complete(rows[row]);
	struct record record = { .test = &test, .size = s->ranks[step] };
	record.count = o->count ? o->count : test.amount.count;
	record.rounds =
		perf_rounds(o, row < SCALE_FLOODING ? RATE_ROUNDS : TRIP_ROUNDS, QUICK_ROUNDS);
	memset(&result, 0, sizeof result);
	report_progress(r, &test, record.size);
	int rc = ranks_run(&test, record.size, record.count, record.rounds, &result);
	if (rc)
		return rc;
	record_fill(&record, &result);
	report_add(r, &record);
	s->value[row][step] = record.value;
	s->limit[row][step] = record.limit;
	return 0;
}

static int row_run(const struct perf_options *o, struct report *r, struct scale *s, unsigned row)
{
	int rc = 0;
	for (unsigned i = 0; i < s->n && !rc; i++) {
		s->value[row][i] = s->limit[row][i] = NAN;
		if (row_has(row, s->ranks[i]))
			rc = step_run(o, r, s, row, i);
	}
	return rc;
}

static void remarks(struct report *r, const struct scale *s)
{
	report_remark(r, "limit", "%s", test_all_to_all.limit_name);
	for (unsigned i = 0; i < SCALE_ROWS; i++)
		report_remark(r, rows[i]->name, "%s", rows[i]->purpose);
	report_remark(r, "ratio", "value over limit: of times less is better, of rates (M/s) more");
	report_remark(r, "bar", "what the project wants on 16 cores; shown, not judged");
	if (s->ranks[s->n - 1] > s->cores)
		report_remark(r, "ranks", "more than %u share the %u core%s", s->cores, s->cores,
			      s->cores == 1 ? "" : "s");
	if (r->disturbed)
		report_remark(r, "disturbed",
			      "%u times another program took a core during a round, which was "
			      "played again",
			      r->disturbed);
}

int scale_main(const struct perf_options *o)
{
	static struct scale s;
	struct report r;
	unsigned all = 0;
	int rc = 0;
	s.cores = cpu_count();
	scale_steps(&s, s.cores);
	for (unsigned row = 0; row < SCALE_ROWS; row++)
		for (unsigned i = 0; i < s.n; i++)
			all += row_has(row, s.ranks[i]);
	report_begin(&r, o->json, o->plain, all);
	for (unsigned row = 0; row < SCALE_ROWS && !rc; row++)
		rc = row_run(o, &r, &s, row);
	report_end(&r);
	if (rc)
		return rc;
	remarks(&r, &s);
	return file_write(o->plot, scale_plot, &s);
}
