/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs as a formula in the number of packets and the words of each, as in the paper's figure 8. */
#ifndef TERN_TOOLS_COST_FIT_H
#define TERN_TOOLS_COST_FIT_H

#include "tools/cost/study.h"

/* A message takes `once`, and each of its packets `packet` and `word` for each word of it. */
struct cost_fit {
	double once, packet, word;
	double off; /* by how much a figure differs from the line through all, at most */
};

/* Packets of up to 12 words are requests, those of 16 to 128 payloads. */
struct cost_fit fit_requests(const struct cost_study *s, int side, int feature);
struct cost_fit fit_payloads(const struct cost_study *s, int side, int feature);

void fit_formulas(const struct cost_study *s);
void fit_overhead(const struct cost_study *s);

/* What 1,024 words take in packets of n words, of one feature or (-1) of all. */
double fit_message(const struct cost_study *s, unsigned n, int feature);

enum { FIT_SIZES = 7 };
extern const unsigned fit_size[FIT_SIZES];

#endif
