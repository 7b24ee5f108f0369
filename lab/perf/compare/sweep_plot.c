/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three charts with the intervals across, from back-to-back to rare, and a line for each way of
 * delivery: slowdown, round trip, interrupts for each message.
 */
#include "lab/perf/compare/sweep.h"
#include "tools/common/chart.h"

enum { CHARTS = 3 };

static const struct {
	const char *title, *unit;
	enum sweep_figure figure;
	double scale; /* from the figure to the unit */
	enum sweep_way from;
} charts[CHARTS] = {
	{ "Slowdown of the computation", "%", SWEEP_SLOWDOWN, 100, WAY_POLLED },
	{ "Round trip", "us", SWEEP_LATENCY, 1e-3, WAY_POLLED },
	{ "Interrupts or claims a message", "", SWEEP_EVENTS, 1, WAY_THREAD },
};

static void lines_make(const struct sweep *s, unsigned c, struct chart_series series[WAYS],
		       struct chart_point at[WAYS][INTERVALS])
{
	for (unsigned w = charts[c].from; w < WAYS; w++) {
		series[w] = (struct chart_series){ .name = sweep_way_name[w],
						   .colour = w,
						   .style = w == WAY_UNPOLLED ? CHART_DASHED
									      : CHART_WHOLE,
						   .at = at[w],
						   .n = INTERVALS };
		for (unsigned i = 0; i < INTERVALS; i++)
			at[w][i] = (struct chart_point){ .x = INTERVALS - 1 - i,
							 .y = charts[c].scale *
							      s->at[i][w].is[charts[c].figure] };
	}
}

int sweep_plot(const void *sweep, FILE *to)
{
	const struct sweep *s = sweep;
	struct chart chart[CHARTS];
	struct chart_series series[CHARTS][WAYS];
	struct chart_point at[CHARTS][WAYS][INTERVALS];
	char text[INTERVALS][16], head[128];
	const char *place[INTERVALS];
	for (unsigned i = 0; i < INTERVALS; i++) {
		snprintf(text[i], sizeof text[i], "%u", sweep_interval[INTERVALS - 1 - i] / 1000);
		place[i] = text[i];
	}
	for (unsigned c = 0; c < CHARTS; c++) {
		lines_make(s, c, series[c], at[c]);
		chart[c] = (struct chart){ .title = charts[c].title,
					   .x = { .name = "us between two messages" },
					   .y = { .unit = charts[c].unit, .log = true },
					   .place = place,
					   .places = INTERVALS,
					   .series = &series[c][charts[c].from],
					   .n = WAYS - charts[c].from };
	}
	snprintf(head, sizeof head,
		 "A rank computes while another asks it something; %u cores; hollow: 0 or less",
		 s->cores);
	return chart_write(
		&(struct chart_sheet){
			.label = "Ways of delivery against the interval between messages",
			.head = head,
			.chart = chart,
			.charts = CHARTS,
			.columns = CHARTS,
			.wide = 340,
			.high = 300 },
		to);
}
