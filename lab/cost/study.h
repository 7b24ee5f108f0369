/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that one run of `tern cost` has counted, the figures of the paper beside it (active messages,
 * CMAM, on the CM-5, packets of four words), and the forms in which both are shown.
 */
#ifndef TERN_LAB_COST_STUDY_H
#define TERN_LAB_COST_STUDY_H

#include <stdio.h>

#include "lab/cost/measure.h"
#include "tools/common/rows.h"

struct cost_study {
	struct cost_map *map;
	struct cost_result *result; /* in the order of operation_table; `op` is NULL where nothing
				       was counted */
	double weight[COST_KINDS];
};

/*
 * Counts the operations whose bit is set, all if none is. 0, or a negative code with the reason
 * in `why`.
 */
int study_open(struct cost_study *s, uint64_t named, char *why, size_t len);
void study_close(struct cost_study *s);

const struct cost_result *study_find(const struct cost_study *s, const char *name);
/* The way that takes the fewest instructions, of those that leave nothing to the program. */
const struct cost_result *study_best(const struct cost_study *s, enum cost_form form,
				     unsigned words);
double study_weighted(const struct cost_study *s, const struct cost_tally *t, struct cost_cut c);

/* Formulas for messages, and what is not base. */
void fit_formulas(const struct cost_study *s);
/* By interrupt, in the thesis' categories. */
void table_interrupt(const struct cost_study *s);
void fit_overhead(const struct cost_study *s);

/* Table 1: a single packet, by step. */
extern const struct cost_tally paper_packet;

/*
 * Tables 2 and 3; NULL if the paper has none. Steps are not told apart there: all is in
 * COST_CONTROL.
 */
const struct cost_tally *paper_sequence(enum cost_form form, unsigned words);

/* Figure 8: the instructions of `words` in packets of n, and those of them that are its base. */
double paper_total(enum cost_form form, double words, double n);
double paper_base(enum cost_form form, double words, double n);

/* A result as a row of the ways to do it, or the beginning of its record. */
void result_write(struct rows *w, const struct cost_study *s, const struct cost_result *r);
/* What was counted, as records. */
void cost_json(const struct cost_study *s, bool listing);

/* The instructions of operations, one by one. */
void listing_text(const struct cost_study *s, const struct cost_result *r);

/* Every table of the paper, and what Tern has beside it. */
void table_all(const struct cost_study *s);
/* The operations that were asked for by name, each with its parts. */
void table_named(const struct cost_study *s);

/* The features of sequences and streams, by side, drawn as the paper's figure 6. */
int cost_plot_write(const void *study, FILE *to); /* for file_write() */

#endif
