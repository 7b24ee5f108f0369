/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of `tern cost`, as text. */

#include <stdio.h>

#include "lab/cost/study.h"
#include "tools/common/table.h"

static const char *const step_title[COST_STEPS] = {
	[COST_CALL] = "call and return",
	[COST_SETUP] = "setting up",
	[COST_WRITE] = "writing",
	[COST_READ] = "reading",
	[COST_STATUS] = "looking at status",
	[COST_CONTROL] = "control flow",
};

static int64_t of(const struct cost_tally *t, int side, int feature)
{
	return cost_sum(t, (struct cost_cut){ side, feature, -1, -1 });
}

/* A column of figures: one side and one kind of a tally, or (-1) all; without one, empty. */
struct column {
	const char *head;
	int width;
	const struct cost_tally *tally;
	int side, kind;
};

/* A dash for nothing. */
static void cell(struct rows *w, const char *head, int width, int64_t value)
{
	rows_whole(w, NULL, head, width, (uint64_t)value, value ? "%lld" : "-", (long long)value);
}

static void row(struct rows *w, const char *name, bool part, const struct column *c, unsigned n,
		struct cost_cut cut)
{
	char text[40];
	snprintf(text, sizeof text, part ? "  %s" : "%s", name);
	rows_text(w, NULL, "", -20, text);
	for (unsigned i = 0; i < n; i++) {
		struct cost_cut of = cut;
		of.side = c[i].side;
		of.kind = cut.kind < 0 ? c[i].kind : cut.kind;
		if (c[i].tally)
			cell(w, c[i].head, c[i].width, cost_sum(c[i].tally, of));
		else
			rows_text(w, NULL, c[i].head, c[i].width, "");
	}
	rows_end_row(w);
}

static bool columns_have(const struct column *c, unsigned n, struct cost_cut cut)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < n; i++)
		sum += c[i].tally ? cost_sum(c[i].tally, cut) : 0;
	return sum != 0;
}

/* A row for each feature of which there is anything. */
static void feature_rows(struct rows *w, bool part, const struct column *c, unsigned n)
{
	for (int f = 0; f < COST_FEATURES_ALL; f++) {
		struct cost_cut cut = { -1, f, -1, -1 };
		if (f != COST_PROGRAM && columns_have(c, n, cut))
			row(w, cost_feature_title[f], part, c, n, cut);
	}
}

/* -- Table 1 ------------------------------------------------------------------------------- */

static void table_packet(const struct cost_study *s)
{
	enum { COLUMNS = 6 };
	struct rows w;
	const struct cost_result *two = study_find(s, "request-2"),
				 *four = study_find(s, "request-4");
	struct column c[COLUMNS] = {
		{ "src", 5, &paper_packet, COST_SOURCE, -1 },
		{ "dst", 4, &paper_packet, COST_DESTINATION, -1 },
		{ "src", 8, &two->steady, COST_SOURCE, -1 },
		{ "dst", 4, &two->steady, COST_DESTINATION, -1 },
		{ "src", 8, &four->steady, COST_SOURCE, -1 },
		{ "dst", 4, &four->steady, COST_DESTINATION, -1 },
	};
	table_heading("\n1. A single packet: steps, at the source and at the destination");
	rows_begin(&w, ROWS_TABLE, stdout);
	printf("%33s%16s%16s\n", "CMAM, CM-5", "Tern, 16 bytes", "Tern, 32 bytes");
	for (int step = 0; step < COST_STEPS; step++)
		row(&w, step_title[step], false, c, COLUMNS, (struct cost_cut){ -1, -1, step, -1 });
	row(&w, "total", false, c, COLUMNS, COST_ALL);
	puts("by feature"); /* which the paper does not tell apart */
	c[0].tally = c[1].tally = NULL;
	feature_rows(&w, true, c, COLUMNS);
	printf("\nCMAM's 47 have no order, overflow safety or reliability; Tern's %lld and %lld "
	       "have. They are for a\n"
	       "packet among others; a poll that finds one packet and no more takes %lld at the "
	       "destination.\n",
	       (long long)cost_sum(&two->steady, COST_ALL),
	       (long long)cost_sum(&four->steady, COST_ALL),
	       (long long)of(&four->alone, COST_DESTINATION, -1));
}

