/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three panels side by side, each with the intervals across, from rare to back-to-back, and a
 * line for each way of delivery on a logarithmic scale: slowdown, round trip, interrupts for each
 * message. Colours are the reader's: light or dark follows what the viewer prefers.
 */
#include <math.h>

#include "lab/perf/compare/sweep.h"
#include "tools/common/svg.h"

enum {
	WIDTH = 1040,
	HEIGHT = 400,
	PANELS = 3,
	PANEL = 340, /* from one to the next */
	LEFT = 64,   /* of the first */
	TOP = 78,
	WIDE = 250,
	HIGH = 220,
};

static const char light[] = "--w0: #2563eb; --w1: #9aa1ab; --w2: #0d9488; --w3: #b45309";
static const char dark[] = "--w0: #7aa7ff; --w1: #667080; --w2: #2dd4bf; --w3: #fbbf24";
static const char style[] =
	"  polyline { fill: none; stroke-width: 2 } .w1 { stroke-dasharray: 4 4 }\n"
	"  .w0 { stroke: var(--w0) } .w1 { stroke: var(--w1) } .w2 { stroke: var(--w2) } .w3 { "
	"stroke: var(--w3) }\n"
	"  circle.w0 { fill: var(--w0) } circle.w1 { fill: var(--w1) } circle.w2 { fill: "
	"var(--w2) } "
	"circle.w3 { fill: var(--w3) }\n";
static const char *const way_class[WAYS] = { "w0", "w1", "w2", "w3" };

/*
 * The scale goes from `least` to `most`, or as far above as the figures do; what is below lies on
 * the floor.
 */
static const struct panel {
	const char *title, *unit;
	enum sweep_figure figure;
	double scale; /* from the figure to the unit */
	double least, most;
	unsigned ways; /* that are shown, a bit each */
} panels[PANELS] = {
	{ "Slowdown of the computation", "%", SWEEP_SLOWDOWN, 100, 0.1, 100, 15 },
	{ "Round trip", "us", SWEEP_LATENCY, 1e-3, 1, 1000, 15 },
	{ "Interrupts or claims a message", "", SWEEP_EVENTS, 1, 0.001, 1,
	  1 << WAY_THREAD | 1 << WAY_INTERRUPT },
};

static double panel_value(const struct panel *a, const struct sweep_point *p)
{
	return a->scale * p->is[a->figure];
}

static double panel_most(const struct panel *a, const struct sweep *s)
{
	double most = a->most;
	for (unsigned i = 0; i < INTERVALS; i++)
		for (int w = 0; w < WAYS; w++)
			while ((a->ways >> w & 1) && panel_value(a, &s->at[i][w]) > most &&
			       most < 1e12)
				most *= 10;
	return most;
}

static double height(const struct panel *a, double most, double value)
{
	return value > a->least ? HIGH * log(value / a->least) / log(most / a->least) : 0;
}

static double across(unsigned interval)
{
	return (double)WIDE * interval / (INTERVALS - 1);
}

static void draw_axes(const struct panel *a, double left, double most, FILE *to)
{
	for (double decade = a->least; decade < most * 1.01; decade *= 10) {
		double y = TOP + HIGH - height(a, most, decade);
		fprintf(to, "<path class=\"rule\" d=\"M%.1f %.1fh%d\"/>", left, y, WIDE);
		svg_text(to, "faint end", left - 8, y + 4, "%g%s%s", decade, *a->unit ? " " : "",
			 a->unit);
	}
	for (unsigned i = 0; i < INTERVALS; i++)
		svg_text(to, "faint middle", left + across(i), TOP + HIGH + 18, "%u",
			 sweep_interval[i] / 1000);
	svg_text(to, "faint middle", left + WIDE / 2.0, TOP + HIGH + 38, "us between two messages");
}

static void draw_way(const struct panel *a, const struct sweep *s, double left, int way, FILE *to)
{
	double most = panel_most(a, s);
	fprintf(to, "<polyline class=\"w%d\" points=\"", way);
	for (unsigned i = 0; i < INTERVALS; i++)
		fprintf(to, "%.1f,%.1f ", left + across(i),
			TOP + HIGH - height(a, most, panel_value(a, &s->at[i][way])));
	fputs("\"/>\n", to);
	for (unsigned i = 0; i < INTERVALS; i++) {
		double value = panel_value(a, &s->at[i][way]);
		svg_dot(to, way_class[way], left + across(i), TOP + HIGH - height(a, most, value),
			3, "%s: %.3g %s", sweep_way_name[way], value, a->unit);
	}
}

static void draw_panel(const struct sweep *s, unsigned number, FILE *to)
{
	const struct panel *a = &panels[number];
	double left = LEFT + (double)number * PANEL;
	svg_text(to, "title", left, TOP - 18, "%s", a->title);
	draw_axes(a, left, panel_most(a, s), to);
	for (int w = 0; w < WAYS; w++)
		if (a->ways >> w & 1)
			draw_way(a, s, left, w, to);
}

static void draw_key(FILE *to)
{
	for (int w = 0; w < WAYS; w++) {
		int x = LEFT + 170 * w, y = HEIGHT - 26;
		fprintf(to, "<polyline class=\"w%d\" points=\"%d,%d %d,%d\"/>", w, x, y, x + 26, y);
		svg_text(to, "", x + 34, y + 4, "%s", sweep_way_name[w]);
	}
}

int sweep_plot(const void *sweep, FILE *to)
{
	const struct sweep *s = sweep;
	svg_begin(to, WIDTH, HEIGHT, "Ways of delivery against the interval between messages",
		  light, dark, style);
	svg_text(to, "faint", LEFT, 30,
		 "A rank computes while another asks it something; messages come more often to the "
		 "right; %u cores",
		 s->cores);
	for (unsigned i = 0; i < PANELS; i++)
		draw_panel(s, i, to);
	draw_key(to);
	return svg_end(to);
}
