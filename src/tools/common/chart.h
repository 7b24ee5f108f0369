/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every plot of the commands: lines over two axes, or horizontal bars. A sheet is a picture of one
 * or several charts with a common key; a page that has a style of its own places charts itself.
 */
#ifndef TERN_TOOLS_COMMON_CHART_H
#define TERN_TOOLS_COMMON_CHART_H

#include <stdbool.h>
#include <stdio.h>

enum { CHART_COLOURS = 8, CHART_LABEL = 96 };

enum chart_kind {
	CHART_LINES,
	CHART_BARS,  /* a group for each place, and in it a bar for each series */
	CHART_STACK, /* a bar for each place, made of all series but those that stand beside it */
};

enum chart_style {
	CHART_WHOLE,
	CHART_DASHED,
	CHART_IDEAL,  /* dotted, without points */
	CHART_BESIDE, /* of a stack */
};

struct chart_point {
	double x, y;      /* of bars, and where places have names, x is the number of a place */
	double low, high; /* ends of a whisker, unless both are 0 or one is NaN */
};

struct chart_series {
	const char *name;
	unsigned colour;
	enum chart_style style;
	const struct chart_point *at; /* a y that is NaN is left out */
	unsigned n;
};

struct chart_axis {
	const char *name, *unit; /* NULL: none */
	bool log;                /* a value that is not above 0 lies hollow on the floor */
};

struct chart {
	const char *title, *remark; /* above it; NULL: none */
	enum chart_kind kind;
	struct chart_axis x, y;   /* bars have their values on y, which goes to the right */
	const char *const *place; /* names along x, equally far apart; NULL: x is a number */
	unsigned places;
	const struct chart_series *series;
	unsigned n;
};

/* Draws one into the rectangle. */
void chart_draw(const struct chart *c, double left, double top, double wide, double high, FILE *to);
/* How high bars are. */
double chart_high(const struct chart *c);

/* A picture of charts in rows of `columns`, of one size; the key is that of the first chart. */
struct chart_sheet {
	const char *label, *head; /* for those who cannot see it, and above all; NULL: none */
	const struct chart *chart;
	unsigned charts, columns, key; /* key: the chart whose series it names */
	double wide, high;             /* of each chart */
};

int chart_write(const struct chart_sheet *s, FILE *to); /* 0 or -EIO */

#endif
