/* SPDX-License-Identifier: BSD-3-Clause */
/* Fits straight lines to what was counted, and prints them as formulas. */
#include "tools/cost/study.h"

#include <math.h>
#include <stdio.h>

/* A message takes `once`, and each of its packets `packet` and `word` for each word of it. */
struct cost_fit {
	double once, packet, word;
	double off; /* by how much a figure differs from the line through all, at most */
};

enum { MESSAGE = 1024, REQUESTS = 3, FIT_SIZES = 7 };

/* The packets that are fitted, by their words, and the operations that have them. */
static const unsigned fit_size[FIT_SIZES] = { 4, 8, 12, 16, 32, 64, 128 };
static const char *const fit_name[FIT_SIZES] = { "request-2",      "request-4",  "request-6",
						 "finite-16-data", "payload-32", "payload-64",
						 "payload-128" };

static double steady_of(const struct cost_study *s, int i, int side, int feature)
{
	struct cost_cut c = { side, feature, -1, -1 };
	return (double)cost_sum(&study_find(s, fit_name[i])->steady, c);
}

/* What a message costs but its packets do not: the way of a poll to its first packet and back. */
static double once_of(const struct cost_study *s, int i, int side, int feature)
{
	struct cost_cut c = { side, feature, -1, -1 };
	return (double)cost_sum(&study_find(s, fit_name[i])->alone, c) -
	       steady_of(s, i, side, feature);
}

/* The line of least squares through sizes `from` to `to`. */
static struct cost_fit fit(const struct cost_study *s, int from, int to, int side, int feature)
{
	double n = to - from + 1, x = 0, y = 0, xx = 0, xy = 0;
	for (int i = from; i <= to; i++) {
		double value = steady_of(s, i, side, feature);
		x += fit_size[i];
		y += value;
		xx += (double)fit_size[i] * fit_size[i];
		xy += fit_size[i] * value;
	}
	struct cost_fit f = { .once = once_of(s, from, side, feature) };
	f.word = (n * xy - x * y) / (n * xx - x * x);
	f.packet = (y - f.word * x) / n;
	for (int i = from; i <= to; i++)
		f.off = fmax(f.off, fabs(f.packet + f.word * fit_size[i] -
					 steady_of(s, i, side, feature)));
	return f;
}

/* Packets of up to 12 words are requests, those of 16 to 128 payloads. */
static struct cost_fit fit_requests(const struct cost_study *s, int side, int feature)
{
	return fit(s, 0, REQUESTS - 1, side, feature);
}

static struct cost_fit fit_payloads(const struct cost_study *s, int side, int feature)
{
	return fit(s, REQUESTS, FIT_SIZES - 1, side, feature);
}

/* -- As text ------------------------------------------------------------------------------- */

/* Rounded to what is shown, so that what least squares leave of a whole number does not show. */
static double tidy(double value)
{
	return round(value * 1000) / 1000;
}

/* "140 + (17 + 0.5n)p"; "-" for nothing at all. */
static void formula_text(const struct cost_fit *f, char *text, size_t len)
{
	double once = tidy(f->once), packet = tidy(f->packet), word = tidy(f->word);
	char each[48] = "";
	if (word)
		snprintf(each, sizeof each, "(%.4g + %.3gn)p", packet, word);
	else if (packet)
		snprintf(each, sizeof each, packet == 1 ? "p" : "%.4gp", packet);
	if (once && *each)
		snprintf(text, len, "%.4g + %s", once, each);
	else if (once)
		snprintf(text, len, "%.4g", once);
	else
		snprintf(text, len, "%s", *each ? each : "-");
}

static void formula_row(const char *name, const struct cost_study *s, int feature,
			struct cost_fit (*of)(const struct cost_study *, int, int))
{
	printf("  %-12s", name);
	for (int side = COST_SOURCE; side <= COST_SIDES; side++) {
		struct cost_fit f = of(s, side == COST_SIDES ? -1 : side, feature);
		char text[80];
		formula_text(&f, text, sizeof text);
		printf("%s%-26s", side ? " " : "", text);
	}
	putchar('\n');
}

static void formulas(const struct cost_study *s, const char *what,
		     struct cost_fit (*of)(const struct cost_study *, int, int))
{
	printf("%s\n  %-12s%-26s %-26s %s\n", what, "", "source", "destination", "both");
	for (int f = 0; f < COST_FEATURES; f++)
		if (cost_sum(&study_find(s, "finite-16-data")->alone,
			     (struct cost_cut){ -1, f, -1, -1 }))
			formula_row(cost_feature_name[f], s, f, of);
	formula_row("total", s, -1, of);
}

void fit_formulas(const struct cost_study *s)
{
	struct cost_fit f = fit_payloads(s, -1, -1);
	formulas(s, "Tern, requests, n up to 12 words of 32 bits", fit_requests);
	formulas(s, "Tern, payloads, n from 16 to 128", fit_payloads);
	printf("  (a payload's copy is no line: within %.0f instructions)\n", ceil(f.off));
	puts("CMAM, finite     217 + (37 + 2n)p, of which base 21 + (32 + 2n)p\n"
	     "CMAM, stream     13 + (111 + 1.5n)p, of which base 13 + (30 + n)p");
}

/* -- Overhead ------------------------------------------------------------------------------ */

/* What 1,024 words take in packets of n words, of one feature or (-1) of all. */
static double fit_message(const struct cost_study *s, unsigned n, int feature)
{
	int i = 0;
	while (fit_size[i] != n)
		i++;
	return once_of(s, i, -1, feature) +
	       ceil((double)MESSAGE / n) * steady_of(s, i, -1, feature);
}

void fit_overhead(const struct cost_study *s)
{
	printf("%6s%10s%16s%16s%14s%16s\n", "n", "packets", "CMAM, finite", "CMAM, stream", "Tern",
	       "instructions");
	for (int i = 0; i < FIT_SIZES; i++) {
		double n = fit_size[i], total = fit_message(s, fit_size[i], -1);
		printf("%6.0f%10.0f%14.0f %%%14.0f %%%12.0f %%%16.0f\n", n, ceil(MESSAGE / n),
		       100 * (1 - paper_base(COST_FINITE, MESSAGE, n) /
					  paper_total(COST_FINITE, MESSAGE, n)),
		       100 * (1 - paper_base(COST_STREAM, MESSAGE, n) /
					  paper_total(COST_STREAM, MESSAGE, n)),
		       100 * (1 - fit_message(s, fit_size[i], COST_BASE) / total), total);
	}
}
