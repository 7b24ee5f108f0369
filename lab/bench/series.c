/* SPDX-License-Identifier: BSD-3-Clause */
/* Medians, spreads and intervals of the figures of a test, and of single times. */
#include "lab/bench/series.h"

#include <math.h>
#include <stdlib.h>

void series_add(struct series *s, double value)
{
	if (s->n < SERIES_MOST)
		s->at[s->n++] = value;
}

static int series_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The figure below which `part` of them lie, between two where it must be. */
static double series_quantile(struct series *s, double part)
{
	if (!s->n)
		return NAN;
	qsort(s->at, s->n, sizeof s->at[0], series_compare);
	double place = part * (s->n - 1);
	unsigned below = (unsigned)place;
	unsigned above = below + 1 < s->n ? below + 1 : below;
	return s->at[below] + (place - below) * (s->at[above] - s->at[below]);
}

double series_median(struct series *s)
{
	return series_quantile(s, 0.5);
}

/* k, from 1; 2^-n is a normal number for all n up to SERIES_MOST. */
static unsigned series_interval_rank(unsigned n)
{
	double chance = ldexp(1, -(int)n), sum = chance; /* of exactly, and of at most, k heads */
	unsigned k = 0;
	while (sum <= 0.025) {
		k++;
		chance *= (double)(n - k + 1) / k;
		sum += chance;
	}
	return k ? k : 1;
}

struct series_estimate series_estimate(struct series *s)
{
	double median = series_median(s);
	if (!s->n)
		return (struct series_estimate){ NAN, NAN, NAN };
	unsigned k = series_interval_rank(s->n);
	return (struct series_estimate){ median, s->at[k - 1], s->at[s->n - k] };
}

double series_spread(struct series *s)
{
	double median = series_median(s);
	if (s->n < 4 || median == 0)
		return NAN;
	return (series_quantile(s, 0.75) - series_quantile(s, 0.25)) / median;
}

void times_add(struct times *s, uint64_t ns)
{
	if (s->n < TIMES_MOST)
		s->at[s->n++] = (double)ns;
}

double times_quantile(struct times *s, double part)
{
	qsort(s->at, s->n, sizeof s->at[0], series_compare);
	return s->n ? s->at[(unsigned)(part * (s->n - 1))] : 0;
}
