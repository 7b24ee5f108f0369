/* SPDX-License-Identifier: BSD-3-Clause */
/* What was counted as records, and the instructions of operations one by one. */

#include <stdio.h>

#include "lab/cost/study.h"
#include "tools/common/rows.h"

/* Where instructions are listed. */
struct listing {
	struct rows *rows;
	struct decoder *decoder;
};

static void entry_write(const struct cost_insn *insn, enum cost_side side,
			const struct cost_site *s, void *arg)
{
	struct listing *l = arg;
	struct rows *w = l->rows;
	char where[80], text[DECODED_TEXT];
	snprintf(where, sizeof where, "%s:%u", s->file, s->line);
	decoder_text(l->decoder, s->at, text);
	rows_text(w, "side", "side", -11, cost_side_name[side]);
	rows_whole(w, "address", "address", -12, s->at, "%012llx", (unsigned long long)s->at);
	rows_text(w, NULL, "place", -32, s->library ? "(C library)" : where);
	rows_text(w, "file", NULL, 0, s->library ? NULL : s->file);
	rows_whole(w, "line", NULL, 0, s->line, NULL);
	rows_text(w, "instruction", "instruction", -44, text);
	rows_text(w, "feature", "feature", -10, cost_feature_name[s->feature]);
	rows_text(w, "step", "step", -8, cost_step_name[s->step]);
	rows_text(w, "kind", "kind", 0, cost_kind_name[insn->kind]);
	rows_end_row(w);
}

static void listing_write(const struct cost_study *s, const struct cost_result *r, struct rows *w)
{
	struct listing l = { w, decoder_open() };
	if (l.decoder)
		result_each(s->map, r, entry_write, &l);
	decoder_close(l.decoder);
}

void listing_text(const struct cost_study *s, const struct cost_result *r)
{
	struct rows w;
	printf("\n%s\n", r->op->name);
	rows_begin(&w, ROWS_TABLE, stdout);
	listing_write(s, r, &w);
}

static void listing_json(const struct cost_study *s, const struct cost_result *r, struct rows *w)
{
	json_begin(&w->json, "listing", '[');
	w->inside = false;
	listing_write(s, r, w);
	json_end(&w->json, ']');
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

/* Of the source, of the destination, or (-1) of both. */
static uint64_t total(const struct cost_tally *t, int side)
{
	return (uint64_t)cost_sum(t, (struct cost_cut){ side, -1, -1, -1 });
}

void result_write(struct rows *w, const struct cost_study *s, const struct cost_result *r)
{
	const struct cost_tally *t = &r->steady;
	int64_t copy = t->copy[COST_SOURCE] + t->copy[COST_DESTINATION];
	const struct cost_tally *paper = paper_sequence(r->op->form, r->op->words);
	char what[160];
	rows_text(w, "operation", "operation", -25, r->op->name);
	rows_text(w, "what", NULL, 0, r->op->what);
	rows_text(w, "form", NULL, 0, form_name[r->op->form]);
	rows_whole(w, "words", NULL, 0, r->op->words, NULL);
	rows_whole(w, "packets", NULL, 0, r->op->packets, NULL);
	rows_whole(w, NULL, "src", 5, total(t, COST_SOURCE), NULL);
	rows_whole(w, NULL, "dst", 5, total(t, COST_DESTINATION), NULL);
	rows_whole(w, "total", "both", 5, total(t, -1), NULL);
	rows_whole(w, NULL, "copy", 5, (uint64_t)copy, copy ? "%lld" : "-", (long long)copy);
	rows_whole(w, "alone", "alone", 6, total(&r->alone, -1), NULL);
	rows_real(w, "weighted", "weighted", 8, study_weighted(s, t, COST_ALL), "%.6g",
		  study_weighted(s, t, COST_ALL));
	rows_whole(w, "unattributed", NULL, 0,
		   (uint64_t)(cost_unknown(t) + cost_unknown(&r->alone)), NULL);
	rows_truth(w, "same", NULL, 0, r->same);
	if (paper) {
		rows_whole(w, "cmam", NULL, 0, total(paper, -1), NULL);
		rows_whole(w, "cmam_base", NULL, 0,
			   (uint64_t)cost_sum(paper, (struct cost_cut){ -1, COST_BASE, -1, -1 }),
			   NULL);
	}
	snprintf(what, sizeof what, "%s%s", r->op->what,
		 r->same ? "" : " (not the same each time)");
	rows_text(w, NULL, "what it is", 0, what);
}

void cost_json(const struct cost_study *s, bool listing)
{
	struct rows w;
	rows_begin(&w, ROWS_JSON, stdout);
	for (size_t i = 0; i < operation_count; i++) {
		const struct cost_result *r = &s->result[i];
		if (!r->op)
			continue;
		result_write(&w, s, r);
		for (int side = 0; side < COST_SIDES; side++)
			json_side(&w.json, &r->steady, side);
		if (listing)
			listing_json(s, r, &w);
		rows_end_row(&w);
	}
	rows_end(&w);
}
