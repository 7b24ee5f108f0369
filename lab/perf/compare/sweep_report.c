/* SPDX-License-Identifier: BSD-3-Clause */
/* The sweep as a table, with the crossings under it, and as records. */
#include <math.h>
#include <stdio.h>

#include "lab/perf/compare/sweep.h"
#include "tools/common/json.h"
#include "tools/common/table.h"

/* -- The table ---------------------------------------------------------------------------- */

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

static void table_row(const struct sweep *s, unsigned interval, enum sweep_way way)
{
	const struct sweep_point *p = &s->at[interval][way];
	char every[CELL], latency[CELL], p99[CELL], events[CELL];
	printf("%-8s  %-17s  %7.1f %%  %10s  %10s  %11s  %11.0f  %s\n",
	       way ? "" : cell_interval(every, interval), sweep_way_name[way],
	       100 * p->is[SWEEP_SLOWDOWN], cell_time(latency, p->is[SWEEP_LATENCY]),
	       cell_time(p99, p->is[SWEEP_P99]), cell_events(events, way, p->is[SWEEP_EVENTS]),
	       p->is[SWEEP_RATE],
	       way == WAY_INTERRUPT ? sweep_regime_name[sweep_regime(s, interval)] : "");
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
	table_heading(bold, "%-8s  %-17s  %9s  %10s  %10s  %11s  %11s  %s", "interval", "delivery",
		      "slowdown", "round trip", "99 %", "calls/msg", "messages/s", "regime");
	for (unsigned i = 0; i < INTERVALS; i++)
		for (int w = 0; w < WAYS; w++)
			table_row(s, i, w);
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

/* -- JSON -------------------------------------------------------------------------------------- */

static void json_point(struct json *j, const struct sweep *s, unsigned interval, enum sweep_way way)
{
	const struct sweep_point *p = &s->at[interval][way];
	json_begin(j, NULL, '{');
	json_real(j, "interval_us", sweep_interval[interval] / 1e3);
	json_text(j, "delivery",
		  way == WAY_THREAD      ? "thread"
		  : way == WAY_INTERRUPT ? "interrupt"
					 : "poll");
	json_real(j, "poll_us", way == WAY_POLLED ? 10 : NAN);
	json_real(j, "slowdown", p->is[SWEEP_SLOWDOWN]);
	json_real(j, "latency_ns", p->is[SWEEP_LATENCY]);
	json_real(j, "latency_p99_ns", p->is[SWEEP_P99]);
	json_real(j, "calls_per_message", p->is[SWEEP_EVENTS]);
	json_real(j, "messages_per_s", p->is[SWEEP_RATE]);
	json_truth(j, "slows_least", sweep_gentlest(s, interval) >> way & 1);
	json_truth(j, "answers_soonest", sweep_quickest(s, interval) >> way & 1);
	json_text(j, "regime", sweep_regime_name[sweep_regime(s, interval)]);
	json_whole(j, "ms", s->ms);
	json_whole(j, "rounds", s->rounds);
	json_whole(j, "cores", s->cores);
	json_end(j, '}');
}

void sweep_json(const struct sweep *s)
{
	struct json j = { .to = stdout };
	json_begin(&j, NULL, '[');
	for (unsigned i = 0; i < INTERVALS; i++)
		for (int w = 0; w < WAYS; w++)
			json_point(&j, s, i, w);
	json_end(&j, ']');
}
