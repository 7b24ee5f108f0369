/* SPDX-License-Identifier: BSD-3-Clause */
/* tern sim: a program as `tern run` starts it, or a pattern, on a simulated machine. */
#include "tools/sim/sim.h"

#include <string.h>

#include <tern/tern.h>

#include "net/sim/machine/controller.h"
#include "net/sim/machine/network.h"
#include "tools/common/option.h"
#include "tools/common/svg.h"
#include "tools/tools.h"

static void list_profiles(void)
{
	for (const struct profile_text *t = profile_text; t->name; t++)
		printf("%-14s %s\n", t->name, t->meaning);
}

static void list_keys(void)
{
	printf("%-14s %-10s %s\n", "network", "logp", "one of:");
	for (unsigned i = 0; network_table[i]; i++)
		printf("%25s %s: %s\n", "", network_table[i]->name, network_table[i]->meaning);
	printf("%-14s %-10s %s\n", "controller", "none", "one of:");
	for (unsigned i = 0; controller_table[i]; i++)
		printf("%25s %s: %s\n", "", controller_table[i]->name,
		       controller_table[i]->meaning);
	for (const struct profile_key *k = profile_key; k->name; k++)
		printf("%-14s %-10s %s\n", k->name, k->fallback, k->meaning);
}

/* -- Options ---------------------------------------------------------------------------------- */

static bool read_set(void *to, char *text)
{
	struct sim_options *o = to;
	size_t used = strlen(o->set);
	if (!strchr(text, '=') || strchr(text, ','))
		return option_refuse("--set %s: say KEY=VALUE, as in --set latency=2us", text);
	if (snprintf(o->set + used, sizeof o->set - used, ",%s", text) >=
	    (int)(sizeof o->set - used))
		return option_refuse("--set %s: too many of them", text);
	return true;
}

static bool read_pattern(void *to, char *text)
{
	struct sim_options *o = to;
	o->pattern = pattern_named(text);
	return o->pattern || option_refuse("--pattern %s: there is no pattern '%s'; it can be "
					   "alltoall, allreduce, halo or random",
					   text, text);
}

static bool read_sweep(void *to, char *text)
{
	struct sim_options *o = to;
	char *equals = strchr(text, '='), *rest = equals ? equals + 1 : NULL;
	if (o->sweeps == SWEEPS)
		return option_refuse("--sweep %s: at most %d of them", text, SWEEPS);
	if (!equals || equals == text || !equals[1])
		return option_refuse("--sweep %s: say KEY=VALUE,VALUE,..., as in --sweep n=2,4,8",
				     text);
	struct sweep *s = &o->sweep[o->sweeps++];
	snprintf(s->key, sizeof s->key, "%.*s", (int)(equals - text), text);
	for (const char *value; (value = strsep(&rest, ","));) {
		if (s->n == SWEEP_VALUES)
			return option_refuse("--sweep %s: at most %d values", s->key, SWEEP_VALUES);
		snprintf(s->value[s->n++], PROFILE_NAME, "%s", value);
	}
	return true;
}

static bool sweeps_nodes(const struct sim_options *o)
{
	for (unsigned i = 0; i < o->sweeps; i++)
		if (strcmp(o->sweep[i].key, "n") == 0)
			return true;
	return false;
}

/* Whether what was asked for belongs together. */
static bool options_fit(const struct sim_options *o)
{
	if (!o->nodes && !sweeps_nodes(o))
		return option_refuse("how many nodes? Say it with -n, as in `tern sim -n 64 "
				     "--profile cm5 ./program`");
	if (!o->pattern && !*o->program)
		return option_refuse("which program? Name it after the options, as in `tern sim "
				     "-n 64 --profile cm5 ./program`, or take a --pattern");
	if (o->pattern && *o->program)
		return option_refuse("a pattern needs no program: leave out %s", *o->program);
	if (o->pattern && o->trace)
		return option_refuse("--trace is of programs: a pattern has no ranks to record");
	if (o->pattern && o->survive)
		return option_refuse("--survive is of programs: no node of a pattern crashes");
	if (!o->pattern && o->nodes > TERN_RANKS_MAX)
		return option_refuse("-n %u: a program runs on 1 to %d nodes; a --pattern on up to "
				     "%d",
				     o->nodes, TERN_RANKS_MAX, NODES_MOST);
	if ((o->plot || o->json) && !o->sweeps)
		return option_refuse("%s is of a --sweep", o->plot ? "--plot" : "--json");
	if (o->heat && o->nodes > HEAT_NODES_MOST)
		return option_refuse("--heat: a picture shows %d nodes at most, not %u",
				     HEAT_NODES_MOST, o->nodes);
	if (o->sweeps && (o->csv || o->heat || o->explain || o->trace || o->speed))
		return option_refuse("--csv, --heat, --explain, --trace and --speed are of one "
				     "run, and not of a --sweep");
	return true;
}

