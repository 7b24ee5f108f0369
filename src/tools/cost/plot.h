/* SPDX-License-Identifier: BSD-3-Clause */
/* The features of sequences and streams, by side, drawn as the paper's figure 6. */
#ifndef TERN_TOOLS_COST_PLOT_H
#define TERN_TOOLS_COST_PLOT_H

#include <stdio.h>

#include "tools/cost/study.h"

void cost_plot_write(const struct cost_study *s, FILE *to);

#endif
