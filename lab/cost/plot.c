/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four panels, each with its own scale: finite and indefinite sequences of 16 and of 1,024 words.
 * In each, the source and the destination, CMAM beside Tern. Colours of text and axes follow the
 * reader's light or dark background; those of the features are readable on both.
 */

#include <stdio.h>
#include <string.h>

#include "lab/cost/study.h"
#include "tools/common/svg.h"

enum {
	WIDTH = 960,
	HEIGHT = 430,
	PANELS = 4,
	PANEL = 232, /* from one to the next */
	LEFT = 20,
	TOP = 96, /* of the highest bar */
	FLOOR = 330,
	BAR = 40,
};

static const struct {
	enum cost_form form;
	unsigned words;
	const char *operation, *title;
} panels[PANELS] = {
	{ COST_FINITE, 16, "block-16-by-4", "finite sequence, 16 words" },
	{ COST_STREAM, 16, "ordered-16-by-4", "indefinite, 16 words" },
	{ COST_FINITE, 1024, "block-1024-by-4", "finite sequence, 1,024 words" },
	{ COST_STREAM, 1024, "ordered-1024-by-4", "indefinite, 1,024 words" },
};

static const char *const colour[COST_FEATURES] = {
	[COST_BASE] = "#4e79a7",       [COST_BUFFER] = "#f28e2b", [COST_ORDER] = "#59a14f",
	[COST_FAULT] = "#e15759",      [COST_FLOW] = "#b07aa1",   [COST_PROTECTION] = "#9c755f",
	[COST_STATISTICS] = "#9a9a9a",
};

static const char *const legend[COST_FEATURES] = {
	[COST_BASE] = "base",
	[COST_BUFFER] = "buffers",
	[COST_ORDER] = "order",
	[COST_FAULT] = "fault tolerance",
	[COST_FLOW] = "flow control",
	[COST_PROTECTION] = "protection",
	[COST_STATISTICS] = "statistics",
};

static int64_t of(const struct cost_tally *t, int side, int feature)
{
	return cost_sum(t, (struct cost_cut){ side, feature, -1, -1 });
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* 12345 as 12,345. */
static const char *grouped(char *text, size_t len, int64_t n)
{
	if (n >= 1000)
		snprintf(text, len, "%lld,%03lld", (long long)n / 1000, (long long)n % 1000);
	else
		snprintf(text, len, "%lld", (long long)n);
	return text;
}

static void bar(FILE *to, double x, const struct cost_tally *t, int side, double scale,
		const char *name)
{
	double y = FLOOR;
	char total[32];
	for (int f = 0; f < COST_FEATURES; f++) {
		double height = scale * (double)of(t, side, f);
		if (height == 0)
			continue;
		y -= height;
		svg_bar(to, colour[f], x, y, BAR, height, "%s, %s: %lld", name, legend[f],
			(long long)of(t, side, f));
	}
	svg_text(to, "figure", x + BAR / 2.0, y - 5, "%s",
		 grouped(total, sizeof total, of(t, side, -1)));
	svg_text(to, "name", x + BAR / 2.0, FLOOR + 15, "%s", name);
}

static void panel(FILE *to, const struct cost_study *s, int i)
{
	const struct cost_tally *paper = paper_sequence(panels[i].form, panels[i].words);
	const struct cost_result *ours = study_find(s, panels[i].operation);
	int64_t most = 1;
	double x = LEFT + (double)i * PANEL;
	for (int side = 0; side < COST_SIDES; side++)
		most = larger(most, larger(of(paper, side, -1), of(&ours->steady, side, -1)));
	double scale = (double)(FLOOR - TOP) / (double)most;
	svg_text(to, "title middle", x + 108, 66, "%s", panels[i].title);
	for (int side = 0; side < COST_SIDES; side++) {
		double left = x + 12 + side * 106;
		bar(to, left, paper, side, scale, "CMAM");
		bar(to, left + BAR + 6, &ours->steady, side, scale, "Tern");
		svg_text(to, "side", left + BAR + 3, FLOOR + 33, "%s", cost_side_name[side]);
	}
	fprintf(to, "<path class=\"axis\" d=\"M%.1f %dh216\"/>\n", x, FLOOR);
	svg_text(to, "how", x + 108, FLOOR + 51, "Tern: %s", ours->op->what);
}

static void key(FILE *to)
{
	double x = LEFT + 110;
	for (int f = 0; f < COST_FEATURES; f++) {
		svg_bar(to, colour[f], x, HEIGHT - 24, 12, 12, "%s", legend[f]);
		svg_text(to, "", x + 17, HEIGHT - 14, "%s", legend[f]);
		x += 46 + 6.5 * (double)strlen(legend[f]); /* letters are about that wide */
	}
}

static const char style[] =
	"  .head { font-size: 17px; font-weight: 600 } .figure { font-weight: 600; text-anchor: "
	"middle }\n"
	"  .name, .side { font-size: 11px; text-anchor: middle } .side { font-weight: 600 }\n"
	"  .how { font-size: 10px; text-anchor: middle; fill: var(--faint) }\n"
	"  .note { font-size: 11px; text-anchor: end; fill: var(--faint) } .axis { stroke: "
	"#8c959f }\n";

void cost_plot_write(const struct cost_study *s, FILE *to)
{
	svg_begin(to, WIDTH, HEIGHT,
		  "Instructions of a message by feature: CMAM on the CM-5 and Tern", "", "", style);
	svg_text(to, "head", LEFT, 30, "Where the instructions of a message go");
	svg_text(to, "note", WIDTH - LEFT, 30,
		 "CMAM on the CM-5, 1994; Tern on shared memory; words of 32 bits; a scale for "
		 "each panel");
	for (int i = 0; i < PANELS; i++)
		panel(to, s, i);
	key(to);
	svg_end(to);
}
