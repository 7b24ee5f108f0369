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

enum { CHARTS = 12, COLUMNS = 3 };

static struct chart chart[CHARTS];

static struct chart *chart_named(struct chart_sheet *s, const char *name)
{
	for (unsigned i = 0; i < s->charts; i++)
		if (strcmp(chart[i].title, name) == 0)
			return &chart[i];
	if (s->charts == CHARTS)
		return NULL;
	chart[s->charts].title = name;
	return &chart[s->charts++];
}

/* A line has one colour in all charts, and stands once in the key, which is that of the first. */
static bool point_add(struct chart_sheet *s, const struct field *f)
{
	struct chart *c = f[0].value ? chart_named(s, f[0].value) : NULL;
	double x = data_value(&f[2]), y = data_value(&f[3]);
	if (!c || !f[1].value)
		return false;
	enum chart_style style = strcmp(f[1].value, "ideal") ? CHART_WHOLE : CHART_IDEAL;
	struct chart_series *first = chart_series(&chart[0], f[1].value, style);
	struct chart_series *line = chart_series(c, f[1].value, style);
	c->x = (struct chart_axis){ .name = f[2].key, .log = true };
	c->y = (struct chart_axis){ .name = f[3].key, .log = true };
	if (!first || !line)
		return false;
	line->colour = first->colour;
	return isnan(x) || isnan(y) || chart_point(line, (struct chart_point){ .x = x, .y = y });
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
	if (!rc)
		rc = s.charts ? chart_write(&s, stdout) : 0;
	data_free(&d);
	return rc;
}
