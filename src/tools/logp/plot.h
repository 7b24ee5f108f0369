/* SPDX-License-Identifier: BSD-3-Clause */
/* A picture of the outcome: predictions against measurements, and the parameters. */
#ifndef TERN_TOOLS_LOGP_PLOT_H
#define TERN_TOOLS_LOGP_PLOT_H

#include <stdio.h>

#include "tools/logp/run.h"

/* Writes SVG; 0 or -EIO. */
int logp_plot_write(const struct logp_outcome *o, FILE *to);

#endif
