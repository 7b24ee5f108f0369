/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern report --points FILE`: a picture of what a script has measured. The file is CSV, with a row
 * for each point: the chart that it is in, its line, and where it is, "chart,line,x,y". Both axes
 * are logarithmic; their names are those of the last two columns.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "lab/report/data.h"
#include "lab/report/report.h"
#include "tools/common/chart.h"

enum { CHARTS = 12, LINES = 8, POINTS = 16, COLUMNS = 3 };

static struct panel {
	struct chart_series series[LINES];
	struct chart_point at[LINES][POINTS];
} panel[CHARTS];
static struct chart chart[CHARTS];
static const char *line[LINES];
static unsigned lines;

static struct chart *chart_named(struct chart_sheet *s, const char *name)
{
	for (unsigned i = 0; i < s->charts; i++)
		if (strcmp(chart[i].title, name) == 0)
			return &chart[i];
	if (s->charts == CHARTS)
		return NULL;
	chart[s->charts] = (struct chart){ .title = name, .series = panel[s->charts].series };
	return &chart[s->charts++];
}

/* The same line in all charts, for it has one colour and stands once in the key; LINES: too many.
 */
static unsigned line_named(const char *name)
{
	unsigned i = 0;
	while (i < lines && strcmp(line[i], name) != 0)
		i++;
	if (i == lines && i < LINES)
		line[lines++] = name;
	return i;
}

static bool point_add(struct chart_sheet *s, const struct field *f)
{
	struct chart *c = f[0].value ? chart_named(s, f[0].value) : NULL;
	unsigned i = f[1].value ? line_named(f[1].value) : LINES;
	double x = data_value(&f[2]), y = data_value(&f[3]);
	if (!c || i == LINES)
		return false;
	struct panel *p = &panel[c - chart];
	c->x = (struct chart_axis){ .name = f[2].key, .log = true };
	c->y = (struct chart_axis){ .name = f[3].key, .log = true };
	if (isnan(x) || isnan(y))
		return true;
	p->at[i][p->series[i].n++] = (struct chart_point){ .x = x, .y = y };
	return p->series[i].n < POINTS;
}

static void lines_name(unsigned charts)
{
	for (unsigned c = 0; c < charts; c++) {
		chart[c].n = lines;
		for (unsigned i = 0; i < lines; i++)
			panel[c].series[i] = (struct chart_series){
				.name = line[i],
				.colour = i,
				.style = strcmp(line[i], "ideal") ? CHART_WHOLE : CHART_IDEAL,
				.at = panel[c].at[i],
				.n = panel[c].series[i].n
			};
	}
}

int points_plot(const char *path)
{
	struct chart_sheet s = { .label = "Points by line and chart",
				 .chart = chart,
				 .columns = COLUMNS,
				 .wide = 330,
				 .high = 270 };
	struct data d = { 0 };
	int rc = data_add_csv(&d, path);
	for (unsigned i = 0; i < d.records && !rc; i++)
		if (d.record[i].fields != 4 || !point_add(&s, &d.field[d.record[i].first]))
			rc = error_set(
				-EINVAL,
				"reading %s: row %u is no chart, line, x and y, or one of too "
				"many",
				path, i + 1);
	lines_name(s.charts);
	if (!rc)
		rc = s.charts ? chart_write(&s, stdout) : 0;
	data_free(&d);
	return rc;
}
