/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every plot of the commands: lines over two axes, or horizontal bars. A sheet is a picture of one
 * or several charts with a common key; a page that has a style of its own places charts itself.
 */
#ifndef TERN_TOOLS_COMMON_CHART_H
#define TERN_TOOLS_COMMON_CHART_H

#include <stdbool.h>
#include <stdio.h>

enum { CHART_COLOURS = 8, CHART_LABEL = 96, CHART_LINES = 40, CHART_POINTS = 64 };

struct chart;
/* Where a chart is drawn. */
struct chart_room {
	double left, top, wide, high;
};

/*
 * A kind of chart: what it leaves free around its room, for names and values, and how it draws. A
 * new kind is a file that defines one.
 */
struct chart_kind {
	double before, after, foot;
	bool lines; /* its key has pieces of lines */
	void (*draw)(const struct chart *c, struct chart_room room, FILE *to);
};

extern const struct chart_kind chart_lines;
extern const struct chart_kind chart_bars; /* a group for each place, a bar for each series */
/* A bar for each place, made of all series but those that stand beside it. */
extern const struct chart_kind chart_stack;

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
	char name[CHART_LABEL];
	unsigned colour;
	enum chart_style style;
	unsigned n;
	struct chart_point at[CHART_POINTS]; /* a y that is NaN is left out */
};

struct chart_axis {
	const char *name, *unit; /* NULL: none */
	bool log;                /* a value that is not above 0 lies hollow on the floor */
};

struct chart {
	const char *title, *remark;    /* above it; NULL: none */
	const struct chart_kind *kind; /* NULL: lines */
	struct chart_axis x, y;        /* bars have their values on y, which goes to the right */
	unsigned places, n, colours;   /* without places x is a number */
	char place[CHART_POINTS][CHART_LABEL]; /* names along x, equally far apart */
	struct chart_series series[CHART_LINES];
};

/*
 * The series of that name and style, made if there is none: of the colour of another one of its
 * name, or of the next. NULL: there are too many.
 */
struct chart_series *chart_series(struct chart *c, const char *name, enum chart_style style);
/* False: there are too many, or no series. */
bool chart_point(struct chart_series *s, struct chart_point p);
/* A place more; its number, CHART_POINTS if there are too many. */
unsigned chart_place(struct chart *c, const char *name);

/* Draws one. */
void chart_draw(const struct chart *c, struct chart_room room, FILE *to);
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
