/* SPDX-License-Identifier: BSD-3-Clause */
/* The annotations of the sources, as cmake/cost.awk collects them when Tern is built. */
#ifndef TERN_TOOLS_COST_MARK_H
#define TERN_TOOLS_COST_MARK_H

#include "tools/cost/cost.h"

struct cost_mark {
	const char *file; /* from the root of the sources */
	uint32_t first, last;
	enum cost_feature feature;
	enum cost_step step;
};

extern const struct cost_mark cost_marks[];
extern const size_t cost_marks_count;

#endif
