/* SPDX-License-Identifier: BSD-3-Clause */
/* Points that were measured, and what lies between them. */
#ifndef TERN_TOOLS_LOGP_CURVE_H
#define TERN_TOOLS_LOGP_CURVE_H

enum { CURVE_MOST = 32 };

/* In the order of x. */
struct curve {
	unsigned n;
	double x[CURVE_MOST], y[CURVE_MOST];
};

struct line {
	double at_0, slope;
};

void curve_add(struct curve *c, double x, double y); /* in its place; drops what is too much */
/* On the line between its neighbours; beyond the ends, where the end is. NaN for an empty curve. */
double curve_at(const struct curve *c, double x);
/* The straight line with the least squares; NaN for fewer than two different x. */
struct line curve_line(const struct curve *c);

#endif
