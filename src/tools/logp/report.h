/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern logp` prints. */
#ifndef TERN_TOOLS_LOGP_REPORT_H
#define TERN_TOOLS_LOGP_REPORT_H

#include "tools/logp/run.h"

void logp_report_tables(const struct logp_outcome *o, bool bold);
void logp_report_json(const struct logp_outcome *o);
/* What is measured and predicted, one line each. */
void logp_report_list(void);

#endif
