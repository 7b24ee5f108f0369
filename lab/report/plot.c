/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A picture of records: chooses them and names lines, groups and bars. Whiskers are the middle half
 * of the rounds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/report/report.h"
#include "tools/common/chart.h"
#include "tools/common/svg.h"

enum { WIDTH = 560, HIGH = 316, NAME = CHART_LABEL };

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
	if (r->head || !data_text(d, r, figure_by(f)))
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
	const char *by = data_text(d, r, figure_by(f));
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

/* -- Series ------------------------------------------------------------------------------- */

static void point_add(struct chart *c, const struct figure *f, const struct data *d,
		      const struct record *r, unsigned k)
{
	char name[NAME];
	struct chart_point p = { .x = data_number(d, r, f->x),
				 .y = figure_value(f, d, r, f->y[k]) };
	if (!(p.x > 0) || isnan(p.y))
		return;
	if (strcmp(f->y[k], "seconds") == 0) {
		p.low = figure_value(f, d, r, "low");
		p.high = figure_value(f, d, r, "high");
	}
	record_name(f, d, r, name);
	chart_point(chart_series(c, name, k > 0 ? CHART_DASHED : CHART_WHOLE), p);
}

static int by_x(const void *a, const void *b)
{
	double x = ((const struct chart_point *)a)->x, y = ((const struct chart_point *)b)->x;
	return (x > y) - (x < y);
}

/* Times become speed-ups over the fewest ranks. */
static void speed_up(struct chart_point *at, unsigned n)
{
	double base = at[0].x * at[0].y;
	for (unsigned i = 0; i < n; i++)
		at[i] = (struct chart_point){ .x = at[i].x,
					      .y = base / at[i].y,
					      .low = base / at[i].high,
					      .high = base / at[i].low };
}

/* From the fewest ranks to the most. */
static void ideal_add(struct chart *c)
{
	double least = INFINITY, most = 0;
	for (unsigned i = 0; i < c->n; i++) {
		const struct chart_series *s = &c->series[i];
		least = fmin(least, s->at[0].x);
		most = fmax(most, s->at[s->n - 1].x);
	}
	struct chart_series *s = chart_series(c, "ideal", CHART_IDEAL);
	chart_point(s, (struct chart_point){ .x = least, .y = least });
	chart_point(s, (struct chart_point){ .x = most, .y = most });
}

static void lines_make(struct chart *c, const struct figure *f, const struct data *d)
{
	double ranks = most_ranks(f, d);
	for (unsigned i = 0; i < d->records; i++) {
		const struct record *r = &d->record[i];
		double has = data_number(d, r, "ranks");
		if (!record_shown(f, d, r) ||
		    (strcmp(f->x, "ranks") != 0 && !isnan(has) && has < ranks))
			continue;
		for (unsigned k = 0; k < 2 && f->y[k]; k++)
			point_add(c, f, d, r, k);
	}
	for (unsigned i = 0; i < c->n; i++) {
		struct chart_series *s = &c->series[i];
		qsort(s->at, s->n, sizeof s->at[0], by_x);
		if (f->as == FIGURE_SPEEDUP)
			speed_up(s->at, s->n);
	}
	if (c->n && f->as == FIGURE_SPEEDUP)
		ideal_add(c);
}

/* -- Bars --------------------------------------------------------------------------------- */

static double told_value(const struct figure *f, const char *name)
{
	for (unsigned i = 0; i < FIGURE_TOLD && f->told[i].name; i++)
		if (strcmp(f->told[i].name, name) == 0)
			return f->told[i].value;
	return NAN;
}

/* The group of a name, which there may not be yet; CHART_POINTS: there are too many. */
static unsigned group_of(struct chart *c, const struct figure *f, const char *name)
{
	for (unsigned i = 0; f->last && i < c->places; i++)
		if (strcmp(c->place[i], name) == 0)
			return i;
	return chart_place(c, name);
}

static void group_add(struct chart *c, const struct figure *f, const struct data *d,
		      const struct record *r)
{
	char name[NAME];
	record_name(f, d, r, name);
	unsigned g = isnan(figure_value(f, d, r, f->y[0])) ? CHART_POINTS : group_of(c, f, name);
	for (unsigned k = 0; k < c->n && g < CHART_POINTS; k++) {
		c->series[k].at[g] = (struct chart_point){
			.x = g, .y = f->y[k] ? figure_value(f, d, r, f->y[k]) : told_value(f, name)
		};
		c->series[k].n = c->places;
	}
}

static void bars_make(struct chart *c, const struct figure *f, const struct data *d)
{
	while (c->n < FIGURE_KEYS && f->y[c->n])
		chart_series(c, f->y_name[c->n], CHART_WHOLE);
	if (f->told_name && c->n < FIGURE_KEYS)
		chart_series(c, f->told_name, CHART_WHOLE);
	if (f->kind == FIGURE_STACK && c->n)
		c->series[c->n - 1].style = CHART_BESIDE;
	for (unsigned i = 0; i < d->records; i++)
		if (record_shown(f, d, &d->record[i]))
			group_add(c, f, d, &d->record[i]);
}

/* -- The picture -------------------------------------------------------------------------- */

static void key_write(const struct chart *c, const struct figure *f, FILE *to)
{
	bool dashed = false;
	fputs("<ul class=\"key\">", to);
	for (unsigned i = 0; i < c->n; i++) {
		dashed |= c->series[i].style == CHART_DASHED;
		if (c->series[i].style == CHART_DASHED || c->series[i].style == CHART_IDEAL)
			continue;
		fprintf(to, "<li><i class=\"c%u\"></i>", c->series[i].colour % CHART_COLOURS);
		xml_write(to, c->series[i].name);
		fputs("</li>", to);
	}
	if (f->as == FIGURE_SPEEDUP)
		fputs("<li>dotted: ideal</li>", to);
	if (dashed)
		fprintf(to, "<li>whole: %s, dashed: %s</li>", f->y_name[0], f->y_name[1]);
	fputs("</ul>\n", to);
}

bool plot_write(const struct figure *f, const struct data *d, const char *caption, FILE *to)
{
	static const struct chart_kind *const kinds[] = { [FIGURE_LINES] = &chart_lines,
							  [FIGURE_BARS] = &chart_bars,
							  [FIGURE_STACK] = &chart_stack };
	static struct chart c; /* large */
	c = (struct chart){ .kind = kinds[f->kind],
			    .x = { .name = f->x_name ? f->x_name : f->x, .log = true },
			    .y = { .unit = f->unit, .log = f->log } };
	(f->kind == FIGURE_LINES ? lines_make : bars_make)(&c, f, d);
	if (f->kind == FIGURE_LINES ? !c.n : !c.places)
		return false;
	double high = f->kind == FIGURE_LINES ? HIGH : chart_high(&c) + 18;
	svg_open(to, WIDTH, (int)high, caption);
	chart_draw(&c, (struct chart_room){ 0, 14, WIDTH, high - 14 }, to);
	svg_end(to);
	key_write(&c, f, to);
	if (f->kind != FIGURE_LINES)
		fprintf(to, "<p class=\"axis\">%s%s</p>\n", f->unit,
			f->log ? ", logarithmic: lengths compare by their difference" : "");
	return true;
}
