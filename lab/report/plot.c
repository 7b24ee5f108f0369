/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A picture of records: lines over an axis, or groups of bars. The page has the style; here are
 * places and classes. Whiskers are the middle half of the rounds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/report/report.h"
#include "tools/common/svg.h"
#include "tools/common/table.h"

enum {
	WIDTH = 560,
	LEFT = 64,
	TOP = 18,
	WIDE = WIDTH - LEFT - 24,
	HIGH = 250,
	BAR_LEFT = 150,
	BAR_WIDE = WIDTH - BAR_LEFT - 90,
	BAR = 15,
	BAR_APART = 12,
	COLOURS = 8,
	LINES_MOST = 24,
	POINTS_MOST = 32,
	GROUPS_MOST = 64,
	NAME = 96,
};

const char *html_cell(char *cell, size_t len, const char *text)
{
	static const char special[] = "<>&\"";
	static const char *const written[] = { "&lt;", "&gt;", "&amp;", "&quot;" };
	size_t used = 0;
	for (; *text && used + 8 < len; text++) {
		const char *place = strchr(special, *text);
		if (place)
			used += (size_t)snprintf(cell + used, len - used, "%s",
						 written[place - special]);
		else
			cell[used++] = *text;
	}
	cell[used] = '\0';
	return cell;
}

/* -- Which records, and what of them ------------------------------------------------------ */

static bool words_have(const char *words, const char *word)
{
	size_t n = strlen(word);
	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t m = strcspn(at, " ");
		if (m == n && strncmp(at, word, n) == 0)
			return true;
		at += m;
	}
	return false;
}

/* The values of some keys, with '|' between them. */
static void values_join(const struct data *d, const struct record *r, const char *keys, char *to,
			size_t len)
{
	char copy[NAME], *at = copy, *key;
	snprintf(copy, sizeof copy, "%s", keys);
	*to = '\0';
	while ((key = strsep(&at, " "))) {
		const char *value = data_text(d, r, key);
		size_t used = strlen(to);
		snprintf(to + used, len - used, "%s%s", *to ? "|" : "", value ? value : "");
	}
}

/* Whether the figure shows this record. */
static bool record_shown(const struct figure *f, const struct data *d, const struct record *r)
{
	char values[NAME];
	if (r->head || !data_text(d, r, f->by))
		return false;
	if (!f->only_key)
		return true;
	values_join(d, r, f->only_key, values, sizeof values);
	return words_have(f->only, values);
}

/* Where a figure does not vary the ranks, it shows the records with the most. */
static double most_ranks(const struct figure *f, const struct data *d)
{
	double most = 0;
	for (unsigned i = 0; i < d->records; i++)
		if (record_shown(f, d, &d->record[i]))
			most = fmax(most, data_number(d, &d->record[i], "ranks"));
	return most;
}

static void record_name(const struct figure *f, const struct data *d, const struct record *r,
			char *name)
{
	const char *by = data_text(d, r, f->by);
	const char *too = f->by_too ? data_text(d, r, f->by_too) : NULL;
	snprintf(name, NAME, "%s%s%s", by, too ? " " : "", too ? too : "");
}

/* A time or a figure, as the picture wants it. */
static double figure_value(const struct figure *f, const struct data *d, const struct record *r,
			   const char *key)
{
	double v = data_number(d, r, key) * (f->scale > 0 ? f->scale : 1);
	if (f->as == FIGURE_RATE)
		v = data_number(d, r, "amount") / v;
	if (f->per)
		v /= data_number(d, r, f->per);
	return isfinite(v) && (v > 0 || !f->log) ? v : NAN;
}

/* -- A scale ------------------------------------------------------------------------------ */

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

static double rounded_down(double v)
{
	return 1 / rounded_up(1 / v);
}

static struct scale scale_make(double least, double most, bool log, double length)
{
	struct scale s = { .log = log, .length = length };
	if (!(most > 0) || !(least <= most))
		least = most = 1;
	s.most = log ? rounded_up(most) : 1.02 * most;
	s.least = log ? rounded_down(least) : 0;
	if (s.most <= s.least * 1.5)
		s.most = s.least > 0 ? 10 * s.least : 1;
	return s;
}

