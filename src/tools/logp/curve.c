/* SPDX-License-Identifier: BSD-3-Clause */
/* A curve through points, and the straight line nearest to them. */
#include "tools/logp/curve.h"

#include <math.h>

void curve_add(struct curve *c, double x, double y)
{
	unsigned at = c->n;
	if (c->n == CURVE_MOST)
		return;
	for (; at && c->x[at - 1] > x; at--) {
		c->x[at] = c->x[at - 1];
		c->y[at] = c->y[at - 1];
	}
	c->x[at] = x;
	c->y[at] = y;
	c->n++;
}

double curve_at(const struct curve *c, double x)
{
	unsigned i = 0;
	while (i < c->n && c->x[i] < x)
		i++;
	if (!c->n)
		return NAN;
	if (i == 0 || i == c->n)
		return c->y[i ? i - 1 : 0];
	double part = (x - c->x[i - 1]) / (c->x[i] - c->x[i - 1]);
	return c->y[i - 1] + part * (c->y[i] - c->y[i - 1]);
}

/* Around the means, so that large x lose no digits. */
struct line curve_line(const struct curve *c)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
	for (unsigned i = 0; i < c->n; i++) {
		mean_x += c->x[i] / c->n;
		mean_y += c->y[i] / c->n;
	}
	for (unsigned i = 0; i < c->n; i++) {
		xx += (c->x[i] - mean_x) * (c->x[i] - mean_x);
		xy += (c->x[i] - mean_x) * (c->y[i] - mean_y);
	}
	if (!(xx > 0))
		return (struct line){ NAN, NAN };
	return (struct line){ mean_y - xy / xx * mean_x, xy / xx };
}
