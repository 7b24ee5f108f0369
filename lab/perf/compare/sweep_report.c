/* SPDX-License-Identifier: BSD-3-Clause */
/* The sweep as a table, with the crossings under it, and as records. */
#include <math.h>
#include <stdio.h>

#include "lab/perf/compare/sweep.h"
#include "tools/common/rows.h"
#include "tools/common/table.h"

/* -- The rows ----------------------------------------------------------------------------- */

static const char *cell_interval(char *cell, unsigned interval)
{
	uint32_t ns = sweep_interval[interval];
	snprintf(cell, CELL, "%u us", ns / 1000);
	return ns ? cell : "none";
}

static const char *cell_time(char *cell, double ns)
{
	const char *unit = ns < 1e3 ? "ns" : ns < 1e6 ? "us" : "ms";
	double value = ns < 1e3 ? ns : ns < 1e6 ? ns / 1e3 : ns / 1e6;
	snprintf(cell, CELL, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, unit);
	return cell;
}

/* Nobody is called where the rank polls. */
static const char *cell_events(char *cell, enum sweep_way way, double events)
{
	if (way == WAY_POLLED || way == WAY_UNPOLLED)
		return "-";
	snprintf(cell, CELL, "%.3f", events);
	return cell;
}

static void row_write(struct rows *w, const struct sweep *s, unsigned interval, enum sweep_way way)
{
	static const char *const delivery[WAYS] = { "poll", "poll", "thread", "interrupt" };
	const double *is = s->at[interval][way].is;
	const char *regime = sweep_regime_name[sweep_regime(s, interval)];
	char cell[CELL];
	rows_text(w, NULL, "interval", -8, way ? "" : cell_interval(cell, interval));
	rows_real(w, "interval_us", NULL, 0, sweep_interval[interval] / 1e3, NULL);
	rows_text(w, NULL, "delivery", -17, sweep_way_name[way]);
	rows_text(w, "delivery", NULL, 0, delivery[way]);
	rows_real(w, "poll_us", NULL, 0, way == WAY_POLLED ? 10 : NAN, NULL);
	rows_real(w, "slowdown", "slowdown", 9, is[SWEEP_SLOWDOWN], "%.1f %%",
		  100 * is[SWEEP_SLOWDOWN]);
	rows_real(w, "latency_ns", "round trip", 10, is[SWEEP_LATENCY], "%s",
		  cell_time(cell, is[SWEEP_LATENCY]));
	rows_real(w, "latency_p99_ns", "99 %", 10, is[SWEEP_P99], "%s",
		  cell_time(cell, is[SWEEP_P99]));
	rows_real(w, "calls_per_message", "calls/msg", 11, is[SWEEP_EVENTS], "%s",
		  cell_events(cell, way, is[SWEEP_EVENTS]));
	rows_real(w, "messages_per_s", "messages/s", 11, is[SWEEP_RATE], "%.0f", is[SWEEP_RATE]);
	rows_text(w, NULL, "regime", 0, way == WAY_INTERRUPT ? regime : "");
	rows_text(w, "regime", NULL, 0, regime);
	rows_truth(w, "slows_least", NULL, 0, sweep_gentlest(s, interval) >> way & 1);
	rows_truth(w, "answers_soonest", NULL, 0, sweep_quickest(s, interval) >> way & 1);
	rows_whole(w, "ms", NULL, 0, s->ms, NULL);
	rows_whole(w, "rounds", NULL, 0, s->rounds, NULL);
	rows_whole(w, "cores", NULL, 0, s->cores, NULL);
	rows_end_row(w);
}

static void rows_write(const struct sweep *s, bool as_json, bool bold)
{
	struct rows w;
	rows_begin(&w, as_json ? ROWS_JSON : ROWS_TABLE, stdout);
	w.bold = bold;
	for (unsigned i = 0; i < INTERVALS; i++)
		for (int way = 0; way < WAYS; way++)
			row_write(&w, s, i, way);
	rows_end(&w);
}

/* -- Where they cross ----------------------------------------------------------------------- */

static void ways_print(unsigned ways)
{
	const char *between = "";
	for (int w = 0; w < WAYS; w++)
		if (ways >> w & 1) {
			printf("%s%s", between, sweep_way_name[w]);
			between = " or ";
		}
}

static void regime_print(unsigned regime)
{
	fputs(sweep_regime_name[regime], stdout);
}

static unsigned regime_at(const struct sweep *s, unsigned interval)
{
	return sweep_regime(s, interval);
}

/* A line for each stretch of intervals that have the same answer. */
static void stretches_print(const struct sweep *s, const char *title,
			    unsigned (*answer)(const struct sweep *s, unsigned interval),
			    void (*show)(unsigned answer))
{
	char from[CELL], to[CELL];
	printf("\n%s\n", title);
	for (unsigned first = 0, last; first < INTERVALS; first = last + 1) {
		unsigned same = answer(s, first);
		for (last = first; last + 1 < INTERVALS && answer(s, last + 1) == same; last++)
			;
		printf("  %7s to %7s  ", cell_interval(from, first), cell_interval(to, last));
		show(same);
		putchar('\n');
	}
}

void sweep_print(const struct sweep *s, bool bold)
{
	rows_write(s, false, bold);
	stretches_print(s, "slows the computation least, within 1 % of its time:", sweep_gentlest,
			ways_print);
	stretches_print(s, "answers soonest, within 10 %:", sweep_quickest, ways_print);
	stretches_print(s, "communication, as interrupts see it:", regime_at, regime_print);
	puts("\ninterval: between two messages to the rank that computes; none: as fast as 32 "
	     "under way allow\n"
	     "slowdown: what the computation takes of its core, against itself while nothing is "
	     "sent\n"
	     "calls/msg: interrupts for each message, or how often the progress thread took the "
	     "endpoint\n"
	     "regime: infrequent, an interrupt for each message and less than 5 % lost; moderate, "
	     "an interrupt\n"
	     "for each, and more lost; frequent, fewer interrupts than every second message");
	if (s->cores < 3)
		printf("the progress thread shares its core with the computation: there are %u "
		       "cores\n",
		       s->cores);
}

void sweep_json(const struct sweep *s)
{
	rows_write(s, true, false);
}