/* The marks of a scale; how many. */
static unsigned scale_marks(const struct scale *s, double *mark, unsigned room)
{
	static const double part[] = { 1, 2, 5 };
	double decades = log10(s->most / (s->least > 0 ? s->least : s->most / 10));
	unsigned n = 0;
	if (!s->log) {
		double step = rounded_up(s->most / 6);
		for (double v = 0; v <= s->most * 1.001 && n < room; v += step)
			mark[n++] = v;
		return n;
	}
	for (double ten = pow(10, floor(log10(s->least))); ten <= s->most; ten *= 10)
		for (unsigned i = 0; i < (decades < 3.5 ? 3 : 1); i++) {
			double v = ten * part[i];
			if (v >= s->least * 0.999 && v <= s->most * 1.001 && n < room)
				mark[n++] = v;
		}
	return n;
}

/* 1234567 as 1.2M. */
static const char *number_short(char cell[CELL], double v)
{
	static const char unit[] = " kMG";
	unsigned u = 0;
	while (fabs(v) >= 10000 && u + 2 < sizeof unit) {
		v /= 1000;
		u++;
	}
	snprintf(cell, CELL,
		 fabs(v) < 1 ? "%.2g%.1s"
		 : u         ? "%.3g%.1s"
			     : "%.4g%.1s",
		 v, u ? &unit[u] : "");
	return cell;
}

/* A value and its unit; times in the unit that has few digits. */
static const char *value_text(char cell[CELL], double v, const char *unit)
{
	static const char *const times[] = { "ns", "us", "ms", "s" };
	unsigned u = 0;
	char number[CELL];
	while (u < 4 && strcmp(times[u], unit) != 0)
		u++;
	for (; u < 3 && v >= 1000; u++)
		v /= 1000;
	for (; u > 0 && u < 4 && v < 1; u--)
		v *= 1000;
	snprintf(cell, CELL, "%.16s %.24s", number_short(number, v), u < 4 ? times[u] : unit);
	return cell;
}

/* -- Lines -------------------------------------------------------------------------------- */

struct point {
	double x, y, low, high;
};

struct line {
	char name[NAME];
	unsigned colour, n;
	bool dashed;
	struct point at[POINTS_MOST];
};

struct lines {
	struct line line[LINES_MOST];
	unsigned n, colours;
	double least_x, most_x, least, most;
};

/* The line of this name, which there may not be yet; NULL: there are too many. */
static struct line *line_of(struct lines *l, const char *name, bool dashed)
{
	unsigned colour = l->colours;
	for (unsigned i = 0; i < l->n; i++) {
		if (strcmp(l->line[i].name, name) != 0)
			continue;
		if (l->line[i].dashed == dashed)
			return &l->line[i];
		colour = l->line[i].colour;
	}
	if (l->n == LINES_MOST)
		return NULL;
	struct line *new = &l->line[l->n++];
	*new = (struct line){ .colour = colour, .dashed = dashed };
	snprintf(new->name, NAME, "%s", name);
	l->colours += colour == l->colours;
	return new;
}

static void point_add(struct lines *l, const struct figure *f, const struct data *d,
		      const struct record *r, unsigned k)
{
	char name[NAME];
	struct point p = { data_number(d, r, f->x), figure_value(f, d, r, f->y[k]), NAN, NAN };
	if (!(p.x > 0) || isnan(p.y))
		return;
	if (strcmp(f->y[k], "seconds") == 0) {
		p.low = figure_value(f, d, r, "low");
		p.high = figure_value(f, d, r, "high");
	}
	record_name(f, d, r, name);
	struct line *line = line_of(l, name, k > 0);
	if (line && line->n < POINTS_MOST)
		line->at[line->n++] = p;
}

static int by_x(const void *a, const void *b)
{
	double x = ((const struct point *)a)->x, y = ((const struct point *)b)->x;
	return (x > y) - (x < y);
}

/* Times become speed-ups over the fewest ranks. */
static void line_speed_up(struct line *line)
{
	double base = line->at[0].x * line->at[0].y;
	for (unsigned i = 0; i < line->n; i++) {
		struct point *p = &line->at[i];
		*p = (struct point){ p->x, base / p->y, base / p->high, base / p->low };
	}
}

