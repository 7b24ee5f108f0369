/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --plot`: a chart for each test, with its sizes across and its figure upward, both on
 * logarithmic scales, so that what grows with the size is a straight line. Limits are dashed.
 */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "lab/perf/perf.h"
#include "tools/common/chart.h"

enum { COLUMNS = 4 };

static struct chart drawn[PERF_TESTS_MOST];
static unsigned charts;

static void line_add(struct chart *c, const char *name, enum chart_style style, uint32_t size,
		     double value)
{
	if (!isnan(value))
		chart_point(chart_series(c, name, style),
			    (struct chart_point){ .x = size, .y = value });
}

void plot_add(const struct record *r)
{
	const struct test *t = r->test;
	if (!charts || strcmp(drawn[charts - 1].title, t->name) != 0)
		charts++;
	struct chart *c = &drawn[charts - 1];
	c->title = t->name;
	c->x = (struct chart_axis){ .name = t->size_name, .log = true };
	c->y = (struct chart_axis){ .unit = t->unit, .log = true };
	line_add(c, "Tern", CHART_WHOLE, r->size, r->value);
	line_add(c, "limit", CHART_DASHED, r->size, r->limit);
}

int plot_write(const void *nothing, FILE *to)
{
	struct chart_sheet sheet = { .label = "Figures of tern perf, and their limits, by size",
				     .chart = drawn,
				     .charts = charts,
				     .columns = COLUMNS,
				     .wide = 290,
				     .high = 250 };
	char head[64];
	(void)nothing;
	for (unsigned i = 0; i < charts; i++)
		sheet.key = drawn[i].n > drawn[sheet.key].n ? i : sheet.key;
	snprintf(head, sizeof head, "tern perf, by the size of each test; %u cores", cpu_count());
	sheet.head = head;
	return charts ? chart_write(&sheet, to) : 0;
}
