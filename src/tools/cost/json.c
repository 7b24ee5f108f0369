/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/cost/json.h"

#include "tools/common/json.h"
#include "tools/cost/listing.h"
#include "tools/cost/paper.h"

static const char *const form_name[] = { "packet", "finite", "stream", "other" };

/* Counts are never negative: what three take is at least what two do. */
static void json_count(struct json *j, const char *key, int64_t n)
{
	json_whole(j, key, (uint64_t)n);
}

static void json_side(struct json *j, const struct cost_tally *t, int side)
{
	json_begin(j, cost_side_name[side], '{');
	json_count(j, "total", cost_sum(t, (struct cost_cut){ side, -1, -1, -1 }));
	json_count(j, "copy", t->copy[side]);
	for (int f = 0; f < COST_FEATURES; f++)
		json_count(j, cost_feature_name[f], cost_sum(t, (struct cost_cut){ side, f, -1, -1 }));
	for (int step = 0; step < COST_STEPS; step++)
		json_count(j, cost_step_name[step], cost_sum(t, (struct cost_cut){ side, -1, step, -1 }));
	for (int kind = 0; kind < COST_KINDS; kind++)
		json_count(j, cost_kind_name[kind], cost_sum(t, (struct cost_cut){ side, -1, -1, kind }));
	json_end(j, '}');
}

static void json_paper(struct json *j, const struct operation *o)
{
	const struct cost_tally *paper = paper_sequence(o->form, o->words);
	if (!paper)
		return;
	json_count(j, "cmam", cost_sum(paper, COST_ALL));
	json_count(j, "cmam_base", cost_sum(paper, (struct cost_cut){ -1, COST_BASE, -1, -1 }));
}

static void json_result(const struct cost_study *s, const struct cost_result *r, struct json *j)
{
	json_text(j, "operation", r->op->name);
	json_text(j, "what", r->op->what);
	json_text(j, "form", form_name[r->op->form]);
	json_whole(j, "words", r->op->words);
	json_whole(j, "packets", r->op->packets);
	json_count(j, "total", cost_sum(&r->steady, COST_ALL));
	json_count(j, "alone", cost_sum(&r->alone, COST_ALL));
	json_real(j, "weighted", study_weighted(s, &r->steady, COST_ALL));
	json_count(j, "unattributed", cost_unknown(&r->steady) + cost_unknown(&r->alone));
	json_truth(j, "same", r->same);
	json_paper(j, r->op);
	for (int side = 0; side < COST_SIDES; side++)
		json_side(j, &r->steady, side);
}

void cost_json(const struct cost_study *s, bool listing)
{
	struct json j = { .to = stdout };
	json_begin(&j, NULL, '[');
	for (size_t i = 0; i < operation_count; i++) {
		if (!s->result[i].op)
			continue;
		json_begin(&j, NULL, '{');
		json_result(s, &s->result[i], &j);
		if (listing)
			listing_json(s, &s->result[i], &j);
		json_end(&j, '}');
	}
	json_end(&j, ']');
}