static void lines_make(struct lines *l, const struct figure *f, const struct data *d)
{
	double ranks = most_ranks(f, d);
	*l = (struct lines){ .least_x = INFINITY, .least = INFINITY };
	for (unsigned i = 0; i < d->records; i++) {
		const struct record *r = &d->record[i];
		double has = data_number(d, r, "ranks");
		if (!record_shown(f, d, r) ||
		    (strcmp(f->x, "ranks") != 0 && !isnan(has) && has < ranks))
			continue;
		for (unsigned k = 0; k < 2 && f->y[k]; k++)
			point_add(l, f, d, r, k);
	}
	for (unsigned i = 0; i < l->n; i++) {
		struct line *line = &l->line[i];
		qsort(line->at, line->n, sizeof *line->at, by_x);
		if (f->as == FIGURE_SPEEDUP)
			line_speed_up(line);
		for (unsigned p = 0; p < line->n; p++) {
			l->least_x = fmin(l->least_x, line->at[p].x);
			l->most_x = fmax(l->most_x, line->at[p].x);
			l->least = fmin(l->least, line->at[p].y);
			l->most = fmax(l->most, line->at[p].y);
		}
	}
	if (f->as == FIGURE_SPEEDUP)
		l->most = fmax(l->most, l->most_x); /* the ideal one */
}

struct axes {
	struct scale x, y;
};

/* The least x of all points beyond this one. */
static double next_x(const struct lines *l, double beyond)
{
	double next = INFINITY;
	for (unsigned i = 0; i < l->n; i++)
		for (unsigned p = 0; p < l->line[i].n; p++)
			if (l->line[i].at[p].x > beyond)
				next = fmin(next, l->line[i].at[p].x);
	return next;
}

