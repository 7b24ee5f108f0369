/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seven panels in two lines: the rates, and under them the lone round trips. Across are the ranks,
 * upward the figure, both on logarithmic scales, so that what grows with the ranks is a straight
 * line. Rings by hand are dashed. Colours follow what the viewer prefers, light or dark.
 */
#include <math.h>
#include <stdbool.h>

#include "lab/perf/many/scale.h"
#include "tools/common/svg.h"

enum {
	WIDTH = 1180,
	HEIGHT = 590,
	PANEL = 285, /* from one to the next, across */
	LINE = 270,  /* and downward */
	LEFT = 70,
	TOP = 84,
	WIDE = 200,
	HIGH = 160,
	LINES_MOST = 4,
};

static const char light[] = "--w0: #2563eb; --w1: #b45309";
static const char dark[] = "--w0: #7aa7ff; --w1: #fbbf24";
static const char style[] =
	"  polyline { fill: none; stroke-width: 2 } .hand { stroke-dasharray: 4 4 }\n"
	"  .w0 { stroke: var(--w0) } .w1 { stroke: var(--w1) }\n"
	"  circle.w0 { fill: var(--w0) } circle.w1 { fill: var(--w1) }\n";

static const struct panel {
	const char *title, *unit;
	enum scale_row row;
	unsigned rows; /* 2 with the 99th percentile */
	int line, place;
} panels[] = {
	{ "All to all, in turn", "M/s", SCALE_ALL_TO_ALL, 1, 0, 0 },
	{ "All to all, at random", "M/s", SCALE_RANDOM, 1, 0, 1 },
	{ "All others to one", "M/s", SCALE_FAN_IN, 1, 0, 2 },
	{ "One to all others", "M/s", SCALE_FAN_OUT, 1, 0, 3 },
	{ "Trip to a rank that floods", "us", SCALE_FLOODING, 2, 1, 0 },
	{ "Trip to a flooded rank", "us", SCALE_FLOODED, 2, 1, 1 },
	{ "Trip to one that is both", "us", SCALE_AMONG, 2, 1, 2 },
};
enum { PANELS = sizeof panels / sizeof *panels };

/* One panel on its way into the file. */
struct drawing {
	const struct scale *s;
	const struct panel *a;
	double left, top, least, most; /* powers of ten */
	FILE *to;
};

/* Trips are measured in ns. */
static double in_unit(const struct drawing *d, double figure)
{
	return d->a->line ? figure / 1000 : figure;
}

static void bounds_add(struct drawing *d, const double *figure)
{
	for (unsigned i = 0; i < d->s->n; i++) {
		double value = in_unit(d, figure[i]);
		if (isnan(value) || value <= 0)
			continue;
		while (value < d->least)
			d->least /= 10;
		while (value > d->most)
			d->most *= 10;
	}
}

static struct drawing drawing_of(const struct scale *s, const struct panel *a, FILE *to)
{
	struct drawing d = { s,
			     a,
			     LEFT + a->place * (double)PANEL,
			     TOP + a->line * (double)LINE,
			     a->line ? 100 : 10,
			     a->line ? 1000 : 100,
			     to };
	for (unsigned i = 0; i < a->rows; i++) {
		bounds_add(&d, s->value[a->row + i]);
		bounds_add(&d, s->limit[a->row + i]);
	}
	return d;
}

static double across(const struct drawing *d, unsigned step)
{
	double all = log((double)d->s->ranks[d->s->n - 1] / d->s->ranks[0]);
	return d->left + WIDE * log((double)d->s->ranks[step] / d->s->ranks[0]) / all;
}

static double upward(const struct drawing *d, double figure)
{
	double up = figure > d->least ? log(figure / d->least) / log(d->most / d->least) : 0;
	return d->top + HIGH - HIGH * up;
}

static void draw_axes(const struct drawing *d)
{
	svg_text(d->to, "title", d->left, d->top - 16, "%s", d->a->title);
	for (double decade = d->least; decade < d->most * 1.01; decade *= 10) {
		double y = upward(d, decade);
		fprintf(d->to, "<path class=\"rule\" d=\"M%.1f %.1fh%d\"/>", d->left, y, WIDE);
		svg_text(d->to, "faint end", d->left - 8, y + 4, "%g %s", decade, d->a->unit);
	}
	for (unsigned i = 0; i < d->s->n; i++)
		svg_text(d->to, "faint middle", across(d, i), d->top + HIGH + 18, "%u",
			 d->s->ranks[i]);
	svg_text(d->to, "faint middle", d->left + WIDE / 2.0, d->top + HIGH + 36, "ranks");
}

static void draw_line(const struct drawing *d, const char *classes, const char *dot,
		      const double *figure, const char *name)
{
	fprintf(d->to, "<polyline class=\"%s\" points=\"", classes);
	for (unsigned i = 0; i < d->s->n; i++)
		if (!isnan(figure[i]))
			fprintf(d->to, "%.1f,%.1f ", across(d, i),
				upward(d, in_unit(d, figure[i])));
	fputs("\"/>\n", d->to);
	for (unsigned i = 0; i < d->s->n; i++) {
		double value = in_unit(d, figure[i]);
		if (!isnan(value))
			svg_dot(d->to, dot, across(d, i), upward(d, value), 3,
				"%s, %u ranks: %.4g %s", name, d->s->ranks[i], value, d->a->unit);
	}
}

/* The key has the same order. */
static const struct {
	const char *classes, *dot, *name;
	bool percentile, hand;
} kinds[LINES_MOST] = {
	{ "w0", "w0", "Tern", false, false },
	{ "w0 hand", "w0", "rings by hand", false, true },
	{ "w1", "w1", "Tern, 99th percentile", true, false },
	{ "w1 hand", "w1", "rings by hand, 99th percentile", true, true },
};

static void draw_panel(const struct scale *s, const struct panel *a, FILE *to)
{
	const struct drawing d = drawing_of(s, a, to);
	draw_axes(&d);
	for (unsigned i = 0; i < LINES_MOST; i++) {
		unsigned row = (unsigned)a->row + kinds[i].percentile;
		if (!kinds[i].percentile || a->rows == 2)
			draw_line(&d, kinds[i].classes, kinds[i].dot,
				  kinds[i].hand ? s->limit[row] : s->value[row], kinds[i].name);
	}
}

static void draw_key(FILE *to)
{
	for (int i = 0; i < LINES_MOST; i++) {
		int x = LEFT + 3 * PANEL, y = TOP + LINE + 10 + 28 * i;
		fprintf(to, "<polyline class=\"%s\" points=\"%d,%d %d,%d\"/>", kinds[i].classes, x,
			y, x + 26, y);
		svg_text(to, "", x + 34, y + 4, "%s", kinds[i].name);
	}
}

int scale_plot(const void *scale, FILE *to)
{
	const struct scale *s = scale;
	svg_begin(to, WIDTH, HEIGHT, "Many ranks at once, by their number", light, dark, style);
	svg_text(to, "faint", LEFT, 30,
		 "4-word requests with a handler, all ranks together; %u cores", s->cores);
	for (unsigned i = 0; i < PANELS; i++)
		draw_panel(s, &panels[i], to);
	draw_key(to);
	return svg_end(to);
}
