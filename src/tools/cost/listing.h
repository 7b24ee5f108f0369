/* SPDX-License-Identifier: BSD-3-Clause */
/* The instructions of operations, one by one. */
#ifndef TERN_TOOLS_COST_LISTING_H
#define TERN_TOOLS_COST_LISTING_H

#include "tools/common/json.h"
#include "tools/cost/study.h"

void listing_text(const struct cost_study *s, const struct cost_result *r);
void listing_json(const struct cost_study *s, const struct cost_result *r, struct json *j);

#endif
