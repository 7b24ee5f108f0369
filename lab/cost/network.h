/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts over a network of packets, beside those on shared memory. */
#ifndef TERN_LAB_COST_NETWORK_H
#define TERN_LAB_COST_NETWORK_H

#include <stdio.h>

#include "lab/cost/measure.h"

/* Whether all operations whose bit is set can be counted there; and the names of those. */
bool network_counts(uint64_t named);
void network_names(FILE *to);

/*
 * Counts them, all if none is set, over `net`, and prints a table or records. 0, or a negative code
 * with the reason in `why`.
 */
int network_study(const char *net, uint64_t named, bool json, bool bold, char *why, size_t len);

#endif
