/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms in which `tern cost` shows what was counted. */
#ifndef TERN_TOOLS_COST_SHOW_H
#define TERN_TOOLS_COST_SHOW_H

#include <stdio.h>

#include "tools/common/json.h"
#include "tools/cost/study.h"

/* What was counted, as records. */
void cost_json(const struct cost_study *s, bool listing);

/* The instructions of operations, one by one. */
void listing_text(const struct cost_study *s, const struct cost_result *r);
void listing_json(const struct cost_study *s, const struct cost_result *r, struct json *j);

/* Every table of the paper, and what Tern has beside it. `bold`: titles are set off. */
void table_all(const struct cost_study *s, bool bold);
/* The operations that were asked for by name, each with its parts. */
void table_named(const struct cost_study *s, bool bold);

/* The features of sequences and streams, by side, drawn as the paper's figure 6. */
void cost_plot_write(const struct cost_study *s, FILE *to);

#endif
