/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paper's figure 6 as a picture: four charts of stacked bars, source and destination of CMAM
 * beside those of Tern, a colour for each feature.
 */
#include <stdio.h>

#include "lab/cost/study.h"
#include "tools/common/chart.h"

enum { CHARTS = 4, BARS = 2 * COST_SIDES };

static const struct {
	enum cost_form form;
	unsigned words;
	const char *operation, *title;
} charts[CHARTS] = {
	{ COST_FINITE, 16, "block-16-by-4", "Finite sequence, 16 words" },
	{ COST_STREAM, 16, "ordered-16-by-4", "Indefinite sequence, 16 words" },
	{ COST_FINITE, 1024, "block-1024-by-4", "Finite sequence, 1,024 words" },
	{ COST_STREAM, 1024, "ordered-1024-by-4", "Indefinite sequence, 1,024 words" },
};

/* CMAM's source and Tern's, then both destinations. */
static const char *const bars[BARS] = { "CMAM, source", "Tern, source", "CMAM, destination",
					"Tern, destination" };

static const struct cost_tally *tally(const struct cost_study *s, int chart, int bar)
{
	return bar % 2 ? &study_find(s, charts[chart].operation)->steady
		       : paper_sequence(charts[chart].form, charts[chart].words);
}

static double part(const struct cost_study *s, int chart, int bar, int feature)
{
	return (double)cost_sum(tally(s, chart, bar),
				(struct cost_cut){ bar / 2, feature, -1, -1 });
}

/* Whether any chart has instructions for the feature. */
static bool feature_shown(const struct cost_study *s, int feature)
{
	for (int i = 0; i < CHARTS * BARS; i++)
		if (part(s, i / BARS, i % BARS, feature) > 0)
			return true;
	return false;
}

static void stacks_make(struct chart *c, const struct cost_study *s, int chart)
{
	c->title = charts[chart].title;
	c->remark = study_find(s, charts[chart].operation)->op->what;
	c->kind = &chart_stack;
	for (int i = 0; i < BARS; i++)
		chart_place(c, bars[i]);
	for (int f = 0; f < COST_FEATURES; f++) {
		if (!feature_shown(s, f))
			continue;
		struct chart_series *stack = chart_series(c, cost_feature_title[f], CHART_WHOLE);
		stack->colour = (unsigned)f;
		for (int i = 0; i < BARS; i++)
			chart_point(stack,
				    (struct chart_point){ .x = i, .y = part(s, chart, i, f) });
	}
}

int cost_plot_write(const void *study, FILE *to)
{
	const struct cost_study *s = study;
	static struct chart chart[CHARTS]; /* large */
	for (int i = 0; i < CHARTS; i++)
		stacks_make(&chart[i], s, i);
	return chart_write(
		&(struct chart_sheet){
			.label = "Instructions of a message by feature: CMAM on the CM-5 and Tern",
			.head = "Instructions of a message by feature: CMAM on the CM-5, 1994, and "
				"Tern on shared memory; words of 32 bits",
			.chart = chart,
			.charts = CHARTS,
			.columns = 2,
			.wide = 470,
			.high = 160 },
		to);
}
