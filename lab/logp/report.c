/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `tern logp` prints: parameters, predictions, and the thesis's figures (table 4-12) beside
 * them.
 */
#include "lab/logp/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "tools/common/rows.h"
#include "tools/common/table.h"

/* Times in microseconds; NaN where there is none. */
struct thesis_row {
	const char *machine, *layer, *message;
	double latency, overhead, gap;
	unsigned processors;
	double processor; /* its part of the overhead, which is known of this machine alone */
};

/*
 * Words of those machines have 32 bits. Where the table has "8 bytes" it means 8 words (see table
 * 4-2).
 */
static const struct thesis_row thesis[] = {
	{ "nCUBE/2", "Active Messages", "32 bytes", 25, 14, 14, 1024, NAN },
	{ "nCUBE/2", "Active Messages", "1 KiB", 471, 14, 236, 1024, NAN },
	{ "nCUBE/2", "send&receive", "1 KiB", 471, 80, 236, 1024, NAN },
	{ "CM-5", "CMAM", "16 bytes", 6, 1.6, 4, 1024, NAN },
};

enum { THESIS_BYTES = LOGP_LARGE };

/* -- Cells -------------------------------------------------------------------------- */

/* The median, and its interval where there is one. */
static const char *figure_estimate(char *cell, const struct series_estimate *e)
{
	char median[CELL], low[CELL], high[CELL];
	if (isnan(e->median))
		return "-";
	snprintf(cell, CELL, "%.12s (%.12s %.12s)", cell_figure(median, e->median, 4, ""),
		 cell_figure(low, e->low, 4, ""), cell_figure(high, e->high, 4, ""));
	return cell;
}

static const char *figure_size(char *cell, bool bytes, uint32_t size)
{
	snprintf(cell, CELL, "%u %s%s", size, bytes ? "byte" : "word", size == 1 ? "" : "s");
	return cell;
}

/* -- Parameters ---------------------------------------------------------------------- */

static void size_write(struct rows *w, const struct logp_size *s)
{
	static const char *const heads[LOGP_NAMES] = { "round trip, ns", "o_s, ns", "L, ns",
						       "o_r, ns", "g, ns" };
	char cell[CELL];
	rows_text(w, NULL, "message", -10, figure_size(cell, s->bytes, s->size));
	for (unsigned i = 0; i < LOGP_NAMES; i++)
		rows_text(w, NULL, heads[i], 19, figure_estimate(cell, &s->is[i]));
	rows_end_row(w);
}

static void single_row(const char *name, const struct series_estimate *e, const char *unit,
		       const char *what)
{
	char cell[CELL];
	printf("%-10s  %19s  %s: %s\n", name, figure_estimate(cell, e), unit, what);
}

static void burst_row(const struct logp_model *m)
{
	char cell[CELL];
	printf("%-10s", "bursts");
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		printf("%s of %u %s", i ? "," : " ", logp_bursts[i],
		       cell_figure(cell, m->burst[i].median, 4, ""));
	puts("  ns: g in a burst of so many messages");
}

/* The papers' overheads, and what can be said of three ranks only. */
static void phases_rows(const struct overhead *o)
{
	if (!o->played)
		return;
	single_row("o_s, phase", &o->is[OVERHEAD_WORDS], "ns",
		   "a rank sends to two in turn (papers' phase, three ranks)");
	single_row("o_r, phase", &o->is[OVERHEAD_WORDS + 1], "ns",
		   "two ranks send to one (papers' phase, three ranks)");
}

static void parameters_table(const struct logp_outcome *o)
{
	const struct logp_model *m = &o->model;
	struct rows w;
	rows_begin(&w, ROWS_TABLE, stdout);
	for (unsigned i = 0; i < m->n; i++)
		size_write(&w, &m->size[i]);
	putchar('\n');
	single_row("G", &m->per_byte, "ns a byte",
		   "how g grows with a payload of 1024 bytes or more");
	single_row("L, P ranks", &m->latency, "ns",
		   "L between neighbours, the mean over all of them");
	phases_rows(&o->phases);
	burst_row(m);
	printf("%-10s  %19u  ranks, on %u core%s\n", "P", m->ranks, cpu_count(),
	       cpu_count() == 1 ? "" : "s");
}

/* -- The thesis ---------------------------------------------------------------------- */

/* The papers' o of one kind of message, in microseconds; NaN where no phases were played. */
static double phases_overhead(const struct overhead *o, enum overhead_kind kind)
{
	return o->played ? (o->is[2 * kind].median + o->is[2 * kind + 1].median) / 2000 : NAN;
}

