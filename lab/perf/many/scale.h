/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern perf --scale` has measured: each row of many ranks, by the number of ranks. */
#ifndef TERN_LAB_PERF_MANY_SCALE_H
#define TERN_LAB_PERF_MANY_SCALE_H

#include <stdint.h>
#include <stdio.h>

enum { SCALE_STEPS = 10 }; /* numbers of ranks, at most */

/* In the order of the table; of trips, the 99th percentile follows the median. */
enum scale_row {
	SCALE_ALL_TO_ALL,
	SCALE_RANDOM,
	SCALE_FAN_IN,
	SCALE_FAN_OUT,
	SCALE_FLOODING,
	SCALE_FLOODING_99,
	SCALE_FLOODED,
	SCALE_FLOODED_99,
	SCALE_AMONG,
	SCALE_AMONG_99,
	SCALE_ROWS,
};

struct scale {
	unsigned n;
	uint32_t ranks[SCALE_STEPS];
	/* M/s or ns; NaN where a row has no figure for so few ranks. */
	double value[SCALE_ROWS][SCALE_STEPS], limit[SCALE_ROWS][SCALE_STEPS];
	uint32_t cores;
};

/* Fills in the numbers of ranks: the powers of 2 up to the cores, and the cores. */
void scale_steps(struct scale *s, uint32_t cores);

/* Draws it, as SVG; of the type that file_write() takes. */
int scale_plot(const void *scale, FILE *to);

#endif
