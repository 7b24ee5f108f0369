/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/chart.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tools/common/svg.h"
#include "tools/common/table.h"

enum { BAR = 15, BAR_APART = 12, MARKS = 32 };

/* -- What is drawn ------------------------------------------------------------------------ */

struct chart_series *chart_series(struct chart *c, const char *name, enum chart_style style)
{
	unsigned colour = c->colours;
	for (unsigned i = 0; i < c->n; i++) {
		if (strcmp(c->series[i].name, name) != 0)
			continue;
		if (c->series[i].style == style)
			return &c->series[i];
		colour = c->series[i].colour;
	}
	if (c->n == CHART_LINES)
		return NULL;
	struct chart_series *s = &c->series[c->n++];
	snprintf(s->name, sizeof s->name, "%s", name);
	s->colour = colour;
	s->style = style;
	s->n = 0;
	c->colours += colour == c->colours;
	return s;
}

bool chart_point(struct chart_series *s, struct chart_point p)
{
	if (!s || s->n == CHART_POINTS)
		return false;
	s->at[s->n++] = p;
	return true;
}

unsigned chart_place(struct chart *c, const char *name)
{
	if (c->places == CHART_POINTS)
		return CHART_POINTS;
	snprintf(c->place[c->places], CHART_LABEL, "%s", name);
	return c->places++;
}

/* -- Scales ------------------------------------------------------------------------------- */

struct scale {
	double least, most, length;
	bool log;
};

static double scale_at(const struct scale *s, double v)
{
	double part = s->log ? log(v / s->least) / log(s->most / s->least)
			     : (v - s->least) / (s->most - s->least);
	return s->length * fmin(fmax(part, 0), 1);
}

/* 1, 2 or 5 times a power of 10, not below. */
static double rounded_up(double v)
{
	static const double nice[] = { 1, 2, 5, 10 };
	double ten = pow(10, floor(log10(v)));
	for (unsigned i = 0; i < 4; i++)
		if (nice[i] * ten >= v * (1 - 1e-9))
			return nice[i] * ten;
	return 10 * ten;
}

static struct scale scale_make(double least, double most, bool log, double length)
{
	struct scale s = { .log = log, .length = length };
	if (!(most > 0) || !(least <= most))
		least = most = 1;
	s.most = log ? rounded_up(most) : 1.02 * most;
	s.least = log ? 1 / rounded_up(1 / least) : 0;
	if (s.most <= s.least * 1.5)
		s.most = s.least > 0 ? 10 * s.least : 1;
	return s;
}

/* The marks of a scale; how many. */
static unsigned scale_marks(const struct scale *s, double mark[MARKS])
{
	static const double part[] = { 1, 2, 5 };
	double decades = log10(s->most / (s->least > 0 ? s->least : s->most / 10));
	double step = rounded_up(s->most / 6);
	unsigned n = 0;
	for (double v = 0; !s->log && v <= s->most * 1.001 && n < MARKS; v += step)
		mark[n++] = v;
	for (double ten = pow(10, floor(log10(s->least))); s->log && ten <= s->most; ten *= 10)
		for (unsigned i = 0; i < (decades < 2.5 ? 3 : 1); i++) {
			double v = ten * part[i];
			if (v >= s->least * 0.999 && v <= s->most * 1.001 && n < MARKS)
				mark[n++] = v;
		}
	return n;
}

/* The least and the most of all series, of those above 0 where the scale is logarithmic. */
struct range {
	double least, most;
};

static void range_add(struct range *r, double v, bool log)
{
	if (isfinite(v) && (v > 0 || !log)) {
		r->least = fmin(r->least, v);
		r->most = fmax(r->most, v);
	}
}

static struct range range_of(const struct chart *c, bool across)
{
	struct range r = { INFINITY, -INFINITY };
	for (unsigned i = 0; i < c->n; i++)
		for (unsigned p = 0; p < c->series[i].n; p++) {
			const struct chart_point *at = &c->series[i].at[p];
			if (!isnan(at->y))
				range_add(&r, across ? at->x : at->y, across ? c->x.log : c->y.log);
		}
	return r;
}

