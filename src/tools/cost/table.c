/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of `tern cost`, as text. */
#include "tools/cost/show.h"

#include <stdio.h>

#include "tools/common/table.h"
#include "tools/cost/paper.h"
#include "tools/cost/study.h"

static const char *const step_title[COST_STEPS] = {
	[COST_CALL] = "call and return",
	[COST_SETUP] = "setting up",
	[COST_WRITE] = "writing",
	[COST_READ] = "reading",
	[COST_STATUS] = "looking at status",
	[COST_CONTROL] = "control flow",
};

static const char *const feature_title[COST_FEATURES_ALL] = {
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

/* A figure in a place that is `width` wide; a dash for nothing. */
static void cell(int width, int64_t value)
{
	if (value)
		printf("%*lld", width, (long long)value);
	else
		printf("%*s", width, "-");
}

static int64_t of(const struct cost_tally *t, int side, int feature)
{
	return cost_sum(t, (struct cost_cut){ side, feature, -1, -1 });
}

/* -- Table 1 ------------------------------------------------------------------------------- */

static int64_t step_of(const struct cost_tally *t, int side, int step)
{
	return cost_sum(t, (struct cost_cut){ side, -1, step, -1 });
}

static void packet_row(const char *name, const struct cost_tally *two,
		       const struct cost_tally *four, int step)
{
	printf("%-20s", name);
	for (int side = 0; side < COST_SIDES; side++) {
		int paper = 0;
		for (int i = 0; i < COST_STEPS; i++)
			paper += step < 0 || step == i ? paper_packet[side][i] : 0;
		cell(side ? 6 : 7, paper);
	}
	for (int side = 0; side < COST_SIDES; side++)
		cell(side ? 6 : 10, step_of(two, side, step));
	for (int side = 0; side < COST_SIDES; side++)
		cell(side ? 6 : 10, step_of(four, side, step));
	putchar('\n');
}

static void packet_features(const struct cost_tally *two, const struct cost_tally *four)
{
	for (int f = 0; f < COST_FEATURES_ALL; f++) {
		if (f == COST_PROGRAM || !(of(two, -1, f) + of(four, -1, f)))
			continue;
		printf("  %-18s%13s", feature_title[f], "");
		for (int side = 0; side < COST_SIDES; side++)
			cell(side ? 6 : 10, of(two, side, f));
		for (int side = 0; side < COST_SIDES; side++)
			cell(side ? 6 : 10, of(four, side, f));
		putchar('\n');
	}
}

static void table_packet(const struct cost_study *s, bool bold)
{
	const struct cost_result *two = study_find(s, "request-2"),
				 *four = study_find(s, "request-4");
	table_heading(bold, "\n1. A single packet: steps, at the source and at the destination");
	printf("%-20s%13s%16s%16s\n", "", "CMAM, CM-5", "Tern, 16 bytes", "Tern, 32 bytes");
	printf("%-20s%7s%6s%10s%6s%10s%6s\n", "", "src", "dst", "src", "dst", "src", "dst");
	for (int step = 0; step < COST_STEPS; step++)
		packet_row(step_title[step], &two->steady, &four->steady, step);
	packet_row("total", &two->steady, &four->steady, -1);
	puts("by feature");
	packet_features(&two->steady, &four->steady);
	printf("\nCMAM's 47 have no order, overflow safety or reliability; Tern's %lld and %lld have. They are for a\n"
	       "packet among others; a poll that finds one packet and no more takes %lld at the destination.\n",
	       (long long)cost_sum(&two->steady, COST_ALL),
	       (long long)cost_sum(&four->steady, COST_ALL),
	       (long long)of(&four->alone, COST_DESTINATION, -1));
}

/* -- Table 2 --------------------------------------------------------------------------------- */

static void sequence_row(const char *name, const struct cost_tally *paper,
			 const struct cost_tally *t, int feature)
{
	printf("%-20s", name);
	for (int side = 0; side < COST_SIDES; side++)
		cell(8, of(paper, side, feature));
	cell(8, of(paper, -1, feature));
	for (int side = 0; side < COST_SIDES; side++)
		cell(side ? 8 : 12, of(t, side, feature));
	cell(8, of(t, -1, feature));
	putchar('\n');
}

static void table_sequence(const struct cost_study *s, enum cost_form form, unsigned words)
{
	const struct cost_result *r = study_best(s, form, words);
	const struct cost_tally *paper = paper_sequence(form, words);
	printf("\n%s, %u words: %s (%s)\n", form == COST_FINITE ? "finite sequence" : "stream",
	       words, r->op->what, r->op->name);
	printf("%-20s%24s%28s\n", "", "CMAM, CM-5", "Tern, shared memory");
	printf("%-20s%8s%8s%8s%12s%8s%8s\n", "", "src", "dst", "both", "src", "dst", "both");
	for (int f = 0; f < COST_FEATURES_ALL; f++)
		if (f != COST_PROGRAM && of(paper, -1, f) + of(&r->steady, -1, f))
			sequence_row(feature_title[f], paper, &r->steady, f);
	sequence_row("total", paper, &r->steady, -1);
	printf("%-20s%24lld%28s\n", "on a better network", (long long)of(paper, -1, COST_BASE), "");
	if (r->steady.copy[0] + r->steady.copy[1])
		printf("%-20s%24s%12lld%8lld%8lld\n", "in it, the copy", "",
		       (long long)r->steady.copy[0], (long long)r->steady.copy[1],
		       (long long)(r->steady.copy[0] + r->steady.copy[1]));
}

static void table_sequences(const struct cost_study *s, bool bold)
{
	table_heading(bold,
		      "\n2. Sequences of packets: features, at the source and at the destination");
	puts("Words are of 32 bits. \"On a better network\" is what CMAM's base alone takes, where the network\n"
	     "keeps order, has room and loses nothing. Of what Tern can do, the cheapest is shown.");
	for (int words = 16; words <= 1024; words *= 64) {
		table_sequence(s, COST_FINITE, (unsigned)words);
		table_sequence(s, COST_STREAM, (unsigned)words);
	}
}

/* -- Table 6 --------------------------------------------------------------------------------- */

struct column {
	const char *title;
	const struct cost_tally *tally;
};

static void protocol_row(const char *name, const struct column *columns, unsigned n, int feature)
{
	printf("%-20s", name);
	for (unsigned i = 0; i < n; i++)
		cell(9, of(columns[i].tally, -1, feature));
	putchar('\n');
}

static void table_protocols(const struct cost_study *s, bool bold)
{
	enum { COLUMNS = 7 };
	const struct column columns[COLUMNS] = {
		{ "CMAM", paper_sequence(COST_FINITE, 16) },
		{ "full", &study_find(s, "block-16-full")->steady },
		{ "plain", &study_find(s, "block-16-plain")->steady },
		{ "CMAM", paper_sequence(COST_STREAM, 16) },
		{ "full", &study_find(s, "stream-16-full")->steady },
		{ "group", &study_find(s, "stream-16-group")->steady },
		{ "plain", &study_find(s, "stream-16-plain")->steady },
	};
	table_heading(bold,
		      "\n6. The study's protocols themselves, 16 words, both sides: features");
	printf("%-20s%27s%36s\n%-20s", "", "finite sequence", "indefinite sequence", "");
	for (unsigned i = 0; i < COLUMNS; i++)
		printf("%9s", columns[i].title);
	putchar('\n');
	for (int f = 0; f < COST_FEATURES_ALL; f++)
		if (f != COST_PROGRAM && f != COST_UNKNOWN)
			protocol_row(feature_title[f], columns, COLUMNS, f);
	protocol_row("total", columns, COLUMNS, -1);
	puts("\nFull: for a network that provides nothing. Plain: for one that keeps order, has room and loses nothing.\n"
	     "Group: one acknowledgement for all packets. The study counts the messages of a handshake and of an\n"
	     "acknowledgement with their feature; here a message is base, whatever it is for.");
}

static void table_candidates(const struct cost_study *s, bool bold)
{
	table_heading(bold, "\nWays to do it");
	printf("%-25s%7s%7s%7s%7s%8s%10s  %s\n", "operation", "src", "dst", "both", "copy", "alone",
	       "weighted", "what it is");
	for (size_t i = 0; i < operation_count; i++) {
		const struct cost_result *r = &s->result[i];
		if (!r->op)
			continue;
		printf("%-25s%7lld%7lld%7lld", r->op->name,
		       (long long)of(&r->steady, COST_SOURCE, -1),
		       (long long)of(&r->steady, COST_DESTINATION, -1),
		       (long long)cost_sum(&r->steady, COST_ALL));
		cell(7, r->steady.copy[0] + r->steady.copy[1]);
		printf("%8lld%10.6g  %s%s\n", (long long)cost_sum(&r->alone, COST_ALL),
		       study_weighted(s, &r->steady, COST_ALL), r->op->what,
		       r->same ? "" : " (not the same each time)");
	}
	puts("\nAlone: with a poll for this one. Copy: in it, the C library's memcpy; an instruction that moves\n"
	     "a string counts once, however long that is.");
}

/* -- Table 3 ------------------------------------------------------------------------------- */

static void kinds_row(const char *name, const struct cost_tally *t, int feature)
{
	printf("  %-18s", name);
	for (int side = 0; side < COST_SIDES; side++)
		for (int kind = 0; kind < COST_KINDS; kind++)
			cell(kind ? 6 : 9,
			     cost_sum(t, (struct cost_cut){ side, feature, -1, kind }));
	putchar('\n');
}

static void kinds_of(const struct cost_study *s, const char *name, const struct cost_tally *t)
{
	printf("%s\n", name);
	for (int f = 0; f < COST_FEATURES_ALL; f++)
		if (f != COST_PROGRAM && of(t, -1, f))
			kinds_row(feature_title[f], t, f);
	kinds_row("total", t, -1);
	printf("  %-18s%21.6g%21.6g\n", "weighted",
	       study_weighted(s, t, (struct cost_cut){ COST_SOURCE, -1, -1, -1 }),
	       study_weighted(s, t, (struct cost_cut){ COST_DESTINATION, -1, -1, -1 }));
}

static void table_kinds(const struct cost_study *s, bool bold)
{
	table_heading(
		bold,
		"\n3. Kinds of instructions: registers, memory, device (memory that the peer shares)");
	printf("Weighted: %g for one on registers, %g on memory, %g on the device.\n", s->weight[0],
	       s->weight[1], s->weight[2]);
	printf("  %-18s%21s%21s\n", "", "source", "destination");
	printf("  %-18s%9s%6s%6s%9s%6s%6s\n", "", "reg", "mem", "dev", "reg", "mem", "dev");
	for (int words = 16; words <= 1024; words *= 64)
		for (enum cost_form form = COST_FINITE; form <= COST_STREAM; form++) {
			printf("\n%s, %d words\n",
			       form == COST_FINITE ? "finite sequence" : "stream", words);
			kinds_of(s, "CMAM", paper_sequence(form, (unsigned)words));
			kinds_of(s, "Tern", &study_best(s, form, (unsigned)words)->steady);
		}
}

/* -- All of them --------------------------------------------------------------------------- */

void table_all(const struct cost_study *s, bool bold)
{
	printf("Instructions, counted by single-stepping; src: source, dst: destination.\n");
	table_packet(s, bold);
	table_sequences(s, bold);
	table_kinds(s, bold);
	table_heading(bold, "\n4. As a formula: p packets of n words");
	fit_formulas(s);
	table_heading(bold, "\n5. What is not base, of 1,024 words in packets of n words");
	fit_overhead(s);
	table_protocols(s, bold);
	table_candidates(s, bold);
}

/* A row of figures by side, unless there is nothing in it. */
static void named_row(const char *name, const struct cost_tally *t, struct cost_cut c)
{
	if (!cost_sum(t, c))
		return;
	printf("  %-18s", name);
	for (c.side = 0; c.side < COST_SIDES; c.side++)
		cell(8, cost_sum(t, c));
	c.side = -1;
	cell(8, cost_sum(t, c));
	putchar('\n');
}

static void named_parts(const struct cost_result *r)
{
	printf("%-20s%8s%8s%8s\n", "", "src", "dst", "both");
	for (int f = 0; f < COST_FEATURES_ALL; f++)
		if (f != COST_PROGRAM)
			named_row(feature_title[f], &r->steady, (struct cost_cut){ -1, f, -1, -1 });
	putchar('\n');
	for (int step = 0; step < COST_STEPS; step++)
		named_row(step_title[step], &r->steady, (struct cost_cut){ -1, -1, step, -1 });
	putchar('\n');
	for (int kind = 0; kind < COST_KINDS; kind++)
		named_row(cost_kind_name[kind], &r->steady, (struct cost_cut){ -1, -1, -1, kind });
}

void table_named(const struct cost_study *s, bool bold)
{
	table_candidates(s, bold);
	for (size_t i = 0; i < operation_count; i++)
		if (s->result[i].op) {
			table_heading(bold, "\n%s: %s", s->result[i].op->name,
				      s->result[i].op->what);
			named_parts(&s->result[i]);
		}
}