static struct thesis_row here_messages(const struct logp_outcome *o, const struct logp_size *s,
				       const char *message)
{
	enum overhead_kind kind = s->bytes ? OVERHEAD_BYTES : OVERHEAD_WORDS;
	return (struct thesis_row){
		.machine = "here",
		.layer = "Tern",
		.message = s->bytes ? "1 KiB" : message,
		.latency = s->is[LOGP_LATENCY].median / 1000,
		.overhead = phases_overhead(&o->phases, kind),
		.gap = s->is[LOGP_GAP].median / 1000,
		.processors = o->model.ranks,
		.processor = (s->is[LOGP_SEND].median + s->is[LOGP_RECEIVE].median) / 2000,
	};
}

/* Ranks that share cores have more overhead than a round trip takes; then there is no L. */
static struct thesis_row here_sends(const struct overhead *o)
{
	double overhead = phases_overhead(o, OVERHEAD_SENDS);
	double latency = o->is[OVERHEAD_TRIP].median / 2000 - 2 * overhead;
	return (struct thesis_row){ "here",         "send&receive",
				    "1 KiB",        latency > 0 ? latency : NAN,
				    overhead,       o->is[OVERHEAD_GAP].median / 1000,
				    OVERHEAD_RANKS, NAN };
}

static const char *cell_us(char *cell, double us)
{
	if (isnan(us))
		return "-";
	snprintf(cell, CELL, "%.*f us", us < 1 ? 4 : us < 10 ? 1 : 0, us);
	return cell;
}

static void thesis_write(struct rows *w, const struct thesis_row *t)
{
	char cell[CELL];
	rows_text(w, NULL, "machine", -7, t->machine);
	rows_text(w, NULL, "layer", -15, t->layer);
	rows_text(w, NULL, "message", -8, t->message);
	rows_text(w, NULL, "L (latency)", 12, cell_us(cell, t->latency));
	rows_text(w, NULL, "o (overhead)", 12, cell_us(cell, t->overhead));
	rows_text(w, NULL, "g (gap)", 12, cell_us(cell, t->gap));
	rows_text(w, NULL, "o, processor's", 14, cell_us(cell, t->processor));
	rows_whole(w, NULL, "P (processors)", 14, t->processors, NULL);
	rows_end_row(w);
}

static void thesis_table(const struct logp_outcome *o)
{
	const struct logp_model *m = &o->model;
	const struct logp_size *size[] = { model_size(m, false, m->words),
					   model_size(m, true, THESIS_BYTES) };
	struct thesis_row row;
	struct rows w;
	char message[CELL];
	snprintf(message, CELL, "%u bytes", 8 * m->words);
	table_heading("Table 4-12 of von Eicken's thesis, with this machine");
	rows_begin(&w, ROWS_TABLE, stdout);
	for (unsigned i = 0; i < sizeof thesis / sizeof *thesis; i++)
		thesis_write(&w, &thesis[i]);
	for (unsigned i = 0; i < sizeof size / sizeof *size; i++)
		if (size[i]) {
			row = here_messages(o, size[i], message);
			thesis_write(&w, &row);
		}
	if (o->phases.played) {
		row = here_sends(&o->phases);
		thesis_write(&w, &row);
	}
	puts("CM-5: the thesis gives L = 6 us, and says that it is 1.7 + 6.6 us\n"
	     "o: the mean of both sides, by the papers' phases between processes. The processor's "
	     "part leaves out the\nway of cache lines (over a network: the wire and the wait for "
	     "it), which is in L; send&receive has no\nsuch part, and its L is half a round trip "
	     "less 2 o");
}

/* -- Predictions ----------------------------------------------------------------------- */

static void forecast_write(struct rows *w, const struct logp_forecast *f)
{
	char cell[CELL], error[CELL] = "-";
	if (isfinite(forecast_error(f)))
		snprintf(error, sizeof error, "%+.1f %%", forecast_error(f));
	snprintf(cell, sizeof cell, "%u %s", f->size, f->pattern->unit);
	rows_text(w, "pattern", "prediction", -12, f->pattern->name);
	rows_text(w, NULL, "size", -12, cell);
	rows_whole(w, "size", NULL, 0, f->size, NULL);
	rows_text(w, "size_unit", NULL, 0, f->pattern->unit);
	rows_real(w, "predicted", "predicted, ns", 13, f->predicted, NULL);
	rows_real(w, "error_percent", NULL, 0, forecast_error(f), NULL);
	rows_real(w, "value", "measured, ns", 19, f->measured.median, "%s",
		  figure_estimate(cell, &f->measured));
	rows_real(w, "low", NULL, 0, f->measured.low, NULL);
	rows_real(w, "high", NULL, 0, f->measured.high, NULL);
	rows_text(w, "unit", NULL, 0, "ns");
	rows_text(w, NULL, "error", 9, error);
	rows_end_row(w);
}

