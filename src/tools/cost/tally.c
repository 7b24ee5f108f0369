/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/cost/cost.h"

const char *const cost_side_name[COST_SIDES] = { "source", "destination" };

const char *const cost_feature_name[COST_FEATURES_ALL] = {
	[COST_BASE] = "base",
	[COST_BUFFER] = "buffer",
	[COST_ORDER] = "order",
	[COST_FAULT] = "fault",
	[COST_FLOW] = "flow",
	[COST_PROTECTION] = "protection",
	[COST_STATISTICS] = "statistics",
	[COST_PROGRAM] = "program",
	[COST_UNKNOWN] = "unknown",
};

const char *const cost_step_name[COST_STEPS] = {
	[COST_CALL] = "call", [COST_SETUP] = "setup",   [COST_WRITE] = "write",
	[COST_READ] = "read", [COST_STATUS] = "status", [COST_CONTROL] = "control",
};

const char *const cost_kind_name[COST_KINDS] = {
	[COST_REGISTER] = "register",
	[COST_MEMORY] = "memory",
	[COST_DEVICE] = "device",
};

enum { CELLS = COST_SIDES * COST_FEATURES_ALL * COST_STEPS * COST_KINDS };

static bool cut_has(int wanted, int at)
{
	return wanted < 0 || wanted == at;
}

int64_t cost_sum(const struct cost_tally *t, struct cost_cut c)
{
	int64_t sum = 0;
	for (int i = 0; i < CELLS; i++) {
		int kind = i % COST_KINDS, step = i / COST_KINDS % COST_STEPS;
		int feature = i / COST_KINDS / COST_STEPS % COST_FEATURES_ALL;
		int side = i / COST_KINDS / COST_STEPS / COST_FEATURES_ALL;
		if (feature != COST_PROGRAM && cut_has(c.side, side) && cut_has(c.feature, feature) &&
		    cut_has(c.step, step) && cut_has(c.kind, kind))
			sum += t->n[side][feature][step][kind];
	}
	return sum;
}

int64_t cost_unknown(const struct cost_tally *t)
{
	return cost_sum(t, (struct cost_cut){ -1, COST_UNKNOWN, -1, -1 });
}

void cost_add(struct cost_tally *to, const struct cost_tally *t, int64_t times)
{
	int64_t *sum = &to->n[0][0][0][0];
	const int64_t *more = &t->n[0][0][0][0];
	for (int i = 0; i < CELLS; i++)
		sum[i] += times * more[i];
	for (int side = 0; side < COST_SIDES; side++)
		to->copy[side] += times * t->copy[side];
}