static const char *axis_text(char cell[CHART_LABEL], const struct chart_axis *a)
{
	bool both = a->name && a->unit && *a->unit;
	snprintf(cell, CHART_LABEL, "%s%s%s", a->name ? a->name : "", both ? ", " : "",
		 a->unit ? a->unit : "");
	return cell;
}

/* -- Lines -------------------------------------------------------------------------------- */

/* A chart in its place: left and bottom are those of the axes. */
struct plot {
	const struct chart *c;
	double left, bottom, wide, high;
	struct scale x, y;
	FILE *to;
};

static double across(const struct plot *p, double x)
{
	return p->left + scale_at(&p->x, x);
}

static bool below(const struct plot *p, double y)
{
	return p->y.log && !(y > 0);
}

static double upward(const struct plot *p, double y)
{
	return p->bottom - (below(p, y) ? 0 : scale_at(&p->y, y));
}

static void scales_make(struct plot *p)
{
	const struct chart *c = p->c;
	struct range x = range_of(c, true), y = range_of(c, false);
	p->x = (struct scale){ x.least, x.most, p->wide, c->x.log };
	if (x.least == x.most)
		p->x = (struct scale){ x.least / 2, x.most * 2, p->wide, true };
	if (c->places)
		p->x = (struct scale){ 0, c->places > 1 ? c->places - 1 : 1, p->wide, false };
	p->y = scale_make(y.least, y.most, c->y.log, p->high);
}

/* The least x of all points beyond this one. */
static double next_x(const struct chart *c, double beyond)
{
	double next = INFINITY;
	for (unsigned i = 0; i < c->n; i++)
		for (unsigned p = 0; p < c->series[i].n; p++)
			if (c->series[i].at[p].x > beyond && !isnan(c->series[i].at[p].y))
				next = fmin(next, c->series[i].at[p].x);
	return next;
}

static void mark_across(const struct plot *p, double x, const char *text)
{
	svg_text(p->to, "faint middle", across(p, x), p->bottom + 18, "%s", text);
}

static void marks_across(const struct plot *p)
{
	const struct chart *c = p->c;
	double before = -100;
	char cell[CELL];
	for (unsigned i = 0; i < c->places; i++)
		mark_across(p, i, c->place[i]);
	for (double x = -INFINITY; !c->places && (x = next_x(c, x)) < INFINITY;)
		if (across(p, x) - before >= 34) {
			mark_across(p, x, cell_short(cell, x));
			before = across(p, x);
		}
}

static void axes_draw(const struct plot *p)
{
	double mark[MARKS];
	char cell[CELL], label[CHART_LABEL];
	unsigned n = scale_marks(&p->y, mark);
	for (unsigned i = 0; i < n; i++) {
		double y = upward(p, mark[i]);
		y = !p->y.log && mark[i] == 0 ? p->bottom : y;
		fprintf(p->to, "<path class=\"rule\" d=\"M%.1f %.1fh%.1f\"/>\n", p->left, y,
			p->wide);
		svg_text(p->to, "faint end", p->left - 8, y + 4, "%s", cell_short(cell, mark[i]));
	}
	marks_across(p);
	svg_text(p->to, "faint middle", p->left + p->wide / 2, p->bottom + 38, "%s",
		 axis_text(label, &p->c->x));
	fprintf(p->to,
		"<text class=\"faint middle\" transform=\"translate(%.1f %.1f) "
		"rotate(-90)\">%s</text>\n",
		p->left - 50, p->bottom - p->high / 2, axis_text(label, &p->c->y));
}

static const char *series_class(char cell[CELL], const struct chart_series *s)
{
	if (s->style == CHART_IDEAL)
		return "ideal";
	snprintf(cell, CELL, "c%u%s", s->colour % CHART_COLOURS,
		 s->style == CHART_DASHED ? " dashed" : "");
	return cell;
}