static void forecasts_write(struct rows *w, const struct logp_outcome *o)
{
	for (unsigned i = 0; i < LOGP_PATTERNS; i++)
		forecast_write(w, &o->forecast[i]);
}

static void remarks(const struct logp_outcome *o)
{
	const struct logp_model *m = &o->model;
	uint32_t cores = cpu_count();
	puts("\nin brackets: the 95 % interval of the median over rounds: of many runs like this "
	     "one it would hold the true\nmedian in 95 of 100, if rounds did not depend on each "
	     "other. With fewer than 6 rounds it is the whole range.\nRound trip, o_s, o_r and g "
	     "have medians of their own; L is computed round by round and then has its own, so "
	     "that\n2 (o_s + L + o_r) need not be the round trip that is shown. Phases of three "
	     "ranks have rounds of their own.\nPredictions within 15 % are what the project "
	     "wants; shown, not judged");
	printf("messages of patterns have %u words\n", m->words);
	if (o->phases.played && cores < OVERHEAD_RANKS)
		printf("three ranks share %u core%s: what the phases give says little\n", cores,
		       cores == 1 ? "" : "s");
	if (m->ranks > cores)
		printf("%u ranks share %u core%s: this says little\n", m->ranks, cores,
		       cores == 1 ? "" : "s");
	if (o->disturbed)
		printf("%u figures were dropped or doubtful because another program took a core\n",
		       o->disturbed);
}

void logp_report_tables(const struct logp_outcome *o)
{
	struct rows w;
	parameters_table(o);
	putchar('\n');
	thesis_table(o);
	putchar('\n');
	rows_begin(&w, ROWS_TABLE, stdout);
	forecasts_write(&w, o);
	remarks(o);
	fflush(stdout);
}

/* -- JSON ------------------------------------------------------------------------------- */

static void named_write(struct rows *w, const char *key, const char *name, uint64_t size,
			const char *size_unit, const struct series_estimate *e, const char *unit)
{
	rows_text(w, key, NULL, 0, name);
	rows_whole(w, "size", NULL, 0, size, NULL);
	rows_text(w, "size_unit", NULL, 0, size_unit);
	rows_real(w, "value", NULL, 0, e->median, NULL);
	rows_real(w, "low", NULL, 0, e->low, NULL);
	rows_real(w, "high", NULL, 0, e->high, NULL);
	rows_text(w, "unit", NULL, 0, unit);
	rows_end_row(w);
}

static void json_parameters(struct rows *w, const struct logp_model *m)
{
	for (unsigned i = 0; i < m->n; i++)
		for (unsigned k = 0; k < LOGP_NAMES; k++)
			named_write(w, "parameter", logp_names[k], m->size[i].size,
				    m->size[i].bytes ? "bytes" : "words", &m->size[i].is[k], "ns");
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		named_write(w, "parameter", "g", logp_bursts[i], "messages", &m->burst[i], "ns");
	named_write(w, "parameter", "L", m->ranks, "ranks", &m->latency, "ns");
	named_write(w, "parameter", "G", LOGP_LARGE, "bytes", &m->per_byte, "ns/B");
}

static void json_phases(struct rows *w, const struct logp_outcome *o)
{
	for (unsigned i = 0; i < OVERHEAD_PHASES && o->phases.played; i++)
		named_write(w, "phase", overhead_phases[i].name,
			    i / 2 == OVERHEAD_WORDS ? o->model.words : LOGP_LARGE,
			    overhead_phases[i].unit, &o->phases.is[i], "ns");
}

void logp_report_json(const struct logp_outcome *o)
{
	struct rows w = { .as = ROWS_JSON, .json.to = stdout };
	struct json *j = &w.json;
	json_begin(j, NULL, '{');
	json_whole(j, "ranks", o->model.ranks);
	json_whole(j, "cores", cpu_count());
	json_whole(j, "words", o->model.words);
	json_whole(j, "rounds", o->rounds);
	json_whole(j, "disturbed", o->disturbed);
	json_begin(j, "parameters", '[');
	json_parameters(&w, &o->model);
	json_end(j, ']');
	json_begin(j, "phases", '[');
	json_phases(&w, o);
	json_end(j, ']');
	json_begin(j, "predictions", '[');
	forecasts_write(&w, o);
	json_end(j, ']');
	json_end(j, '}');
	fflush(stdout);
}
