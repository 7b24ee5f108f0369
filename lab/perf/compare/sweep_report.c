/* SPDX-License-Identifier: BSD-3-Clause */
/* The sweep as a table and as records. */
#include <math.h>
#include <stdio.h>

#include "lab/perf/compare/sweep.h"
#include "tools/common/rows.h"
#include "tools/common/table.h"

static const char *cell_interval(char *cell, unsigned interval)
{
	uint32_t ns = sweep_interval[interval];
	snprintf(cell, CELL, "%u us", ns / 1000);
	return ns ? cell : "none";
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
		  cell_unit(cell, is[SWEEP_LATENCY], "ns"));
	rows_real(w, "latency_p99_ns", "99 %", 10, is[SWEEP_P99], "%s",
		  cell_unit(cell, is[SWEEP_P99], "ns"));
	rows_real(w, "calls_per_message", "calls/msg", 11, is[SWEEP_EVENTS], "%s",
		  cell_events(cell, way, is[SWEEP_EVENTS]));
	rows_real(w, "messages_per_s", "messages/s", 11, is[SWEEP_RATE], "%.0f", is[SWEEP_RATE]);
	rows_text(w, NULL, "regime", 0, way == WAY_INTERRUPT ? regime : "");
	rows_text(w, "regime", NULL, 0, regime);
	rows_whole(w, "ms", NULL, 0, s->ms, NULL);
	rows_whole(w, "rounds", NULL, 0, s->rounds, NULL);
	rows_whole(w, "cores", NULL, 0, s->cores, NULL);
	rows_end_row(w);
}

static void notes_print(const struct sweep *s)
{
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

void sweep_report(const struct sweep *s, bool as_json)
{
	struct rows w;
	rows_begin(&w, as_json ? ROWS_JSON : ROWS_TABLE, stdout);
	for (unsigned i = 0; i < INTERVALS; i++)
		for (int way = 0; way < WAYS; way++)
			row_write(&w, s, i, way);
	rows_end(&w);
	if (!as_json)
		notes_print(s);
}
