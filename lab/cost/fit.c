/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Formulas in n, the words of a packet, and p, the packets of a message, as figure 8 has them. Each
 * goes through three counts: n = 4 with few packets and with many, and n = 8 with many. The fourth,
 * n = 8 with few, is computed and shown beside what was counted. What a ring takes once in 126
 * lines is in the long counts, and so, shared out, in each packet's part.
 */
#include "lab/cost/study.h"

#include <math.h>
#include <stdio.h>

/* A message takes `once`, and each of its packets `packet` and `word` for each word of it. */
struct cost_fit {
	double once, packet, word;
};

enum { MESSAGE = 1024, COUNTS = 4 };

static const struct {
	unsigned words, n;
} counts[COUNTS] = { { 16, 4 }, { 1024, 4 }, { 1024, 8 }, { 16, 8 } };

static double count_packets(int i)
{
	return counts[i].words / (double)counts[i].n;
}

static double count_of(const struct cost_study *s, const char *name, int i, struct cost_cut c)
{
	char operation[40];
	snprintf(operation, sizeof operation, "%s-%u-by-%u", name, counts[i].words, counts[i].n);
	return (double)cost_sum(&study_find(s, operation)->alone, c);
}

static struct cost_fit fit(const struct cost_study *s, const char *name, struct cost_cut c)
{
	double few = count_of(s, name, 0, c), many = count_of(s, name, 1, c);
	double by4 = (many - few) / (count_packets(1) - count_packets(0)),
	       once = few - count_packets(0) * by4;
	double by8 = (count_of(s, name, 2, c) - once) / count_packets(2), word = (by8 - by4) / 4;
	return (struct cost_fit){ .once = once, .packet = by4 - 4 * word, .word = word };
}

static double fit_value(const struct cost_fit *f, double n, double p)
{
	return f->once + (f->packet + f->word * n) * p;
}

/* -- As text ------------------------------------------------------------------------------- */

/* "140 + (17 + 0.5n)p"; "-" for nothing at all. What is shown is rounded, what is computed not. */
static void formula_text(const struct cost_fit *f, char *text, size_t len)
{
	double once = round(f->once * 10) / 10, packet = round(f->packet * 100) / 100,
	       word = round(f->word * 100) / 100;
	if (!once && !packet && !word)
		snprintf(text, len, "-");
	else if (!packet && !word)
		snprintf(text, len, "%.5g", once);
	else
		snprintf(text, len, "%.5g + (%.5g %c %.4gn)p", once, packet, word < 0 ? '-' : '+',
			 fabs(word));
}

static void formula_row(struct rows *w, const struct cost_study *s, const char *title,
			const char *name, int feature)
{
	static const char *const heads[] = { "source", "destination", "both" };
	rows_text(w, NULL, "", -12, title);
	for (int side = COST_SOURCE; side <= COST_SIDES; side++) {
		struct cost_cut c = { side == COST_SIDES ? -1 : side, feature, -1, -1 };
		struct cost_fit f = fit(s, name, c);
		char text[80];
		formula_text(&f, text, sizeof text);
		rows_text(w, NULL, heads[side], side < COST_SIDES ? -26 : 0, text);
	}
	rows_end_row(w);
}

static void formula_check(const struct cost_study *s, const char *name)
{
	struct cost_fit f = fit(s, name, COST_ALL);
	printf("  words, n: formula, count   ");
	for (int i = 0; i < COUNTS; i++)
		printf("%s%u, %u: %.0f, %.0f", i ? "; " : "", counts[i].words, counts[i].n,
		       fit_value(&f, counts[i].n, count_packets(i)),
		       count_of(s, name, i, COST_ALL));
	putchar('\n');
}

static void formulas(const struct cost_study *s, const char *what, const char *name, int features)
{
	struct rows w;
	puts(what);
	rows_begin(&w, ROWS_TABLE, stdout);
	for (int f = 0; f < features; f++)
		formula_row(&w, s, cost_feature_name[f], name, f);
	formula_row(&w, s, "total", name, -1);
	formula_check(s, name);
}

void fit_formulas(const struct cost_study *s)
{
	formulas(s, "Tern, finite", "block", COST_FAULT + 1);
	formulas(s, "Tern, indefinite", "ordered", COST_FAULT + 1);
	formulas(s, "Tern, requests on shared memory as it is", "stream", COST_FEATURES);
	puts("CMAM, finite      217 + (37 + 2n)p, of which base 21 + (32 + 2n)p\n"
	     "CMAM, indefinite  13 + (111 + 1.5n)p, of which base 13 + (30 + n)p");
}

/* -- Overhead ------------------------------------------------------------------------------ */

static double overhead(const struct cost_study *s, const char *name, int i)
{
	struct cost_cut base = { -1, COST_BASE, -1, -1 };
	return 100 * (1 - count_of(s, name, i, base) / count_of(s, name, i, COST_ALL));
}

static double paper_overhead(enum cost_form form, double n)
{
	return 100 * (1 - paper_base(form, MESSAGE, n) / paper_total(form, MESSAGE, n));
}

/* Tern's packets have no more than 8 words. */
static void overhead_cell(struct rows *w, const char *head, int width, double value, bool none)
{
	rows_real(w, NULL, head, width, value, none ? "-" : "%.0f %%", value);
}

void fit_overhead(const struct cost_study *s)
{
	struct rows w;
	rows_begin(&w, ROWS_TABLE, stdout);
	for (unsigned n = 4; n <= 128; n *= 2) {
		int i = n == 4 ? 1 : 2; /* of the counts */
		rows_whole(&w, NULL, "n", 6, n, NULL);
		rows_whole(&w, NULL, "packets", 8, MESSAGE / n, NULL);
		overhead_cell(&w, "CMAM, finite", 14, paper_overhead(COST_FINITE, n), false);
		overhead_cell(&w, "CMAM, indefinite", 18, paper_overhead(COST_STREAM, n), false);
		overhead_cell(&w, "Tern, finite", 14, overhead(s, "block", i), n > 8);
		overhead_cell(&w, "Tern, indefinite", 18, overhead(s, "ordered", i), n > 8);
		rows_end_row(&w);
	}
	puts("A line of Tern's carries eight words of a protocol.");
}
