/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures that the rounds of a test gave. */
#ifndef TERN_TOOLS_BENCH_SERIES_H
#define TERN_TOOLS_BENCH_SERIES_H

enum { SERIES_MOST = 1000 };

struct series {
	unsigned n;
	double at[SERIES_MOST];
};

void series_add(struct series *s, double value); /* drops what is too much */
/* NaN for an empty series. Sorts it. */
double series_median(struct series *s);
/* What the middle half of the figures spans, as a part of the median; NaN for fewer than four. */
double series_spread(struct series *s);

/* A median, and the interval that holds the true one with a probability of at least 95 %. */
struct series_estimate {
	double median, low, high;
};

/*
 * The interval goes from the k-th smallest figure to the k-th largest, whatever the
 * distribution: of n figures fewer than k lie below the true median as often as fewer
 * than k of n coins show heads. With fewer than 6 figures it is their whole range,
 * which covers less. NaN for an empty series. Sorts it.
 */
struct series_estimate series_estimate(struct series *s);

#endif
