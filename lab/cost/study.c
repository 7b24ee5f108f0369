/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over what was counted, and one run's counts of all operations. */
#include "lab/cost/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/cost/cost.h"
#include "tools/common/table.h"

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

const char *const cost_feature_title[COST_FEATURES_ALL] = {
	[COST_BASE] = "base",
	[COST_BUFFER] = "buffer management",
	[COST_ORDER] = "in-order delivery",
	[COST_FAULT] = "fault tolerance",
	[COST_FLOW] = "flow control",
	[COST_PROTECTION] = "protection",
	[COST_STATISTICS] = "statistics",
	[COST_PROGRAM] = "the program's own",
	[COST_UNKNOWN] = "not attributed",
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
		if (feature != COST_PROGRAM && cut_has(c.side, side) &&
		    cut_has(c.feature, feature) && cut_has(c.step, step) && cut_has(c.kind, kind))
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

static int study_count(struct cost_study *s, size_t i, char *why, size_t len)
{
	char reason[300];
	int rc = measure(s->map, &operation_table[i], &s->result[i], reason, sizeof reason);
	if (rc)
		snprintf(why, len, "%s: %s", operation_table[i].name, reason);
	return rc;
}

int study_open(struct cost_study *s, uint64_t named, char *why, size_t len)
{
	int rc = 0;
	s->result = calloc(operation_count, sizeof *s->result);
	s->map = map_open(why, len);
	if (!s->result || !s->map)
		return -1;
	for (size_t i = 0; !rc && i < operation_count; i++) {
		if (named && !(named >> i & 1))
			continue;
		progress(i + 1, operation_count, "%s", operation_table[i].name);
		rc = study_count(s, i, why, len);
	}
	progress_end();
	return rc;
}

void study_close(struct cost_study *s)
{
	for (size_t i = 0; s->result && i < operation_count; i++)
		result_free(&s->result[i]);
	free(s->result);
	map_close(s->map);
}

const struct cost_result *study_find(const struct cost_study *s, const char *name)
{
	for (size_t i = 0; i < operation_count; i++)
		if (s->result[i].op && strcmp(operation_table[i].name, name) == 0)
			return &s->result[i];
	return NULL;
}

const struct cost_result *study_best(const struct cost_study *s, enum cost_form form,
				     unsigned words)
{
	const struct cost_result *best = NULL;
	for (size_t i = 0; i < operation_count; i++) {
		const struct operation *o = s->result[i].op;
		if (!o || o->form != form || o->words != words || o->apart)
			continue;
		if (!best ||
		    cost_sum(&s->result[i].steady, COST_ALL) < cost_sum(&best->steady, COST_ALL))
			best = &s->result[i];
	}
	return best;
}

double study_weighted(const struct cost_study *s, const struct cost_tally *t, struct cost_cut c)
{
	double sum = 0;
	for (c.kind = 0; c.kind < COST_KINDS; c.kind++)
		sum += s->weight[c.kind] * (double)cost_sum(t, c);
	return sum;
}
