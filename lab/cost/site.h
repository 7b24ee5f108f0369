/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the sources an instruction comes from, and what it is therefore for. */
#ifndef TERN_LAB_COST_SITE_H
#define TERN_LAB_COST_SITE_H

#include "lab/cost/cost.h"

/* Where in the sources an instruction comes from, and what it is therefore for. */
struct cost_site {
	uintptr_t at;
	const char *file; /* from the root of the sources, if they have an annotation; "" if it is
			     not known */
	unsigned line;
	bool library; /* not Tern's code: what it is for is said by whoever calls it */
	enum cost_feature feature;
	enum cost_step step;
	enum cost_feature protocol; /* of the line of layers/sequence that it is of or in line in;
				       else COST_UNKNOWN */
};

struct cost_map;

/* Reads this program's debug information; NULL with the reason in `why`. */
struct cost_map *map_open(char *why, size_t len);
void map_close(struct cost_map *m);
const struct cost_site *map_site(struct cost_map *m, uintptr_t at); /* valid until map_close() */

/* The annotations of the sources, as cmake/cost.awk collects them when Tern is built. */
struct cost_mark {
	const char *file; /* from the root of the sources */
	uint32_t first, last;
	enum cost_feature feature;
	enum cost_step step;
};

extern const struct cost_mark cost_marks[];
extern const size_t cost_marks_count;

#endif
