/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of `tern perf --paper`: what a paper measured, measured of Tern. */
#ifndef TERN_LAB_PERF_COMPARE_PAPER_H
#define TERN_LAB_PERF_COMPARE_PAPER_H

#include "lab/bench/test.h"

/* Zero where a paper has no figure. */
struct paper_row {
	const char *name, *tables;
	perf_phase *play; /* NULL: nothing here corresponds to it */
	int way;
	uint32_t size;
	unsigned share; /* a round plays the count over this */
	uint32_t bytes; /* that one of them moves here; 1: the figure is for each byte */
	double ncube_us;
	unsigned ncube_instructions;
	double cm5_us, cm5_cycles, cm5_rate; /* MB/s */
	double other_us, other_rate;         /* of the table's machine */
};

/* Rows that one set of ranks plays in turn, in the same rounds. */
struct paper_table {
	const char *title, *key; /* the key is JSON's */
	const char *machine;     /* of other_us; NULL: the nCUBE/2 and the CM-5 */
	const struct paper_row *row;
	unsigned rows;
	struct test test;
	const char *const *notes; /* up to a NULL */
};

extern const struct paper_table paper_thesis, paper_phases; /* thesis.c */
extern const struct paper_table paper_flash;                /* flash.c */
extern const struct paper_table paper_ipsc;                 /* ipsc.c */

#endif
