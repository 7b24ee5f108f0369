/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seven charts in two rows: the rates, and under them the lone round trips. Across are the ranks,
 * upward the figure, both on logarithmic scales, so that what grows with the ranks is a straight
 * line. Rings by hand are dashed.
 */
#include "lab/perf/many/scale.h"
#include "tools/common/chart.h"

enum { LINES_MOST = 4 };

static const struct {
	const char *title;
	enum scale_row row;
	bool trip; /* in ns, and with the 99th percentile */
} charts[] = {
	{ "All to all, in turn", SCALE_ALL_TO_ALL, false },
	{ "All to all, at random", SCALE_RANDOM, false },
	{ "All others to one", SCALE_FAN_IN, false },
	{ "One to all others", SCALE_FAN_OUT, false },
	{ "Trip to a rank that floods", SCALE_FLOODING, true },
	{ "Trip to a flooded rank", SCALE_FLOODED, true },
	{ "Trip to one that is both", SCALE_AMONG, true },
};
enum { CHARTS = sizeof charts / sizeof *charts, KEY = CHARTS - 1 };

static const struct chart_series lines[LINES_MOST] = {
	{ .name = "Tern" },
	{ .name = "rings by hand", .style = CHART_DASHED },
	{ .name = "Tern, 99th percentile", .colour = 1 },
	{ .name = "rings by hand, 99th percentile", .colour = 1, .style = CHART_DASHED },
};

static void line_make(const struct scale *s, unsigned c, unsigned line, struct chart_series *series,
		      struct chart_point at[SCALE_STEPS])
{
	unsigned row = charts[c].row + line / 2;
	const double *figure = line % 2 ? s->limit[row] : s->value[row];
	*series = lines[line];
	series->at = at;
	series->n = s->n;
	for (unsigned i = 0; i < s->n; i++)
		at[i] = (struct chart_point){ .x = s->ranks[i],
					      .y = figure[i] / (charts[c].trip ? 1000 : 1) };
}

int scale_plot(const void *scale, FILE *to)
{
	const struct scale *s = scale;
	static struct chart_point at[CHARTS][LINES_MOST][SCALE_STEPS];
	struct chart_series series[CHARTS][LINES_MOST];
	struct chart chart[CHARTS];
	char head[128];
	for (unsigned c = 0; c < CHARTS; c++) {
		unsigned n = charts[c].trip ? LINES_MOST : LINES_MOST / 2;
		for (unsigned i = 0; i < n; i++)
			line_make(s, c, i, &series[c][i], at[c][i]);
		chart[c] =
			(struct chart){ .title = charts[c].title,
					.x = { .name = "ranks", .log = true },
					.y = { .unit = charts[c].trip ? "us" : "M/s", .log = true },
					.series = series[c],
					.n = n };
	}
	snprintf(head, sizeof head, "4-word requests with a handler, all ranks together; %u cores",
		 s->cores);
	return chart_write(&(struct chart_sheet){ .label = "Many ranks at once, by their number",
						  .head = head,
						  .chart = chart,
						  .charts = CHARTS,
						  .columns = 4,
						  .key = KEY,
						  .wide = 290,
						  .high = 250 },
			   to);
}
