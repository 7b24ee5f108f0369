/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of `tern cost`, as text. */
#ifndef TERN_TOOLS_COST_TABLE_H
#define TERN_TOOLS_COST_TABLE_H

#include "tools/cost/study.h"

/* Every table of the paper, and what Tern has beside it. `bold`: titles are set off. */
void table_all(const struct cost_study *s, bool bold);
/* The operations that were asked for by name, each with its parts. */
void table_named(const struct cost_study *s, bool bold);

#endif
