/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/cost/listing.h"

#include <stdio.h>

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
			e.site = attribute(s->map, insn->at, &e.site);
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
	       cost_feature_name[e->site.feature], cost_step_name[e->site.step], cost_kind_name[e->kind]);
}

void listing_text(const struct cost_study *s, const struct cost_result *r)
{
	printf("\n%-11s %-12s  %-32s %-44s %-10s %-8s %s\n", "side", "address", r->op->name, "instruction",
	       "feature", "step", "kind");
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

void listing_json(const struct cost_study *s, const struct cost_result *r, struct json *j)
{
	json_begin(j, "listing", '[');
	listing_each(s, r, entry_json, j);
	json_end(j, ']');
}
