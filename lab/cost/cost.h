/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tern cost` counts. An instruction belongs to a side; by the source line it comes from,
 * to a feature and a step; and by what it does, to a kind. The words are those of Karamcheti
 * and Chien, "Software overhead in messaging layers: where does the time go?" (1994).
 */
#ifndef TERN_LAB_COST_COST_H
#define TERN_LAB_COST_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cost_side { COST_SOURCE, COST_DESTINATION, COST_SIDES };

enum cost_feature {
	COST_BASE,       /* getting the words from one side to the other */
	COST_BUFFER,     /* finding and giving back the memory they lie in */
	COST_ORDER,      /* knowing which comes next */
	COST_FAULT,      /* keeping what might be lost; acknowledgements */
	COST_FLOW,       /* never more than there is room for, and no deadlock */
	COST_PROTECTION, /* checking what is asked for and what arrives */
	COST_STATISTICS,
	COST_FEATURES,
	COST_PROGRAM = COST_FEATURES, /* the program's own: listed, not counted */
	COST_UNKNOWN,                 /* comes from no annotated line */
	COST_FEATURES_ALL,
};

enum cost_step {
	COST_CALL,
	COST_SETUP,
	COST_WRITE,
	COST_READ,
	COST_STATUS,
	COST_CONTROL,
	COST_STEPS,
};

/* An access to memory that a peer uses too, or a system call, is one to the device. */
enum cost_kind { COST_REGISTER, COST_MEMORY, COST_DEVICE, COST_KINDS };

extern const char *const cost_side_name[COST_SIDES];
extern const char *const cost_feature_name[COST_FEATURES_ALL];
extern const char *const cost_feature_title[COST_FEATURES_ALL];
extern const char *const cost_step_name[COST_STEPS];
extern const char *const cost_kind_name[COST_KINDS];

/* How many instructions of each sort. `copy`: of those, what memcpy(), or layers/mem/wide.c for it,
 * takes. */
struct cost_tally {
	int64_t n[COST_SIDES][COST_FEATURES_ALL][COST_STEPS][COST_KINDS];
	int64_t copy[COST_SIDES];
};

/* What of a tally is meant; -1 in a place stands for all. */
struct cost_cut {
	int side, feature, step, kind;
};

#define COST_ALL ((struct cost_cut){ -1, -1, -1, -1 })

/* The sum over a part; the program's own instructions are never in it. */
int64_t cost_sum(const struct cost_tally *t, struct cost_cut c);
int64_t cost_unknown(const struct cost_tally *t);
void cost_add(struct cost_tally *to, const struct cost_tally *t, int64_t times);

#endif
