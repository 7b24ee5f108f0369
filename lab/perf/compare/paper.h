/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of `tern perf --paper`: what a paper measured, measured of Tern. */
#ifndef TERN_LAB_PERF_COMPARE_PAPER_H
#define TERN_LAB_PERF_COMPARE_PAPER_H

#include "lab/bench/test.h"

/* An operation: what the paper has for it, and what is played here. */
struct paper_row {
	const char *name;
	const char *tables; /* of the paper; "": it has no figure */
	perf_phase *play;   /* NULL: nothing here corresponds to it */
	phase_act *act;     /* that it times, if it is one for several */
	int way;
	uint32_t size;
	unsigned share; /* a round plays the count over this; 0: 1 */
	uint32_t bytes; /* that one of them moves here; 1: the figure is for each byte */
	/* The paper's figures; 0: there is none. */
	struct {
		double us;
		unsigned instructions;
	} ncube;
	struct {
		double us, cycles, rate; /* MB/s */
	} cm5;
	struct {
		double us, rate;
	} other; /* of the table's machine */
};

/* Rows that one set of ranks plays in turn, in the same rounds. */
struct paper_table {
	const char *title, *key; /* the key is JSON's */
	const char *machine;     /* of `other`; NULL: the nCUBE/2 and the CM-5 */
	const struct paper_row *row;
	unsigned rows;
	struct test test;
	const char *const *notes; /* up to a NULL */
};

extern const struct paper_table paper_thesis, paper_phases; /* thesis.c */
extern const struct paper_table paper_flash;                /* flash.c */

#endif
