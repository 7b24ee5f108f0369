/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/cost/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int study_count(struct cost_study *s, size_t i, char *why, size_t len)
{
	char reason[300];
	int rc = measure(s->map, &operation_table[i], &s->result[i], reason, sizeof reason);
	if (rc)
		snprintf(why, len, "%s: %s", operation_table[i].name, reason);
	return rc;
}

int study_open(struct cost_study *s, uint64_t named, bool progress, char *why, size_t len)
{
	int rc = 0;
	s->result = calloc(operation_count, sizeof *s->result);
	s->map = map_open(why, len);
	if (!s->result || !s->map)
		return -1;
	for (size_t i = 0; !rc && i < operation_count; i++) {
		if (named && !(named >> i & 1))
			continue;
		if (progress)
			fprintf(stderr, "\r\033[K[%zu/%zu] %s ...", i + 1, operation_count,
				operation_table[i].name);
		rc = study_count(s, i, why, len);
	}
	if (progress)
		fputs("\r\033[K", stderr);
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

const struct cost_result *study_best(const struct cost_study *s, enum cost_form form, unsigned words)
{
	const struct cost_result *best = NULL;
	for (size_t i = 0; i < operation_count; i++) {
		const struct operation *o = s->result[i].op;
		if (!o || o->form != form || o->words != words || o->apart)
			continue;
		if (!best || cost_sum(&s->result[i].steady, COST_ALL) < cost_sum(&best->steady, COST_ALL))
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
