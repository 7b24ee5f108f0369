/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of a sweep: across are the values of the first key, one beside the other; upward the
 * time, from 0, or where the key is the number of nodes the speed-up, on a logarithmic scale,
 * beside the ideal one. Each value of the second key has a line.
 */
#include <math.h>

#include "tools/common/svg.h"
#include "tools/sim/sweep.h"

enum { WIDTH = 760, HEIGHT = 430, LEFT = 90, TOP = 56, WIDE = 450, HIGH = 300, COLOURS = 6 };

static const char light[] = "--c0: #2563eb; --c1: #b45309; --c2: #15803d; --c3: #be185d; "
			    "--c4: #6d28d9; --c5: #475569";
static const char dark[] = "--c0: #7aa7ff; --c1: #fbbf24; --c2: #4ade80; --c3: #f9a8d4; "
			   "--c4: #c4b5fd; --c5: #cbd5e1";
static const char style[] =
	"  polyline { fill: none; stroke-width: 2 } .ideal { stroke: var(--faint); stroke-width: "
	"1.5; stroke-dasharray: 5 4 }\n"
	"  .c0 { stroke: var(--c0) } .c1 { stroke: var(--c1) } .c2 { stroke: var(--c2) }\n"
	"  .c3 { stroke: var(--c3) } .c4 { stroke: var(--c4) } .c5 { stroke: var(--c5) }\n"
	"  circle.c0 { fill: var(--c0) } circle.c1 { fill: var(--c1) } circle.c2 { fill: "
	"var(--c2) }\n"
	"  circle.c3 { fill: var(--c3) } circle.c4 { fill: var(--c4) } circle.c5 { fill: "
	"var(--c5) }\n";

struct drawing {
	const struct sweeps *s;
	FILE *to;
	double least, most; /* of the scale upward */
	bool log;
};

static double figure(const struct drawing *d, unsigned line, unsigned i)
{
	return d->s->nodes ? sweep_speedup(d->s, line, i) : d->s->run[line][i].time;
}

/* N times as quick with N times the nodes. */
static double ideal(const struct sweeps *s, unsigned i)
{
	return (double)s->run[0][i].nodes / s->run[0][0].nodes;
}

/* A digit and zeros, not below. */
static double rounded_up(double value)
{
	double ten = pow(10, floor(log10(value > 0 ? value : 1)));
	return ceil(value / ten) * ten;
}

static struct drawing drawing_of(const struct sweeps *s, FILE *to)
{
	struct drawing d = { .s = s, .to = to, .least = s->nodes ? 1 : 0, .log = s->nodes };
	double most = 0, least = 1;
	for (unsigned line = 0; line < s->lines; line++)
		for (unsigned i = 0; i < s->across; i++) {
			most = fmax(most, figure(&d, line, i));
			least = fmin(least, figure(&d, line, i));
		}
	d.most = rounded_up(most);
	if (d.log) {
		for (unsigned i = 0; i < s->across; i++) {
			most = fmax(most, ideal(s, i));
			least = fmin(least, ideal(s, i));
		}
		d.most = 2;
		while (d.most < most)
			d.most *= 2;
		while (d.least > least && d.least > 1.0 / 1024)
			d.least /= 2;
	}
	return d;
}

static double across(const struct drawing *d, unsigned i)
{
	return LEFT + (d->s->across > 1 ? (double)WIDE * i / (d->s->across - 1) : WIDE / 2.0);
}

static double upward(const struct drawing *d, double value)
{
	double up = d->log ? log(fmax(value, d->least) / d->least) / log(d->most / d->least)
			   : value / d->most;
	return TOP + HIGH - HIGH * up;
}

static void draw_rule(const struct drawing *d, double value)
{
	double y = upward(d, value);
	fprintf(d->to, "<path class=\"rule\" d=\"M%d %.1fh%d\"/>", LEFT, y, WIDE);
	svg_text(d->to, "faint end", LEFT - 8, y + 4, "%g%s", value, d->log ? "" : " us");
}

static void draw_axes(const struct drawing *d)
{
	const struct sweep *first = &d->s->o->sweep[0];
	if (d->log)
		for (double value = d->least; value < d->most * 1.01; value *= 2)
			draw_rule(d, value);
	for (int i = 0; i <= 4 && !d->log; i++)
		draw_rule(d, d->most * i / 4);
	for (unsigned i = 0; i < d->s->across; i++)
		svg_text(d->to, "faint middle", across(d, i), TOP + HIGH + 20, "%s",
			 first->value[i]);
	svg_text(d->to, "faint middle", LEFT + WIDE / 2.0, TOP + HIGH + 42, "%s",
		 d->s->nodes ? "nodes" : first->key);
}

/* The name of a line, with a piece of it, in the n-th row to the right. */
static void draw_key(const struct drawing *d, const char *class, unsigned n, const char *name)
{
	int y = TOP + 10 + 22 * (int)n;
	fprintf(d->to, "<polyline class=\"%s\" points=\"%d,%d %d,%d\"/>", class, LEFT + WIDE + 24,
		y, LEFT + WIDE + 48, y);
	svg_text(d->to, "", LEFT + WIDE + 56, y + 4, "%s", name);
}

static void draw_ideal(const struct drawing *d)
{
	fputs("<polyline class=\"ideal\" points=\"", d->to);
	for (unsigned i = 0; i < d->s->across; i++)
		fprintf(d->to, "%.1f,%.1f ", across(d, i), upward(d, ideal(d->s, i)));
	fputs("\"/>\n", d->to);
	draw_key(d, "ideal", d->s->o->sweeps > 1 ? d->s->lines : 0, "ideal");
}

static void draw_line(const struct drawing *d, unsigned line)
{
	char name[2 * PROFILE_NAME], class[8];
	const struct sweep *first = &d->s->o->sweep[0];
	snprintf(class, sizeof class, "c%u", line % COLOURS);
	sweep_line_name(d->s, line, name, sizeof name);
	fprintf(d->to, "<polyline class=\"%s\" points=\"", class);
	for (unsigned i = 0; i < d->s->across; i++)
		fprintf(d->to, "%.1f,%.1f ", across(d, i), upward(d, figure(d, line, i)));
	fputs("\"/>\n", d->to);
	for (unsigned i = 0; i < d->s->across; i++)
		svg_dot(d->to, class, across(d, i), upward(d, figure(d, line, i)), 3,
			"%s %s=%s: %.3f us, speed-up %.2f", name, first->key, first->value[i],
			d->s->run[line][i].time, sweep_speedup(d->s, line, i));
	if (*name)
		draw_key(d, class, line, name);
}

int sim_sweep_plot(const void *sweeps, FILE *to)
{
	const struct sweeps *s = sweeps;
	const struct sim_options *o = s->o;
	const struct drawing d = drawing_of(s, to);
	svg_begin(to, WIDTH, HEIGHT, "A simulated machine with other values", light, dark, style);
	svg_text(to, "title", LEFT, 30, "%s: %s of %s", o->profile,
		 s->nodes ? "speed-up" : "virtual time",
		 o->pattern ? o->pattern->name : o->program[0]);
	draw_axes(&d);
	if (d.log)
		draw_ideal(&d);
	for (unsigned line = 0; line < s->lines; line++)
		draw_line(&d, line);
	return svg_end(to);
}
