/* SPDX-License-Identifier: BSD-3-Clause */
/* How long each of many things took within one phase, whose figure is then their median. */
#ifndef TERN_TOOLS_BENCH_TIMES_H
#define TERN_TOOLS_BENCH_TIMES_H

#include "tools/bench/test.h"

enum { TIMES_MOST = 1 << 15 };

struct times {
	unsigned n;
	double at[TIMES_MOST]; /* ns */
};

void times_add(struct times *s, uint64_t ns);           /* drops what is too much */
void times_trip(struct times *s, struct bench_rank *p); /* a round trip of one word with rank 1 */
/* The one below which `part` of them lie; 0 if there is none. Sorts them. */
double times_quantile(struct times *s, double part);
double times_median(struct times *s);

#endif