static void point_draw(const struct plot *p, const struct chart_series *s,
		       const struct chart_point *at)
{
	const struct chart *c = p->c;
	char class[CELL], x[CELL], y[CELL];
	double left = across(p, at->x);
	snprintf(class, sizeof class, "c%u%s", s->colour % CHART_COLOURS,
		 below(p, at->y) ? " hollow" : "");
	if (at->low < at->high)
		fprintf(p->to, "<path class=\"c%u\" d=\"M%.1f %.1fV%.1f\"/>\n",
			s->colour % CHART_COLOURS, left, upward(p, at->low), upward(p, at->high));
	svg_dot(p->to, class, left, upward(p, at->y), 3.5, "%s, %s %s: %s%s%s", s->name,
		c->x.name ? c->x.name : "",
		c->places ? c->place[(unsigned)at->x] : cell_unit(x, at->x, c->x.unit),
		c->y.name ? c->y.name : "", c->y.name ? " " : "", cell_unit(y, at->y, c->y.unit));
}

static void series_draw(const struct plot *p, const struct chart_series *s)
{
	char cell[CELL];
	fprintf(p->to, "<polyline class=\"%s\" points=\"", series_class(cell, s));
	for (unsigned i = 0; i < s->n; i++)
		if (!isnan(s->at[i].y))
			fprintf(p->to, "%.1f,%.1f ", across(p, s->at[i].x), upward(p, s->at[i].y));
	fputs("\"/>\n", p->to);
	for (unsigned i = 0; i < s->n && s->style != CHART_IDEAL; i++)
		if (!isnan(s->at[i].y))
			point_draw(p, s, &s->at[i]);
}

static struct plot plot_in(const struct chart *c, struct chart_room room, FILE *to)
{
	return (struct plot){ .c = c,
			      .left = room.left,
			      .bottom = room.top + room.high,
			      .wide = room.wide,
			      .high = room.high,
			      .to = to };
}

static void lines_draw(const struct chart *c, struct chart_room room, FILE *to)
{
	struct plot p = plot_in(c, room, to);
	scales_make(&p);
	axes_draw(&p);
	for (unsigned i = 0; i < c->n; i++)
		series_draw(&p, &c->series[i]);
}

const struct chart_kind chart_lines = {
	.before = 64, .after = 24, .foot = 48, .lines = true, .draw = lines_draw
};

/* -- Bars --------------------------------------------------------------------------------- */

static double bar_value(const struct chart_series *s, unsigned place)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->at[i].x == place)
			return s->at[i].y;
	return NAN;
}

/* In a stack, what is not beside it is a part of it. */
static bool stacked(const struct chart *c, const struct chart_series *s)
{
	return c->kind == &chart_stack && s->style != CHART_BESIDE;
}

static double stack_sum(const struct chart *c, unsigned place)
{
	double sum = 0;
	for (unsigned i = 0; i < c->n; i++)
		if (stacked(c, &c->series[i]))
			sum += fmax(bar_value(&c->series[i], place), 0);
	return sum;
}

double chart_high(const struct chart *c)
{
	unsigned bars = c->kind == &chart_stack ? c->places : 0;
	for (unsigned g = 0; g < c->places; g++)
		for (unsigned i = 0; i < c->n; i++)
			bars += !stacked(c, &c->series[i]) && !isnan(bar_value(&c->series[i], g));
	return bars * BAR + c->places * BAR_APART;
}

/* Where its end is. */
static double bar_draw(const struct plot *p, const struct chart_series *s, unsigned place, double x,
		       double y)
{
	char colour[24], cell[CELL];
	double v = bar_value(s, place), wide = fmax(scale_at(&p->y, v), 1.5);
	snprintf(colour, sizeof colour, "var(--c%u)", s->colour % CHART_COLOURS);
	svg_bar(p->to, colour, x, y, wide, BAR - 1, "%s, %s: %s", p->c->place[place], s->name,
		cell_unit(cell, v, p->c->y.unit));
	return x + wide;
}

/* The bars of a place, one under the other. Returns where the next may begin. */
static double place_draw(const struct plot *p, unsigned place, double y)
{
	const struct chart *c = p->c;
	double x = p->left;
	char cell[CELL];
	svg_text(p->to, "end", p->left - 8, y + 11.5, "%s", c->place[place]);
	for (unsigned i = 0; i < c->n; i++)
		if (stacked(c, &c->series[i]) && bar_value(&c->series[i], place) > 0)
			x = bar_draw(p, &c->series[i], place, x, y);
	if (c->kind == &chart_stack) {
		svg_text(p->to, "faint", x + 6, y + 11.5, "%s",
			 cell_short(cell, stack_sum(c, place)));
		y += BAR;
	}
	for (unsigned i = 0; i < c->n; i++) {
		double v = bar_value(&c->series[i], place);
		if (stacked(c, &c->series[i]) || isnan(v))
			continue;
		x = bar_draw(p, &c->series[i], place, p->left, y);
		svg_text(p->to, "faint", x + 6, y + 11.5, "%s",
			 cell_unit(cell, v, c->kind == &chart_stack ? NULL : c->y.unit));
		y += BAR;
	}
	return y + BAR_APART;
}

