/* SPDX-License-Identifier: BSD-3-Clause */
/* The features of sequences and streams, by side, drawn as the paper's figure 6. */
#ifndef TERN_TOOLS_COST_PLOT_H
#define TERN_TOOLS_COST_PLOT_H

#include "tools/cost_study.h"

/* 0 or a negative errno code: the file cannot be written. */
int plot_write(const struct cost_study *s, const char *path);

#endif
