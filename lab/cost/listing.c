/* SPDX-License-Identifier: BSD-3-Clause */
/* What was counted as records, and the instructions of operations one by one. */

#include <stdio.h>

#include "lab/cost/study.h"
#include "tools/common/json.h"

/* An instruction with everything that is known of it. */
struct entry {
	enum cost_side side;
	enum cost_kind kind;
	struct cost_site site;
	char text[DECODED_TEXT];
};

static void listing_each(const struct cost_study *s, const struct cost_result *r,
			 void (*fn)(const struct entry *e, void *arg), void *arg)
{
	struct decoder *d = decoder_open();
	for (unsigned i = 0; d && i < r->strands; i++) {
		const struct cost_strand *strand = &r->strand[i];
		struct entry e = { .side = strand->side, .site.feature = COST_UNKNOWN };
		for (size_t k = strand->first; k < strand->first + strand->n; k++) {
			const struct cost_insn *insn = &r->trace.insn[k];
			e.site = attribute(s->map, insn->at, &e.site, strand->whole);
			e.kind = insn->kind;
			decoder_text(d, insn->at, e.text);
			fn(&e, arg);
		}
	}
	decoder_close(d);
}

static void entry_text(const struct entry *e, void *arg)
{
	char where[80];
	(void)arg;
	snprintf(where, sizeof where, "%s:%u", e->site.file, e->site.line);
	printf("%-11s %012llx  %-32s %-44s %-10s %-8s %s\n", cost_side_name[e->side],
	       (unsigned long long)e->site.at, e->site.library ? "(C library)" : where, e->text,
	       cost_feature_name[e->site.feature], cost_step_name[e->site.step],
	       cost_kind_name[e->kind]);
}

void listing_text(const struct cost_study *s, const struct cost_result *r)
{
	printf("\n%-11s %-12s  %-32s %-44s %-10s %-8s %s\n", "side", "address", r->op->name,
	       "instruction", "feature", "step", "kind");
	listing_each(s, r, entry_text, NULL);
}

static void entry_json(const struct entry *e, void *arg)
{
	struct json *j = arg;
	json_begin(j, NULL, '{');
	json_text(j, "side", cost_side_name[e->side]);
	json_whole(j, "address", e->site.at);
	json_text(j, "file", e->site.library ? NULL : e->site.file);
	json_whole(j, "line", e->site.line);
	json_text(j, "instruction", e->text);
	json_text(j, "feature", cost_feature_name[e->site.feature]);
	json_text(j, "step", cost_step_name[e->site.step]);
	json_text(j, "kind", cost_kind_name[e->kind]);
	json_end(j, '}');
}

static void listing_json(const struct cost_study *s, const struct cost_result *r, struct json *j)
{
	json_begin(j, "listing", '[');
	listing_each(s, r, entry_json, j);
	json_end(j, ']');
}

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
		json_count(j, cost_feature_name[f],
			   cost_sum(t, (struct cost_cut){ side, f, -1, -1 }));
	for (int step = 0; step < COST_STEPS; step++)
		json_count(j, cost_step_name[step],
			   cost_sum(t, (struct cost_cut){ side, -1, step, -1 }));
	for (int kind = 0; kind < COST_KINDS; kind++)
		json_count(j, cost_kind_name[kind],
			   cost_sum(t, (struct cost_cut){ side, -1, -1, kind }));
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
