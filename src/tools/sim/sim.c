/* SPDX-License-Identifier: BSD-3-Clause */
/* tern sim: starts a program as `tern run` does, on a simulated machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/setting.h"
#include "net/sim/network.h"
#include "tools/common/option.h"
#include "tools/tools.h"

enum { PROFILE_TEXT = 1024 };

struct sim_options {
	const char *ranks, *profile;
	bool profiles, keys;
	char set[PROFILE_TEXT]; /* ",key=value" for each */
};

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
	for (const struct profile_key *k = profile_key; k->name; k++)
		printf("%-14s %-10s %s\n", k->name, k->fallback, k->meaning);
}

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

/* The words of `tern run` that start `program`. */
static int start(const struct sim_options *o, char **program)
{
	static char name[] = "tern", run[] = "run", n[] = "-n", bind[] = "--bind", none[] = "none",
		    end[] = "--";
	int words = 0;
	while (program[words])
		words++;
	char **argv = calloc((size_t)words + 8, sizeof *argv), *ranks = strdup(o->ranks);
	if (!argv || !ranks)
		return 1;
	char *const front[] = { name, run, n, ranks, bind, none, end };
	memcpy(argv, front, sizeof front);
	memcpy(argv + 7, program, (size_t)words * sizeof *argv);
	execv("/proc/self/exe", argv);
	fprintf(stderr, "tern sim: starting `tern run`: %s\n", strerror(errno));
	return 1;
}

int sim_main(int argc, char **argv)
{
	struct sim_options o = { .profile = "cluster" };
	struct profile p;
	char text[PROFILE_TEXT + 256];
	int status;
	const struct choice choices[] = {
		{ .name = "-n", .text = &o.ranks },
		{ .name = "--profile", .text = &o.profile },
		{ .name = "--set", .read = read_set, .to = &o },
		{ .name = "--profiles", .flag = &o.profiles },
		{ .name = "--keys", .flag = &o.keys },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "sim", .help = help_sim, .choice = choices };
	if (!options_read(&options, argc, argv, &status))
		return status;
	if (o.profiles || o.keys) {
		(o.profiles ? list_profiles : list_keys)();
		return 0;
	}
	if (!o.ranks || optind >= argc) {
		option_refuse("%s, as in `tern sim -n 64 --profile cm5 ./program`",
			      o.ranks ? "which program? Name it after the options"
				      : "how many nodes? Say it with -n");
		return 2;
	}
	snprintf(text, sizeof text, "%s%s", o.profile, o.set);
	int rc = profile_load(&p, text);
	const struct sim_network *n = rc ? NULL : network_named(p.network);
	if (!rc && n->judge)
		rc = n->judge(&p, (uint32_t)strtoul(o.ranks, NULL, 10));
	if (rc) {
		fprintf(stderr, "tern sim: %s\n", tern_strerror(rc));
		return 2;
	}
	setenv(setting_table[SETTING_NET].name, "sim", 1);
	setenv(setting_table[SETTING_SIM].name, text, 1);
	setenv(setting_table[SETTING_DELIVERY].name, "poll", 1);
	return start(&o, argv + optind);
}