/* -- The command ------------------------------------------------------------------------------ */

/* How fast a program was simulated. */
static void speed_print(const struct figures *f)
{
	double packets = f->packets ? (double)f->packets : 1, each = f->cpu / packets;
	printf("%u ranks: %llu packets handled, %.2f switches each, in %.2f s of CPU time: %.2f us "
	       "each, %.0f a second\n",
	       f->nodes, (unsigned long long)f->packets, (double)f->switches / packets,
	       f->cpu / 1e6, each, each > 0 ? 1e6 / each : 0);
}

static void run_text(const struct sim_options *o, struct sim_run *run)
{
	run->nodes = o->nodes;
	snprintf(run->profile, sizeof run->profile, "%s%s", o->profile, o->set);
}

static int show(const struct sim_options *o, const struct figures *f)
{
	if (o->speed && !o->pattern)
		speed_print(f);
	if (o->explain)
		figures_explain(f, stdout);
	else if (o->pattern)
		printf("%s, %u nodes of %s (%s): %.3f us, %llu packets\n", o->pattern->name,
		       f->nodes, f->profile, f->network, f->time, (unsigned long long)f->packets);
	return file_write(o->heat, figures_heat, f);
}

static int sim_run(const struct sim_options *o)
{
	struct sim_run run;
	struct figures f = { 0 };
	run_text(o, &run);
	if (!o->pattern && !o->csv && !o->heat && !o->explain && !o->speed)
		return sim_start(o, &run);
	int rc = sim_once(o, &run, false, &f);
	if (!rc)
		rc = show(o, &f);
	figures_free(&f);
	return rc < 0 ? sim_refuse(rc) : rc;
}

int sim_main(int argc, char **argv)
{
	struct sim_options o = { .profile = "cluster", .rounds = 1, .bytes = 64 };
	int status;
	const struct choice choices[] = {
		{ .name = "-n", .small = &o.nodes, .least = 1, .most = NODES_MOST },
		{ .name = "--profile", .text = &o.profile },
		{ .name = "--set", .read = read_set, .to = &o },
		{ .name = "--survive", .flag = &o.survive },
		{ .name = "--explain", .flag = &o.explain },
		{ .name = "--csv", .text = &o.csv },
		{ .name = "--heat", .text = &o.heat },
		{ .name = "--trace", .text = &o.trace },
		{ .name = "--pattern", .read = read_pattern, .to = &o },
		{ .name = "--rounds", .small = &o.rounds, .least = 1, .most = 1000000 },
		{ .name = "--bytes", .small = &o.bytes, .least = 0, .most = 1 << 20 },
		{ .name = "--speed", .flag = &o.speed },
		{ .name = "--sweep", .read = read_sweep, .to = &o },
		{ .name = "--json", .flag = &o.json },
		{ .name = "--plot", .text = &o.plot },
		{ .name = "--profiles", .flag = &o.profiles },
		{ .name = "--keys", .flag = &o.keys },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = {
		.command = "sim", .help = help_sim, .choice = choices, .program = true
	};
	if (!options_read(&options, argc, argv, &status))
		return status;
	if (o.profiles || o.keys) {
		(o.profiles ? list_profiles : list_keys)();
		return 0;
	}
	o.program = argv + optind;
	if (!options_fit(&o))
		return 2;
	return o.sweeps ? sim_sweep_main(&o) : sim_run(&o);
}