/* -- Table 2 --------------------------------------------------------------------------------- */

/* The study's figures and Tern's, by feature; in groups too, unless that is NULL. */
static void beside_paper(struct rows *w, const struct cost_tally *paper,
			 const struct cost_tally *counted, const struct cost_tally *group)
{
	const struct column c[] = {
		{ "src", 6, paper, COST_SOURCE, -1 },
		{ "dst", 6, paper, COST_DESTINATION, -1 },
		{ "both", 6, paper, -1, -1 },
		{ "src", 10, counted, COST_SOURCE, -1 },
		{ "dst", 6, counted, COST_DESTINATION, -1 },
		{ "both", 6, counted, -1, -1 },
		{ "both", 10, group, -1, -1 },
	};
	unsigned columns = sizeof c / sizeof *c - !group;
	rows_begin(w, ROWS_TABLE, stdout);
	printf("%44s%28s%12s\n", "CMAM, CM-5", "Tern, shared memory", group ? "in groups" : "");
	feature_rows(w, false, c, columns);
	row(w, "total", false, c, columns, COST_ALL);
}

static void share_cell(struct rows *w, int width, const struct cost_tally *t, double all)
{
	double share = (double)cost_sum(t, COST_ALL) / all;
	rows_real(w, NULL, "", width, share, "%.2f", share);
}

/* Like for like: the same protocol, packets of four words, every message with its feature. */
static void table_protocol(const struct cost_study *s, enum cost_form form, unsigned words)
{
	char name[40];
	bool finite = form == COST_FINITE;
	snprintf(name, sizeof name, "%s-%u-by-4", finite ? "block" : "ordered", words);
	const struct cost_result *r = study_find(s, name);
	snprintf(name, sizeof name, "grouped-%u-by-4", words);
	const struct cost_tally *group = finite ? NULL : &study_find(s, name)->steady;
	const struct cost_tally *paper = paper_sequence(form, words);
	double all = (double)cost_sum(paper, COST_ALL);
	struct rows w;
	printf("\n%s sequence, %u words, %u packets (%s)\n", finite ? "finite" : "indefinite",
	       words, r->op->packets, r->op->name);
	beside_paper(&w, paper, &r->steady, group);
	rows_text(&w, NULL, "", -20, "of CMAM's");
	share_cell(&w, 50, &r->steady, all);
	if (group)
		share_cell(&w, 10, group, all);
	rows_end_row(&w);
}

static void table_protocols(const struct cost_study *s)
{
	table_heading("\n2. The study's protocols, packet for packet");
	puts("Packets carry four words of 32 bits. A message, with its poll, belongs to what it "
	     "is for.\n"
	     "Indefinite: every second packet comes before its predecessor, and each is "
	     "acknowledged, or 32\n"
	     "at once, all if they are fewer. The ring's lines are exchanged for that before the "
	     "destination\n"
	     "polls.");
	for (int words = 16; words <= 1024; words *= 64) {
		table_protocol(s, COST_FINITE, (unsigned)words);
		table_protocol(s, COST_STREAM, (unsigned)words);
	}
}

/* -- Table 3 --------------------------------------------------------------------------------- */

static void table_sequence(const struct cost_study *s, enum cost_form form, unsigned words)
{
	const struct cost_result *r = study_best(s, form, words);
	const struct cost_tally *paper = paper_sequence(form, words);
	const int64_t *copy = r->steady.copy;
	struct rows w;
	printf("\n%s, %u words: %s (%s)\n", form == COST_FINITE ? "finite sequence" : "stream",
	       words, r->op->what, r->op->name);
	beside_paper(&w, paper, &r->steady, NULL);
	rows_text(&w, NULL, "", -20, "on a better network");
	cell(&w, "", 22, of(paper, -1, COST_BASE));
	rows_end_row(&w);
	if (!(copy[0] + copy[1]))
		return;
	rows_text(&w, NULL, "", -20, "in it, the copy");
	cell(&w, "", 34, copy[0]);
	cell(&w, "", 6, copy[1]);
	cell(&w, "", 6, copy[0] + copy[1]);
	rows_end_row(&w);
}

