/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of the paper: active messages (CMAM) on the CM-5, packets of four words. */
#ifndef TERN_TOOLS_COST_PAPER_H
#define TERN_TOOLS_COST_PAPER_H

#include "tools/cost/operation.h"

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

#endif
