/* SPDX-License-Identifier: BSD-3-Clause */
/* Medians of what single things took within a phase. */
#include "tools/bench/times.h"

#include <stdlib.h>

#include "base/clock.h"
#include "tools/bench/words.h"

void times_add(struct times *s, uint64_t ns)
{
	if (s->n < TIMES_MOST)
		s->at[s->n++] = (double)ns;
}

void times_trip(struct times *s, struct bench_rank *p)
{
	uint64_t began = clock_ns();
	p->rc = words_trips(p->t, 1, 1);
	times_add(s, clock_ns() - began);
}

static int times_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double times_quantile(struct times *s, double part)
{
	qsort(s->at, s->n, sizeof s->at[0], times_compare);
	return s->n ? s->at[(unsigned)(part * (s->n - 1))] : 0;
}

double times_median(struct times *s)
{
	return times_quantile(s, 0.5);
}
