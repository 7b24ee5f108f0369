/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures that the rounds of a test gave, and the times of single things in a phase. */
#ifndef TERN_LAB_BENCH_SERIES_H
#define TERN_LAB_BENCH_SERIES_H

#include <stdint.h>

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

/* How long each of many things took within one phase, whose figure is then their median. */
enum { TIMES_MOST = 1 << 15 };

struct times {
	unsigned n;
	double at[TIMES_MOST]; /* ns */
};

void times_add(struct times *s, uint64_t ns); /* drops what is too much */
/* The one below which `part` of them lie; 0 if there is none. Sorts them. */
double times_quantile(struct times *s, double part);

#endif
