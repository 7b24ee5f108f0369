/* SPDX-License-Identifier: BSD-3-Clause */
/* What-if: one run for each value of a key, or of two, and a table of their times. */
#include "tools/sim/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

#include "base/error.h"
#include "tools/common/json.h"
#include "tools/common/option.h"
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

/* -- The runs ----------------------------------------------------------------------------------
 */

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
	struct figures f = { 0 };
	struct sweep_run *to = &s->run[line][across];
	if (!run_make(s, line, across, &run))
		return 2;
	int rc = sim_once(s->o, &run, true, &f);
	if (!rc) {
		*to = (struct sweep_run){
			.nodes = run.nodes, .time = f.time, .packets = f.packets, .events = f.events
		};
		to->limit = figures_limit(&f, &to->busiest);
	}
	figures_free(&f);
	return rc;
}

/* -- What they gave ------------------------------------------------------------------------------
 */

static void table_print(const struct sweeps *s)
{
	const struct sweep *first = &s->o->sweep[0];
	char name[2 * PROFILE_NAME];
	for (unsigned line = 0; line < s->lines; line++) {
		sweep_line_name(s, line, name, sizeof name);
		if (*name)
			printf("%s%s\n", line ? "\n" : "", name);
		printf("%14s %14s %10s %12s %9s  %s\n", first->key, "time us", "speed-up",
		       "packets", "busiest", "bottleneck");
		for (unsigned i = 0; i < s->across; i++) {
			const struct sweep_run *r = &s->run[line][i];
			printf("%14s %14.3f %10.2f %12llu %7.1f %%  %s\n", first->value[i], r->time,
			       sweep_speedup(s, line, i), (unsigned long long)r->packets,
			       100 * r->busiest, limit_name[r->limit]);
		}
	}
}

static int table_csv(const void *sweeps, FILE *to)
{
	const struct sweeps *s = sweeps;
	const struct sim_options *o = s->o;
	fprintf(to, "%s,%s%stime_us,speed_up,packets,events,busiest,bottleneck\n", o->sweep[0].key,
		o->sweeps > 1 ? o->sweep[1].key : "", o->sweeps > 1 ? "," : "");
	for (unsigned line = 0; line < s->lines; line++)
		for (unsigned i = 0; i < s->across; i++) {
			const struct sweep_run *r = &s->run[line][i];
			fprintf(to, "%s,%s%s%.6f,%.4f,%llu,%llu,%.4f,%s\n", o->sweep[0].value[i],
				o->sweeps > 1 ? o->sweep[1].value[line] : "",
				o->sweeps > 1 ? "," : "", r->time, sweep_speedup(s, line, i),
				(unsigned long long)r->packets, (unsigned long long)r->events,
				r->busiest, limit_name[r->limit]);
		}
	return ferror(to) ? -EIO : 0;
}

static void table_json(const struct sweeps *s)
{
	const struct sim_options *o = s->o;
	struct json j = { .to = stdout };
	json_begin(&j, NULL, '[');
	for (unsigned line = 0; line < s->lines; line++)
		for (unsigned i = 0; i < s->across; i++) {
			const struct sweep_run *r = &s->run[line][i];
			json_begin(&j, NULL, '{');
			json_text(&j, o->sweep[0].key, o->sweep[0].value[i]);
			if (o->sweeps > 1)
				json_text(&j, o->sweep[1].key, o->sweep[1].value[line]);
			json_whole(&j, "nodes", r->nodes);
			json_real(&j, "time_us", r->time);
			json_real(&j, "speed_up", sweep_speedup(s, line, i));
			json_whole(&j, "packets", r->packets);
			json_whole(&j, "events", r->events);
			json_real(&j, "busiest", r->busiest);
			json_text(&j, "bottleneck", limit_name[r->limit]);
			json_end(&j, '}');
		}
	json_end(&j, ']');
	putchar('\n');
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
	if (o->json)
		table_json(&s);
	else
		table_print(&s);
	int rc = file_write(o->csv, table_csv, &s);
	if (!rc)
		rc = file_write(o->plot, sim_sweep_plot, &s);
	return rc ? sim_refuse(rc) : 0;
}
