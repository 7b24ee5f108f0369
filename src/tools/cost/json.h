/* SPDX-License-Identifier: BSD-3-Clause */
/* What was counted, as records. */
#ifndef TERN_TOOLS_COST_JSON_H
#define TERN_TOOLS_COST_JSON_H

#include "tools/cost/study.h"

void cost_json(const struct cost_study *s, bool listing);

#endif
