/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern logp` prints, and its picture. */
#ifndef TERN_TOOLS_LOGP_REPORT_H
#define TERN_TOOLS_LOGP_REPORT_H

#include <stdio.h>

#include "tools/logp/run.h"

void logp_report_tables(const struct logp_outcome *o, bool bold);
void logp_report_json(const struct logp_outcome *o);
/* What is measured and predicted, one line each. */
void logp_report_list(void);

/*
 * A picture of the outcome, predictions against measurements and the parameters, as SVG; 0 or
 * -EIO.
 */
int logp_plot_write(const void *outcome, FILE *to);

#endif
