/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four panels, each with its own scale: finite sequences and streams of 16 and of 1,024 words. In
 * each, the source and the destination, CMAM beside Tern. Colours of text and axes follow
 * the reader's light or dark background; those of the features are readable on both.
 */
#include "tools/cost/show.h"

#include <stdio.h>
#include <string.h>

#include "tools/cost/paper.h"

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
	const char *title;
} panels[PANELS] = {
	{ COST_FINITE, 16, "finite sequence, 16 words" },
	{ COST_STREAM, 16, "stream, 16 words" },
	{ COST_FINITE, 1024, "finite sequence, 1,024 words" },
	{ COST_STREAM, 1024, "stream, 1,024 words" },
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
static void print_grouped(FILE *to, int64_t n)
{
	if (n >= 1000)
		fprintf(to, "%lld,%03lld", (long long)n / 1000, (long long)n % 1000);
	else
		fprintf(to, "%lld", (long long)n);
}

static void bar(FILE *to, double x, const struct cost_tally *t, int side, double scale, const char *name)
{
	double y = FLOOR;
	for (int f = 0; f < COST_FEATURES; f++) {
		double height = scale * (double)of(t, side, f);
		if (height == 0)
			continue;
		y -= height;
		fprintf(to,
			"<rect x=\"%.1f\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"%s\"><title>%s, %s: %lld</title></rect>\n",
			x, y, BAR, height, colour[f], name, legend[f], (long long)of(t, side, f));
	}
	fprintf(to, "<text class=\"figure\" x=\"%.1f\" y=\"%.2f\">", x + BAR / 2.0, y - 5);
	print_grouped(to, of(t, side, -1));
	fprintf(to, "</text>\n<text class=\"name\" x=\"%.1f\" y=\"%d\">%s</text>\n", x + BAR / 2.0,
		FLOOR + 15, name);
}

static void panel(FILE *to, const struct cost_study *s, int i)
{
	const struct cost_tally *paper = paper_sequence(panels[i].form, panels[i].words);
	const struct cost_result *ours = study_best(s, panels[i].form, panels[i].words);
	int64_t most = 1;
	double x = LEFT + (double)i * PANEL;
	for (int side = 0; side < COST_SIDES; side++)
		most = larger(most, larger(of(paper, side, -1), of(&ours->steady, side, -1)));
	double scale = (double)(FLOOR - TOP) / (double)most;
	fprintf(to, "<text class=\"title\" x=\"%.1f\" y=\"66\">%s</text>\n", x + 108, panels[i].title);
	for (int side = 0; side < COST_SIDES; side++) {
		double left = x + 12 + side * 106;
		bar(to, left, paper, side, scale, "CMAM");
		bar(to, left + BAR + 6, &ours->steady, side, scale, "Tern");
		fprintf(to, "<text class=\"side\" x=\"%.1f\" y=\"%d\">%s</text>\n", left + BAR + 3,
			FLOOR + 33, cost_side_name[side]);
	}
	fprintf(to, "<line class=\"axis\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", x, FLOOR, x + 216,
		FLOOR);
	fprintf(to, "<text class=\"how\" x=\"%.1f\" y=\"%d\">Tern: %s</text>\n", x + 108, FLOOR + 51,
		ours->op->what);
}

static void key(FILE *to)
{
	double x = LEFT + 110;
	for (int f = 0; f < COST_FEATURES; f++) {
		fprintf(to, "<rect x=\"%.1f\" y=\"%d\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n",
			x, HEIGHT - 24, colour[f]);
		fprintf(to, "<text class=\"key\" x=\"%.1f\" y=\"%d\">%s</text>\n", x + 17, HEIGHT - 14,
			legend[f]);
		x += 46 + 6.5 * (double)strlen(legend[f]); /* letters are about that wide */
	}
}

static const char style[] =
	"<style>\n"
	"text { font-family: -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #24292f; }\n"
	".head { font-size: 17px; font-weight: 600; }\n"
	".title { font-size: 13px; font-weight: 600; text-anchor: middle; }\n"
	".figure { font-size: 12px; font-weight: 600; text-anchor: middle; }\n"
	".name, .side { font-size: 11px; text-anchor: middle; }\n"
	".side { font-weight: 600; }\n"
	".how { font-size: 10px; text-anchor: middle; fill: #57606a; }\n"
	".note { font-size: 11px; text-anchor: end; fill: #57606a; }\n"
	".key { font-size: 12px; }\n"
	".ground { fill: #ffffff; }\n"
	".axis { stroke: #8c959f; stroke-width: 1; }\n"
	"@media (prefers-color-scheme: dark) {\n"
	"text { fill: #e6edf3; }\n"
	".how, .note { fill: #9198a1; }\n"
	".ground { fill: #0d1117; }\n"
	"}\n"
	"</style>\n";

void cost_plot_write(const struct cost_study *s, FILE *to)
{
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n"
		"<title>Instructions of a message by feature: CMAM on the CM-5 and Tern</title>\n%s",
		WIDTH, HEIGHT, WIDTH, HEIGHT, style);
	fprintf(to,
		"<rect class=\"ground\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n"
		"<text class=\"head\" x=\"%d\" y=\"30\">Where the instructions of a message go</text>\n"
		"<text class=\"note\" x=\"%d\" y=\"30\">CMAM on the CM-5, 1994; Tern on shared memory; words of "
		"32 bits; a scale for each panel</text>\n",
		WIDTH, HEIGHT, LEFT, WIDTH - LEFT);
	for (int i = 0; i < PANELS; i++)
		panel(to, s, i);
	key(to);
	fputs("</svg>\n", to);
}
