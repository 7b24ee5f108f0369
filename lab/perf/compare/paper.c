/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --paper`: plays the tables of the papers one after another, and prints them with the
 * papers' own figures and what follows from both: start-up cost and cost of a byte.
 */
#include "lab/perf/compare/paper.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "lab/bench/pair.h"
#include "lab/bench/ranks.h"
#include "lab/perf/perf.h"
#include "tools/common/table.h"

static const struct paper_table *const tables[] = { &paper_thesis, &paper_phases, &paper_flash };
enum { TABLES = sizeof tables / sizeof *tables, ROWS_MOST = 64 };

struct line {
	const struct paper_row *row;
	struct series_estimate ns;
	double cycles, rate; /* NaN, and MB/s */
};

/* All that was measured. */
struct paper {
	struct line line[TABLES][ROWS_MOST];
	double ticks; /* of the processor's counter, in a nanosecond; NaN without one */
};

static struct line line_make(const struct paper_row *row, struct series *s, double ticks)
{
	struct line l = { row, series_estimate(s), NAN, NAN };
	l.cycles = l.ns.median * ticks;
	if (row->bytes > 1)
		l.rate = 1000 * row->bytes / l.ns.median;
	return l;
}

/* The median of the row of that name; NaN without one. */
static double paper_ns(const struct paper *p, const char *name)
{
	for (unsigned t = 0; t < TABLES; t++)
		for (unsigned i = 0; i < tables[t]->rows; i++)
			if (strcmp(tables[t]->row[i].name, name) == 0)
				return p->line[t][i].ns.median;
	return NAN;
}

/* -- The models (4.2.4.1, 4.3.4.1) ----------------------------------------------------- */

/* As the thesis puts it: NaN where it has no figure, or nothing was measured. */
struct model_row {
	const char *name, *unit;
	double messages, xfer; /* here */
	double ncube, cm5;
};

enum { MODEL_ROWS = 5, XFER_BYTES = 1024 };

/*
 * Of messages alpha is both overheads by the phases, as for the nCUBE/2, and beta the injection of
 * a byte. Of transfers alpha is a segment, the way of its name and a message (for the CM-5 that is
 * 6.7 + 5.6 + 3.1 = 15.4 us), and beta a byte of a transfer.
 */
static void model_make(const struct paper *p, struct model_row row[MODEL_ROWS])
{
	double alpha = paper_ns(p, "send, to two ranks") + paper_ns(p, "handle, from two ranks");
	double beta = paper_ns(p, "injection, for each byte");
	double segment = paper_ns(p, "open and close a segment") +
			 paper_ns(p, "round trip, neighbour") / 2 +
			 paper_ns(p, "send request, 4 words") + paper_ns(p, "handle request");
	double byte = paper_ns(p, "xfer N words, request") / XFER_BYTES;
	const struct model_row made[MODEL_ROWS] = {
		{ "alpha, start-up", "us", alpha / 1000, segment / 1000, 28, 15.5 },
		{ "beta, each byte", "ns", beta, byte, 450, 100 },
		{ "R-infinity, 1 / beta", "MB/s", 1000 / beta, 1000 / byte, 2.2, 10 },
		{ "N-half, alpha / beta", "bytes", alpha / beta, segment / byte, 62, 155 },
		{ "cycles per message", "cycles", alpha * p->ticks, NAN, 700, 100 },
	};
	memcpy(row, made, sizeof made);
}

static void model_print(const struct paper *p)
{
	struct model_row row[MODEL_ROWS];
	char cell[4][CELL];
	model_make(p, row);
	table_heading("The models of 4.2.4.1 and 4.3.4.1");
	printf("%-22s  %-6s  %14s  %14s  %8s  %8s\n", "", "unit", "here, messages",
	       "here, transfer", "nCUBE/2", "CM-5");
	for (unsigned i = 0; i < MODEL_ROWS; i++)
		printf("%-22s  %-6s  %14s  %14s  %8s  %8s\n", row[i].name, row[i].unit,
		       cell_figure(cell[0], row[i].messages, 3, ""),
		       cell_figure(cell[1], row[i].xfer, 3, ""),
		       cell_figure(cell[2], row[i].ncube, 3, ""),
		       cell_figure(cell[3], row[i].cm5, 3, ""));
	puts("\nmessages: both overheads by the phases above, and the injection of a byte; "
	     "transfer: a segment, half a round\ntrip for its name and a message, and a byte of "
	     "`xfer N words, request`, which is the processor's part alone.\nThe thesis says "
	     "\"around 700\" cycles, where 28 us are 560 at its 20 MHz");
}

/* -- The tables ------------------------------------------------------------------------ */

/* What a machine of the papers took, and another figure of it if there is one. */
static const char *cell_said(char *cell, double us, const char *format, double more)
{
	if (us == 0)
		return "-";
	if (more == 0)
		snprintf(cell, CELL, "%g us", us);
	else
		snprintf(cell, CELL, format, us, more);
	return cell;
}

/* Zero where a paper has no figure. */
static double some(double figure)
{
	return figure == 0 ? NAN : figure;
}

static const char *cell_range(char cell[2 * CELL], const struct series_estimate *e)
{
	char low[CELL], high[CELL];
	if (isnan(e->median))
		return "-";
	snprintf(cell, 2 * CELL, "%s %s", cell_figure(low, e->low, 3, ""),
		 cell_figure(high, e->high, 3, ""));
	return cell;
}

/* The table of a paper on one machine has that column instead of the thesis' three. */
static void row_write(struct rows *w, const struct paper_table *t, const struct line *l)
{
	const struct paper_row *said = l->row;
	char cell[2 * CELL];
	rows_text(w, "paper", NULL, 0, t->key);
	rows_text(w, "operation", "operation", -25, l->row->name);
	rows_text(w, "tables", t->machine ? "section" : "table", -8,
		  *said->tables ? said->tables : NULL);
	rows_real(w, "value", "ns", 8, l->ns.median, "%s", cell_figure(cell, l->ns.median, 3, ""));
	rows_text(w, NULL, "95 % interval", 13, cell_range(cell, &l->ns));
	rows_real(w, "low", NULL, 0, l->ns.low, NULL);
	rows_real(w, "high", NULL, 0, l->ns.high, NULL);
	rows_text(w, "unit", NULL, 0, l->row->bytes == 1 ? "ns/B" : "ns");
	rows_real(w, "cycles", "cycles", 7, l->cycles, "%s", cell_figure(cell, l->cycles, 3, ""));
	rows_real(w, "mb_per_s", "GB/s", 6, l->rate, "%s",
		  cell_figure(cell, l->rate / 1000, 3, ""));
	rows_real(w, "ncube2_us", t->machine ? NULL : "nCUBE/2", 16, some(said->ncube.us), "%s",
		  cell_said(cell, said->ncube.us, "%g us, %.0f instr", said->ncube.instructions));
	rows_real(w, "ncube2_instructions", NULL, 0, some(said->ncube.instructions), NULL);
	rows_real(w, "cm5_us", t->machine ? NULL : "CM-5", 17, some(said->cm5.us), "%s",
		  cell_said(cell, said->cm5.us, "%.1f us, %.1f cyc", said->cm5.cycles));
	rows_real(w, "cm5_cycles", NULL, 0, some(said->cm5.cycles), NULL);
	rows_real(w, "cm5_mb_per_s", t->machine ? NULL : "CM-5 MB/s", 9, some(said->cm5.rate), "%s",
		  cell_figure(cell, some(said->cm5.rate), 3, ""));
	rows_real(w, "theirs_us", t->machine, 18, some(said->other.us), "%s",
		  cell_said(cell, said->other.us, "%g us, %g MB/s", said->other.rate));
	rows_real(w, "theirs_mb_per_s", NULL, 0, some(said->other.rate), NULL);
	rows_end_row(w);
}

static void table_print(const struct paper_table *t, const struct line *line)
{
	struct rows w;
	table_heading("%s", t->title);
	rows_begin(&w, ROWS_TABLE, stdout);
	for (unsigned i = 0; i < t->rows; i++)
		row_write(&w, t, &line[i]);
	putchar('\n');
	for (const char *const *note = t->notes; *note; note++)
		puts(*note);
	if (t->test.ranks > cpu_count())
		printf("%u ranks share %u core%s: this says little\n", t->test.ranks, cpu_count(),
		       cpu_count() == 1 ? "" : "s");
	putchar('\n');
}

static void paper_print(const struct paper *p)
{
	for (unsigned t = 0; t < TABLES; t++) {
		table_print(tables[t], p->line[t]);
		if (tables[t] == &paper_phases) {
			model_print(p);
			putchar('\n');
		}
	}
	puts("ns: the median over rounds. 95 % interval: between two of the rounds' figures, in "
	     "order; of many runs like\nthis one it would hold the true median in 95 of 100, if "
	     "rounds did not depend on each other; with fewer than\n6 rounds it is the whole "
	     "range. Rows of one table take turns in the same rounds, and each has a median of "
	     "its\nown: sums of rows need not agree with another row. Tables are played one "
	     "after another, independently");
	puts(isnan(p->ticks) ? "cycles: this processor has no counter of constant rate"
			     : "cycles: ticks of the processor's counter, at its nominal rate");
}

static void json_print(const struct paper *p)
{
	struct rows w;
	rows_begin(&w, ROWS_JSON, stdout);
	for (unsigned t = 0; t < TABLES; t++)
		for (unsigned i = 0; i < tables[t]->rows; i++)
			row_write(&w, tables[t], &p->line[t][i]);
	rows_end(&w);
}

/*
 * Ticks of the processor's counter in a nanosecond, where it has one of constant rate that
 * is known to go on in every state; otherwise NaN. The rate is the processor's nominal
 * one, at which it need not run. Takes some milliseconds.
 */
#if defined(__x86_64__)

#include <cpuid.h>
#include <x86intrin.h>

enum { CALIBRATION_NS = 20000000, POWER_LEAF = 0x80000007, CONSTANT = 1 << 8 };

static bool cycles_constant(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(POWER_LEAF, &a, &b, &c, &d) && d & CONSTANT;
}

static double cycles_rate(void)
{
	if (!cycles_constant())
		return NAN;
	uint64_t began = clock_ns(), first = __rdtsc(), now;
	do
		now = clock_ns();
	while (now - began < CALIBRATION_NS);
	return (double)(__rdtsc() - first) / (double)(now - began);
}

#else

static double cycles_rate(void)
{
	return NAN;
}

#endif

/* -- The run --------------------------------------------------------------------------- */

static int table_play(const struct paper_table *t, uint64_t count, unsigned rounds,
		      struct line *line, double ticks)
{
	static struct ranks_result result; /* large */
	struct part parts[ROWS_MOST];
	memset(&result, 0, sizeof result);
	for (unsigned i = 0; i < t->rows; i++) {
		const struct paper_row *row = &t->row[i];
		unsigned share = row->share ? row->share : 1;
		parts[i] = (struct part){
			.phase = { .figure = row->play, .act = row->act, .way = row->way },
			.size = row->size,
			.count = count > share ? count / share : 1
		};
	}
	int rc = ranks_play(&t->test, 0, parts, t->rows, rounds, &result);
	for (unsigned i = 0; i < t->rows && !rc; i++)
		line[i] = line_make(&t->row[i], &result.part[i], ticks);
	return rc;
}

/* Over a network everything takes longer, by system calls. */
int paper_main(const struct perf_options *o)
{
	enum { COUNT = 10000, ROUNDS = 101, QUICK_ROUNDS = 21, NET_COUNT = 200, NET_ROUNDS = 15 };
	static struct paper p;
	bool net = pair_networked();
	uint64_t count = o->count ? o->count : net ? NET_COUNT : COUNT;
	unsigned rounds = perf_rounds(o, net ? NET_ROUNDS : ROUNDS, QUICK_ROUNDS);
	int rc = 0;
	p.ticks = cycles_rate();
	for (unsigned t = 0; t < TABLES && !rc; t++)
		rc = table_play(tables[t], count, rounds, p.line[t], p.ticks);
	if (rc)
		return rc;
	if (o->json)
		json_print(&p);
	else
		paper_print(&p);
	return 0;
}