static void bars_draw(const struct chart *c, struct chart_room room, FILE *to)
{
	struct plot p = plot_in(c, room, to);
	struct range r = range_of(c, false);
	double y = room.top;
	for (unsigned i = 0; i < c->places; i++)
		r.most = fmax(r.most, stack_sum(c, i));
	/* A logarithmic bar has a length only beside others: it begins well below the least. */
	p.y = scale_make(r.least / 3, r.most, c->y.log, p.wide);
	for (unsigned i = 0; i < c->places; i++)
		y = place_draw(&p, i, y);
}

const struct chart_kind chart_bars = { .before = 150, .after = 84, .draw = bars_draw };
const struct chart_kind chart_stack = { .before = 150, .after = 84, .draw = bars_draw };

/* -- Charts and sheets -------------------------------------------------------------------- */

static const struct chart_kind *kind_of(const struct chart *c)
{
	return c->kind ? c->kind : &chart_lines;
}

void chart_draw(const struct chart *c, struct chart_room room, FILE *to)
{
	const struct chart_kind *kind = kind_of(c);
	double head = (c->title ? 30 : 4) + (c->remark ? 18 : 0);
	if (c->title)
		svg_text(to, "title", room.left + 10, room.top + 12, "%s", c->title);
	if (c->remark)
		svg_text(to, "faint", room.left + 10, room.top + 30, "%s", c->remark);
	room.left += kind->before;
	room.wide -= kind->before + kind->after;
	room.top += head;
	room.high -= head + kind->foot;
	kind->draw(c, room, to);
}

/* A piece of each series beside its name, in rows; returns how high they are. */
static double key_draw(const struct chart *c, double top, double wide, FILE *to)
{
	double x = 24, y = top;
	char cell[CELL];
	for (unsigned i = 0; i < c->n; i++) {
		const struct chart_series *s = &c->series[i];
		double needs = 58 + 6.6 * (double)strlen(s->name); /* letters are about that wide */
		if (!*s->name)
			continue;
		if (x + needs > wide && x > 24)
			x = 24, y += 22;
		if (to && kind_of(c)->lines)
			fprintf(to, "<polyline class=\"%s\" points=\"%.1f,%.1f %.1f,%.1f\"/>\n",
				series_class(cell, s), x, y, x + 24, y);
		else if (to)
			fprintf(to,
				"<path d=\"M%.1f %.1fh12v12h-12z\" style=\"fill: "
				"var(--c%u)\"/>\n",
				x + 8, y - 6, s->colour % CHART_COLOURS);
		if (to)
			svg_text(to, "", x + 32, y + 4, "%s", s->name);
		x += needs;
	}
	return y - top + 22;
}

int chart_write(const struct chart_sheet *s, FILE *to)
{
	unsigned columns = s->columns < s->charts ? s->columns : s->charts;
	unsigned rows = (s->charts + columns - 1) / columns;
	double wide = columns * s->wide + 24, head = s->head ? 48 : 24;
	double down = head + rows * (s->high + 16);
	const struct chart *key = &s->chart[s->key];
	bool keyed = key->n > 1;
	double high = down + 8 + (keyed ? key_draw(key, 0, wide, NULL) : 0);
	svg_begin(to, (int)wide, (int)high, s->label, "");
	if (s->head)
		svg_text(to, "faint", 24, 28, "%s", s->head);
	for (unsigned i = 0; i < s->charts; i++)
		chart_draw(&s->chart[i],
			   (struct chart_room){ 12 + i % columns * s->wide,
						head + i / columns * (s->high + 16), s->wide,
						s->high },
			   to);
	if (keyed)
		key_draw(key, down + 10, wide, to);
	return svg_end(to);
}