static void axes_draw(const struct axes *a, const struct lines *l, const struct figure *f, FILE *to)
{
	double mark[POINTS_MOST], before = -100;
	char cell[CELL];
	unsigned n = scale_marks(&a->y, mark, POINTS_MOST);
	for (unsigned i = 0; i < n; i++) {
		double y = TOP + HIGH - scale_at(&a->y, mark[i]);
		fprintf(to, "<path class=\"rule\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, WIDE);
		svg_text(to, "faint end", LEFT - 8, y + 4, "%s", number_short(cell, mark[i]));
	}
	for (double x = 0; (x = next_x(l, x)) < INFINITY;) {
		double at = LEFT + scale_at(&a->x, x);
		if (at - before < 34)
			continue;
		svg_text(to, "faint middle", at, TOP + HIGH + 18, "%s", number_short(cell, x));
		before = at;
	}
	svg_text(to, "faint middle", LEFT + WIDE / 2.0, TOP + HIGH + 38, "%s", f->x_name);
	fprintf(to,
		"<text class=\"faint middle\" transform=\"translate(14 %d) "
		"rotate(-90)\">%s</text>\n",
		TOP + HIGH / 2, f->unit);
}

static void line_draw(const struct axes *a, const struct line *line, const struct figure *f,
		      FILE *to)
{
	char class[24], name[2 * NAME];
	snprintf(class, sizeof class, "c%u", line->colour % COLOURS);
	html_cell(name, sizeof name, line->name);
	fprintf(to, "<polyline class=\"%s%s\" points=\"", class, line->dashed ? " dashed" : "");
	for (unsigned i = 0; i < line->n; i++)
		fprintf(to, "%.1f,%.1f ", LEFT + scale_at(&a->x, line->at[i].x),
			TOP + HIGH - scale_at(&a->y, line->at[i].y));
	fputs("\"/>\n", to);
	for (unsigned i = 0; i < line->n && !line->dashed; i++) {
		const struct point *p = &line->at[i];
		double x = LEFT + scale_at(&a->x, p->x);
		if (isfinite(p->low) && isfinite(p->high))
			fprintf(to, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>\n", class, x,
				TOP + HIGH - scale_at(&a->y, p->low),
				TOP + HIGH - scale_at(&a->y, p->high));
		svg_dot(to, class, x, TOP + HIGH - scale_at(&a->y, p->y), 3.5, "%s, %s %g: %.4g %s",
			name, f->x_name, p->x, p->y, f->unit);
	}
}

static void key_write(FILE *to, unsigned colour, const char *name)
{
	char cell[2 * NAME];
	fprintf(to, "<li><i class=\"c%u\"></i>%s</li>", colour % COLOURS,
		html_cell(cell, sizeof cell, name));
}

static bool lines_write(const struct figure *f, const struct data *d, const char *caption, FILE *to)
{
	static struct lines l;
	bool dashed = false;
	lines_make(&l, f, d);
	if (!l.n)
		return false;
	double middle = sqrt(l.least_x * l.most_x);
	struct axes a = { { l.least_x, l.most_x, WIDE, true },
			  scale_make(l.least, l.most, f->log, HIGH) };
	if (l.least_x == l.most_x)
		a.x = (struct scale){ middle / 2, middle * 2, WIDE, true };
	svg_open(to, WIDTH, TOP + HIGH + 48, caption);
	axes_draw(&a, &l, f, to);
	if (f->as == FIGURE_SPEEDUP)
		fprintf(to, "<path class=\"ideal\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
			LEFT + scale_at(&a.x, l.least_x), TOP + HIGH - scale_at(&a.y, l.least_x),
			LEFT + scale_at(&a.x, l.most_x), TOP + HIGH - scale_at(&a.y, l.most_x));
	for (unsigned i = 0; i < l.n; i++)
		line_draw(&a, &l.line[i], f, to);
	svg_end(to);
	fputs("<ul class=\"key\">", to);
	for (unsigned i = 0; i < l.n; i++)
		if (!l.line[i].dashed)
			key_write(to, l.line[i].colour, l.line[i].name);
		else
			dashed = true;
	if (f->as == FIGURE_SPEEDUP)
		fputs("<li>dotted: ideal</li>", to);
	if (dashed)
		fprintf(to, "<li>whole: %s, dashed: %s</li>", f->y_name[0], f->y_name[1]);
	fputs("</ul>\n", to);
	return true;
}

/* -- Bars --------------------------------------------------------------------------------- */

struct group {
	char name[NAME];
	double value[FIGURE_KEYS];
};

struct groups {
	struct group group[GROUPS_MOST];
	unsigned n, keys;
	const char *key[FIGURE_KEYS];
	double least, most;
};

static struct group *group_of(struct groups *g, const struct figure *f, const char *name)
{
	for (unsigned i = 0; f->last && i < g->n; i++)
		if (strcmp(g->group[i].name, name) == 0)
			return &g->group[i];
	if (g->n == GROUPS_MOST)
		return NULL;
	snprintf(g->group[g->n].name, NAME, "%s", name);
	return &g->group[g->n++];
}

static double told_value(const struct figure *f, const char *name)
{
	for (unsigned i = 0; i < FIGURE_TOLD && f->told[i].name; i++)
		if (strcmp(f->told[i].name, name) == 0)
			return f->told[i].value;
	return NAN;
}

static void group_add(struct groups *g, const struct figure *f, const struct data *d,
		      const struct record *r)
{
	char name[NAME];
	double all = 0;
	record_name(f, d, r, name);
	struct group *group = isnan(figure_value(f, d, r, f->y[0])) ? NULL : group_of(g, f, name);
	if (!group)
		return;
	for (unsigned k = 0; k < g->keys; k++) {
		double v = f->y[k] ? figure_value(f, d, r, f->y[k]) : told_value(f, name);
		group->value[k] = v;
		g->least = fmin(g->least, v);
		g->most = fmax(g->most, v);
		all += k + 1 < g->keys && !isnan(v) ? v : 0;
	}
	if (f->kind == FIGURE_STACK)
		g->most = fmax(g->most, all);
}

static void groups_make(struct groups *g, const struct figure *f, const struct data *d)
{
	*g = (struct groups){ .least = INFINITY };
	while (g->keys < FIGURE_KEYS && f->y[g->keys]) {
		g->key[g->keys] = f->y_name[g->keys];
		g->keys++;
	}
	if (f->told_name && g->keys < FIGURE_KEYS)
		g->key[g->keys++] = f->told_name;
	for (unsigned i = 0; i < d->records; i++)
		if (record_shown(f, d, &d->record[i]))
			group_add(g, f, d, &d->record[i]);
}

static void bar_draw(const struct figure *f, const struct groups *g, unsigned k, double x, double y,
		     double wide, double v, const char *name, FILE *to)
{
	char colour[24], cell[2 * NAME];
	snprintf(colour, sizeof colour, "var(--c%u)", k % COLOURS);
	svg_bar(to, colour, x, y, wide, BAR - 1, "%s, %s: %.4g %s",
		html_cell(cell, sizeof cell, name), g->key[k], v, f->unit);
}

/* The bars of a group beside each other. Returns where the next may begin. */
static double group_bars(const struct figure *f, const struct groups *g, const struct group *group,
			 const struct scale *s, double y, FILE *to)
{
	char cell[CELL];
	for (unsigned k = 0; k < g->keys; k++) {
		double v = group->value[k], wide = isnan(v) ? 0 : fmax(scale_at(s, v), 1.5);
		if (isnan(v))
			continue;
		bar_draw(f, g, k, BAR_LEFT, y, wide, v, group->name, to);
		svg_text(to, "faint", BAR_LEFT + wide + 6, y + 11.5, "%s",
			 value_text(cell, v, f->kind == FIGURE_STACK ? "" : f->unit));
		y += BAR;
	}
	return y;
}

/* All but the last as one bar, the last beside it. */
static double group_stack(const struct figure *f, const struct groups *g, const struct group *group,
			  const struct scale *s, double y, FILE *to)
{
	struct group beside = *group;
	double x = BAR_LEFT, sum = 0;
	char cell[CELL];
	for (unsigned k = 0; k + 1 < g->keys; k++) {
		double v = group->value[k];
		beside.value[k] = NAN;
		if (isnan(v) || v <= 0)
			continue;
		bar_draw(f, g, k, x, y, scale_at(s, v), v, group->name, to);
		x += scale_at(s, v);
		sum += v;
	}
	svg_text(to, "faint", x + 6, y + 11.5, "%s", number_short(cell, sum));
	return group_bars(f, g, &beside, s, y + BAR, to);
}

static unsigned groups_bars(const struct groups *g, const struct figure *f)
{
	unsigned n = 0;
	for (unsigned i = 0; i < g->n; i++)
		for (unsigned k = 0; k < g->keys; k++)
			n += !isnan(g->group[i].value[k]);
	return f->kind == FIGURE_STACK ? 2 * g->n : n;
}

static bool bars_write(const struct figure *f, const struct data *d, const char *caption, FILE *to)
{
	static struct groups g;
	char name[2 * NAME];
	groups_make(&g, f, d);
	if (!g.n)
		return false;
	/* A logarithmic bar has a length only beside others: it begins well below the least. */
	struct scale s = scale_make(g.least / 3, g.most, f->log, BAR_WIDE);
	double y = TOP;
	svg_open(to, WIDTH, TOP + (int)(groups_bars(&g, f) * BAR + g.n * BAR_APART), caption);
	for (unsigned i = 0; i < g.n; i++) {
		svg_text(to, "end", BAR_LEFT - 8, y + 11.5, "%s",
			 html_cell(name, sizeof name, g.group[i].name));
		y = (f->kind == FIGURE_STACK ? group_stack : group_bars)(f, &g, &g.group[i], &s, y,
									 to) +
		    BAR_APART;
	}
	svg_end(to);
	fputs("<ul class=\"key\">", to);
	for (unsigned k = 0; k < g.keys; k++)
		key_write(to, k, g.key[k]);
	fprintf(to, "</ul><p class=\"axis\">%s%s</p>\n", f->unit,
		f->log ? ", logarithmic: lengths compare by their difference" : "");
	return true;
}

bool plot_write(const struct figure *f, const struct data *d, const char *caption, FILE *to)
{
	return (f->kind == FIGURE_LINES ? lines_write : bars_write)(f, d, caption, to);
}
