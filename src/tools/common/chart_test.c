/* SPDX-License-Identifier: BSD-3-Clause */
/* A kind of chart from outside is a struct with a function, and everything else draws it. */
#include "tools/common/chart.h"

#include <stdlib.h>
#include <string.h>

#include "lib/check.h"
#include "tools/common/svg.h"

/* A dot for each point, as large as its value. */
static void dots_draw(const struct chart *c, struct chart_room room, FILE *to)
{
	for (unsigned i = 0; i < c->series[0].n; i++)
		svg_dot(to, "c0", room.left, room.top, c->series[0].at[i].y, "dot %u", i);
}

static const struct chart_kind dots = { .before = 30, .draw = dots_draw };

static struct chart chart[2];

/* What is written of a sheet of these charts. */
static char *written(unsigned charts)
{
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	const struct chart_sheet sheet = { .label = "toys",
					   .chart = chart,
					   .charts = charts,
					   .columns = 2,
					   .wide = 200,
					   .high = 100 };
	CHECK_IS(chart_write(&sheet, to), 0);
	fclose(to);
	return text;
}

static void chart_fill(struct chart *c, const char *title)
{
	*c = (struct chart){ .title = title, .kind = c == &chart[1] ? &dots : NULL };
	for (unsigned i = 1; i < 3; i++) {
		chart_point(chart_series(c, "mine", CHART_WHOLE),
			    (struct chart_point){ .x = i, .y = i });
		chart_point(chart_series(c, "other", CHART_WHOLE),
			    (struct chart_point){ .x = i, .y = i });
	}
}

TEST(a_kind_from_outside_stands_beside_those_of_the_tree)
{
	chart_fill(&chart[0], "lines");
	chart_fill(&chart[1], "toys");
	char *text = written(2);
	CHECK(strstr(text, ">lines<") && strstr(text, ">toys<"));
	CHECK(strstr(text, "mine,  1:") && strstr(text, "cx=\"242.0\""));
	CHECK(strstr(text, "<title>dot 1</title>") && strstr(text, "r=\"2\""));
	CHECK(strstr(text, ">other</text>"));
	free(text);
}

TEST(a_series_is_found_by_name_and_style_and_has_the_colour_of_its_name)
{
	struct chart *c = &chart[0];
	*c = (struct chart){ .title = "lines" };
	struct chart_series *whole = chart_series(c, "a", CHART_WHOLE),
			    *other = chart_series(c, "b", CHART_WHOLE),
			    *dashed = chart_series(c, "a", CHART_DASHED);
	CHECK(whole == chart_series(c, "a", CHART_WHOLE) && dashed != whole);
	CHECK_IS(dashed->colour, whole->colour);
	CHECK(other->colour != whole->colour);
	while (chart_point(whole, (struct chart_point){ 1, 1, 0, 0 }))
		;
	CHECK_IS(whole->n, CHART_POINTS);
}