static void table_sequences(const struct cost_study *s)
{
	table_heading("\n3. What a better network allows: sequences on shared memory");
	puts("Words are of 32 bits. \"On a better network\" is what CMAM's base alone takes, "
	     "where the network\n"
	     "keeps order, has room and loses nothing. Of what Tern can do, the cheapest is "
	     "shown.");
	for (int words = 16; words <= 1024; words *= 64) {
		table_sequence(s, COST_FINITE, (unsigned)words);
		table_sequence(s, COST_STREAM, (unsigned)words);
	}
}

static void table_candidates(const struct cost_study *s)
{
	struct rows w;
	table_heading("\nWays to do it");
	rows_begin(&w, ROWS_TABLE, stdout);
	for (size_t i = 0; i < operation_count; i++)
		if (s->result[i].op) {
			result_write(&w, s, &s->result[i]);
			rows_end_row(&w);
		}
	puts("\nAlone: with a poll for this one. Copy: in it, memcpy or the loop that stands "
	     "in for it; an instruction\n"
	     "that moves a string counts once, however long that is.");
}

/* -- Table 4 ------------------------------------------------------------------------------- */

static void kinds_of(const struct cost_study *s, const char *name, const struct cost_tally *t)
{
	static const char *const heads[COST_KINDS] = { "reg", "mem", "dev" };
	enum { COLUMNS = COST_SIDES * COST_KINDS };
	struct column c[COLUMNS];
	struct rows w;
	for (int i = 0; i < COLUMNS; i++)
		c[i] = (struct column){ heads[i % COST_KINDS], i % COST_KINDS ? 4 : 7, t,
					i / COST_KINDS, i % COST_KINDS };
	puts(name);
	rows_begin(&w, ROWS_TABLE, stdout);
	printf("%41s%21s\n", "source", "destination");
	feature_rows(&w, true, c, COLUMNS);
	row(&w, "total", true, c, COLUMNS, COST_ALL);
	rows_text(&w, NULL, "", -20, "  weighted");
	for (int side = COST_SOURCE; side <= COST_DESTINATION; side++) {
		double weighted = study_weighted(s, t, (struct cost_cut){ side, -1, -1, -1 });
		rows_real(&w, NULL, "", 19, weighted, "%.6g", weighted);
	}
	rows_end_row(&w);
}

static void table_kinds(const struct cost_study *s)
{
	table_heading("\n4. Kinds of instructions: registers, memory, device (memory that the peer "
		      "shares)");
	printf("Weighted: %g for one on registers, %g on memory, %g on the device.\n", s->weight[0],
	       s->weight[1], s->weight[2]);
	for (int words = 16; words <= 1024; words *= 64)
		for (enum cost_form form = COST_FINITE; form <= COST_STREAM; form++) {
			printf("\n%s, %d words\n",
			       form == COST_FINITE ? "finite sequence" : "indefinite sequence",
			       words);
			char name[40];
			snprintf(name, sizeof name, "%s-%d-by-4",
				 form == COST_FINITE ? "block" : "ordered", words);
			kinds_of(s, "CMAM", paper_sequence(form, (unsigned)words));
			kinds_of(s, "Tern, the same protocol", &study_find(s, name)->steady);
			kinds_of(s, "Tern, on shared memory as it is",
				 &study_best(s, form, (unsigned)words)->steady);
		}
}

/* -- All of them --------------------------------------------------------------------------- */

void table_all(const struct cost_study *s)
{
	printf("Instructions, counted by single-stepping; src: source, dst: destination.\n");
	table_packet(s);
	table_protocols(s);
	table_sequences(s);
	table_kinds(s);
	table_heading("\n5. As a formula: p packets of n words");
	fit_formulas(s);
	table_heading("\n6. What is not base, of 1,024 words in packets of n words");
	fit_overhead(s);
	table_interrupt(s);
	table_candidates(s);
}

void table_named(const struct cost_study *s)
{
	table_candidates(s);
	for (size_t i = 0; i < operation_count; i++)
		if (s->result[i].op) {
			table_heading("\n%s: %s", s->result[i].op->name, s->result[i].op->what);
			kinds_of(s, "by feature and kind", &s->result[i].steady);
		}
}
