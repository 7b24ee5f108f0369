/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --paper`: plays the tables of the papers one after another, and prints them with the
 * papers' own figures and what follows from both: start-up cost and cost of a byte.
 */
#include "lab/perf/compare/paper.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "lab/bench/pair.h"
#include "lab/bench/ranks.h"
#include "lab/perf/perf.h"
#include "tools/common/json.h"
#include "tools/common/table.h"

static const struct paper_table *const tables[] = { &paper_thesis, &paper_phases, &paper_flash,
						    &paper_ipsc };
enum { TABLES = sizeof tables / sizeof *tables, ROWS_MOST = 64 };

struct line {
	const struct paper_row *row;
	const struct paper_said *said;
	struct series_estimate ns;
	double cycles, rate; /* NaN, and MB/s */
};

/* All that was measured. */
struct paper {
	struct line line[TABLES][ROWS_MOST];
	double ticks; /* of the processor's counter, in a nanosecond; NaN without one */
};

static const struct paper_said *said_of(const struct paper_table *t, const char *name)
{
	static const struct paper_said none = { .tables = "" };
	for (const struct paper_said *s = t->said; s->name; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return &none;
}

static struct line line_make(const struct paper_table *t, const struct paper_row *row,
			     struct series *s, double ticks)
{
	struct line l = { row, said_of(t, row->name), series_estimate(s), NAN, NAN };
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

static void model_print(const struct paper *p, bool bold)
{
	struct model_row row[MODEL_ROWS];
	char cell[4][CELL];
	model_make(p, row);
	table_heading(bold, "The models of 4.2.4.1 and 4.3.4.1");
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

static const char *cell_ncube(char *cell, const struct paper_said *row)
{
	if (row->ncube.us == 0)
		return "-";
	if (row->ncube.instructions)
		snprintf(cell, CELL, "%g us, %u instr", row->ncube.us, row->ncube.instructions);
	else
		snprintf(cell, CELL, "%g us", row->ncube.us);
	return cell;
}

static const char *cell_cm5(char *cell, const struct paper_said *row)
{
	if (row->cm5.us == 0)
		return "-";
	snprintf(cell, CELL, "%.1f us, %.1f cyc", row->cm5.us, row->cm5.cycles);
	return cell;
}

/* What the table's machine took, and moved. */
static const char *cell_other(char *cell, const struct paper_said *row)
{
	if (row->other.us == 0)
		return "-";
	if (row->other.rate != 0)
		snprintf(cell, CELL, "%g us, %g MB/s", row->other.us, row->other.rate);
	else
		snprintf(cell, CELL, "%g us", row->other.us);
	return cell;
}

/* The last columns: what the papers have. */
static void theirs_print(const struct paper_table *t, const struct paper_said *row)
{
	char ncube[CELL], cm5[CELL], rate[CELL];
	if (t->machine)
		printf("  %18s\n", cell_other(cm5, row));
	else
		printf("  %16s  %17s  %9s\n", cell_ncube(ncube, row), cell_cm5(cm5, row),
		       cell_figure(rate, row->cm5.rate == 0 ? NAN : row->cm5.rate, 3, ""));
}

static void row_print(const struct paper_table *t, const struct line *l)
{
	char ns[CELL], low[CELL], high[CELL], range[2 * CELL + 4] = "-", cycles[CELL], rate[CELL];
	if (!isnan(l->ns.median))
		snprintf(range, sizeof range, "%s %s", cell_figure(low, l->ns.low, 3, ""),
			 cell_figure(high, l->ns.high, 3, ""));
	printf("%-25s  %-8s  %8s  %13s  %7s  %6s", l->row->name, l->said->tables,
	       cell_figure(ns, l->ns.median, 3, ""), range, cell_figure(cycles, l->cycles, 3, ""),
	       cell_figure(rate, l->rate / 1000, 3, ""));
	theirs_print(t, l->said);
}

static void table_print(const struct paper_table *t, const struct line *line, bool bold)
{
	char theirs[2 * CELL];
	if (t->machine)
		snprintf(theirs, sizeof theirs, "%18s", t->machine);
	else
		snprintf(theirs, sizeof theirs, "%16s  %17s  %9s", "nCUBE/2", "CM-5", "CM-5 MB/s");
	table_heading(bold, "%s", t->title);
	printf("%-25s  %-8s  %8s  %13s  %7s  %6s  %s\n", "operation",
	       t->machine ? "section" : "table", "ns", "95 % interval", "cycles", "GB/s", theirs);
	for (unsigned i = 0; i < t->rows; i++)
		row_print(t, &line[i]);
	putchar('\n');
	for (const char *const *note = t->notes; *note; note++)
		puts(*note);
	if (t->test.amount.ranks > cpu_count())
		printf("%u ranks share %u core%s: this says little\n", t->test.amount.ranks,
		       cpu_count(), cpu_count() == 1 ? "" : "s");
	putchar('\n');
}

static void paper_print(const struct paper *p, bool bold)
{
	for (unsigned t = 0; t < TABLES; t++) {
		table_print(tables[t], p->line[t], bold);
		if (tables[t] == &paper_phases) {
			model_print(p, bold);
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

/* -- JSON ----------------------------------------------------------------------------- */

/* null where there is no figure. */
static void json_some(struct json *j, const char *key, double value)
{
	json_real(j, key, value == 0 ? NAN : value);
}

static void json_line(struct json *j, const struct paper_table *t, const struct line *l)
{
	const struct paper_said *said = l->said;
	json_begin(j, NULL, '{');
	json_text(j, "paper", t->key);
	json_text(j, "operation", l->row->name);
	json_text(j, "tables", *said->tables ? said->tables : NULL);
	json_real(j, "value", l->ns.median);
	json_real(j, "low", l->ns.low);
	json_real(j, "high", l->ns.high);
	json_text(j, "unit", l->row->bytes == 1 ? "ns/B" : "ns");
	json_real(j, "cycles", l->cycles);
	json_real(j, "mb_per_s", l->rate);
	json_some(j, "ncube2_us", said->ncube.us);
	json_some(j, "ncube2_instructions", said->ncube.instructions);
	json_some(j, "cm5_us", said->cm5.us);
	json_some(j, "cm5_cycles", said->cm5.cycles);
	json_some(j, "cm5_mb_per_s", said->cm5.rate);
	json_some(j, "theirs_us", said->other.us);
	json_some(j, "theirs_mb_per_s", said->other.rate);
	json_end(j, '}');
}

static void json_print(const struct paper *p)
{
	struct json j = { .to = stdout };
	json_begin(&j, NULL, '[');
	for (unsigned t = 0; t < TABLES; t++)
		for (unsigned i = 0; i < tables[t]->rows; i++)
			json_line(&j, tables[t], &p->line[t][i]);
	json_end(&j, ']');
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
		parts[i] = (struct part){ .phase = { .figure = row->play, .way = row->way },
					  .size = row->size,
					  .count = count > share ? count / share : 1 };
	}
	int rc = ranks_play(&t->test, 0, parts, t->rows, rounds, &result);
	for (unsigned i = 0; i < t->rows && !rc; i++)
		line[i] = line_make(t, &t->row[i], &result.part[i], ticks);
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
		paper_print(&p, !o->plain && isatty(STDOUT_FILENO));
	return 0;
}
