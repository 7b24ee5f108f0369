/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --plot`: a chart for each test, with its sizes across and its figure upward, both on
 * logarithmic scales, so that what grows with the size is a straight line. Limits are dashed. The
 * 99th percentile of a time stands in the chart of its median.
 */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "lab/perf/perf.h"
#include "tools/common/chart.h"

enum { LINES = 4, POINTS = 32, COLUMNS = 4 };

static const struct chart_series lines[LINES] = {
	{ .name = "Tern" },
	{ .name = "limit", .style = CHART_DASHED },
	{ .name = "Tern, 99th percentile", .colour = 1 },
	{ .name = "limit, 99th percentile", .colour = 1, .style = CHART_DASHED },
};

static struct drawn {
	const struct test *test;
	struct chart_series series[LINES];
	struct chart_point at[LINES][POINTS];
} drawn[PERF_TESTS_MOST];
static unsigned charts;

static bool is_99th(const struct test *t, const struct test *of)
{
	size_t n = strlen(of->name);
	return strncmp(t->name, of->name, n) == 0 && strcmp(t->name + n, "-99") == 0;
}

void plot_add(const struct record *r)
{
	bool tail = charts && is_99th(r->test, drawn[charts - 1].test);
	if (!tail && (!charts || drawn[charts - 1].test != r->test)) {
		drawn[charts].test = r->test;
		memcpy(drawn[charts++].series, lines, sizeof lines);
	}
	struct drawn *d = &drawn[charts - 1];
	for (unsigned i = 2 * tail; i < 2u * tail + 2; i++) {
		double y = i % 2 ? r->limit : r->value;
		if (!isnan(y) && d->series[i].n < POINTS)
			d->at[i][d->series[i].n++] = (struct chart_point){ .x = r->size, .y = y };
		d->series[i].at = d->at[i];
	}
}

/* A test without a limit, or without a 99th percentile, has fewer lines than there are. */
static struct chart chart_of(const struct drawn *d)
{
	unsigned n = LINES;
	while (n > 1 && !d->series[n - 1].n)
		n--;
	return (struct chart){ .title = d->test->name,
			       .x = { .name = d->test->size_name, .log = true },
			       .y = { .unit = d->test->unit, .log = true },
			       .series = d->series,
			       .n = n };
}

int plot_write(const void *nothing, FILE *to)
{
	struct chart chart[PERF_TESTS_MOST];
	struct chart_sheet sheet = { .label = "Figures of tern perf, and their limits, by size",
				     .chart = chart,
				     .charts = charts,
				     .columns = COLUMNS,
				     .wide = 290,
				     .high = 250 };
	char head[64];
	(void)nothing;
	for (unsigned i = 0; i < charts; i++) {
		chart[i] = chart_of(&drawn[i]);
		sheet.key = chart[i].n > chart[sheet.key].n ? i : sheet.key;
	}
	snprintf(head, sizeof head, "tern perf, by the size of each test; %u cores", cpu_count());
	sheet.head = head;
	return charts ? chart_write(&sheet, to) : 0;
}
