/* SPDX-License-Identifier: BSD-3-Clause */
/* What-if: one run for each value of a key, or of two, and a table of their times. */
#include "tools/sim/sweep.h"

#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

#include "base/error.h"
#include "tools/common/option.h"
#include "tools/common/rows.h"
#include "tools/common/svg.h"

double sweep_speedup(const struct sweeps *s, unsigned line, unsigned across)
{
	return s->run[line][across].time > 0 ? s->run[line][0].time / s->run[line][across].time : 0;
}

void sweep_line_name(const struct sweeps *s, unsigned line, char *text, size_t len)
{
	const struct sweep *second = &s->o->sweep[1];
	if (s->o->sweeps > 1)
		snprintf(text, len, "%s=%s", second->key, second->value[line]);
	else
		*text = 0;
}

/* -- The runs --------------------------------------------------------------------------------- */

static bool value_apply(const struct sweep *s, unsigned i, struct sim_run *run)
{
	uint64_t nodes;
	size_t used = strlen(run->profile);
	if (strcmp(s->key, "n") == 0) {
		if (!option_number("--sweep n", s->value[i], 1, NODES_MOST, &nodes))
			return false;
		run->nodes = (uint32_t)nodes;
		return true;
	}
	if (snprintf(run->profile + used, sizeof run->profile - used, ",%s=%s", s->key,
		     s->value[i]) >= (int)(sizeof run->profile - used))
		return option_refuse("--sweep %s: too many settings", s->key);
	return true;
}

/* The machine of one run; false: refused. */
static bool run_make(const struct sweeps *s, unsigned line, unsigned across, struct sim_run *run)
{
	const struct sim_options *o = s->o;
	run->nodes = o->nodes;
	snprintf(run->profile, sizeof run->profile, "%s%s", o->profile, o->set);
	if (!value_apply(&o->sweep[0], across, run) ||
	    (o->sweeps > 1 && !value_apply(&o->sweep[1], line, run)))
		return false;
	return o->pattern || run->nodes <= TERN_RANKS_MAX ||
	       option_refuse("--sweep n=%u: a program runs on 1 to %d nodes", run->nodes,
			     TERN_RANKS_MAX);
}

static int run_one(struct sweeps *s, unsigned line, unsigned across)
{
	struct sim_run run;
	struct figures *f = &s->run[line][across];
	if (!run_make(s, line, across, &run))
		return 2;
	int rc = sim_once(s->o, &run, true, f);
	figures_free(f);
	return rc;
}

/* -- What they gave --------------------------------------------------------------------------- */

/* The first key is a column; the second one too, but the table has lines apart for it. */
static void row_write(struct rows *w, const struct sweeps *s, unsigned line, unsigned i)
{
	const struct figures *r = &s->run[line][i];
	const struct sim_options *o = s->o;
	const struct sweep *first = &o->sweep[0];
	double busiest;
	enum limit limit = figures_limit(r, &busiest);
	rows_text(w, first->key, first->key, 14, first->value[i]);
	rows_text(w, o->sweeps > 1 ? o->sweep[1].key : NULL, NULL, 0,
		  o->sweeps > 1 ? o->sweep[1].value[line] : NULL);
	rows_whole(w, "nodes", NULL, 0, r->nodes, NULL);
	rows_real(w, "time_us", "time us", 13, r->time, "%.3f", r->time);
	rows_real(w, "speed_up", "speed-up", 9, sweep_speedup(s, line, i), "%.2f",
		  sweep_speedup(s, line, i));
	rows_whole(w, "packets", "packets", 11, r->packets, NULL);
	rows_whole(w, "events", NULL, 0, r->events, NULL);
	rows_real(w, "busiest", "busiest", 8, busiest, "%.1f %%", 100 * busiest);
	rows_text(w, "bottleneck", "bottleneck", 0, limit_name[limit]);
	rows_end_row(w);
}

static void table_write(const struct sweeps *s, enum rows_as as)
{
	struct rows w;
	char name[2 * PROFILE_NAME];
	for (unsigned line = 0; line < s->lines; line++) {
		sweep_line_name(s, line, name, sizeof name);
		if (as == ROWS_TABLE && *name)
			printf("%s%s\n", line ? "\n" : "", name);
		if (as == ROWS_TABLE || line == 0)
			rows_begin(&w, as, stdout);
		for (unsigned i = 0; i < s->across; i++)
			row_write(&w, s, line, i);
	}
	rows_end(&w);
}

int sim_sweep_main(const struct sim_options *o)
{
	static struct sweeps s; /* large */
	s.o = o;
	s.across = o->sweep[0].n;
	s.lines = o->sweeps > 1 ? o->sweep[1].n : 1;
	s.nodes = strcmp(o->sweep[0].key, "n") == 0;
	for (unsigned line = 0; line < s.lines; line++)
		for (unsigned i = 0; i < s.across; i++) {
			int rc = run_one(&s, line, i);
			if (rc)
				return rc < 0 ? sim_refuse(rc) : rc;
		}
	table_write(&s, o->json ? ROWS_JSON : ROWS_TABLE);
	int rc = file_write(o->plot, sim_sweep_plot, &s);
	return rc ? sim_refuse(rc) : 0;
}
