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

static void chart_make(const struct sweep *s, unsigned c, struct chart *chart)
{
	char text[16];
	chart->title = charts[c].title;
	chart->x.name = "us between two messages";
	chart->y = (struct chart_axis){ .unit = charts[c].unit, .log = true };
	for (unsigned i = INTERVALS; i-- > 0;) {
		snprintf(text, sizeof text, "%u", sweep_interval[i] / 1000);
		unsigned x = chart_place(chart, text);
		for (unsigned w = charts[c].from; w < WAYS; w++) {
			struct chart_series *line =
				chart_series(chart, sweep_way_name[w],
					     w == WAY_UNPOLLED ? CHART_DASHED : CHART_WHOLE);
			double y = charts[c].scale * s->at[i][w].is[charts[c].figure];
			line->colour = w;
			chart_point(line, (struct chart_point){ .x = x, .y = y });
		}
	}
}

int sweep_plot(const void *sweep, FILE *to)
{
	const struct sweep *s = sweep;
	static struct chart chart[CHARTS]; /* large */
	char head[128];
	for (unsigned c = 0; c < CHARTS; c++)
		chart_make(s, c, &chart[c]);
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
