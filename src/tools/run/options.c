/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the command line of `tern run`. */
#include "tools/run/options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

#include "base/setting.h"
#include "tools/common/option.h"
#include "tools/tools.h"

static bool read_binding(void *to, char *text)
{
	struct run_options *o = to;
	if (strcmp(text, "core") == 0)
		o->order.binding = BINDING_CORE;
	else if (strcmp(text, "none") == 0)
		o->order.binding = BINDING_NONE;
	else
		return option_refuse("--bind %s: ranks are bound to 'core' or to 'none'", text);
	return true;
}

static bool read_survival(void *to, char *text)
{
	struct run_options *o = to;
	static const char *const names[] = { "first", "survivors", "any" };
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (!text || strcmp(text, names[i]) == 0) {
			o->order.survive = SURVIVE_FIRST + i;
			return true;
		}
	return option_refuse(
		"--survive=%s: the exit status is that of 'first', 'survivors' or 'any'", text);
}

static bool read_signal(void *to, char *text)
{
	static const struct {
		const char *name;
		int number;
	} known[] = { { "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT },
		      { "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
		      { "TERM", SIGTERM }, { "ALRM", SIGALRM } };
	struct run_options *o = to;
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i].name) == 0) {
			o->order.signal = known[i].number;
			return true;
		}
	char *end;
	unsigned long number = strtoul(text, &end, 10);
	if (end == text || *end || !number || number > (unsigned long)SIGRTMAX ||
	    number == SIGSTOP || number == SIGCONT)
		return option_refuse(
			"--signal %s: a job is ended by a signal such as TERM or USR1, "
			"or its number",
			text);
	o->order.signal = (int)number;
	return true;
}

/* What the launcher itself sets, differently for each rank, is not to be had. */
static bool env_is_ours(const char *text, size_t len)
{
	static const enum setting ours[] = { SETTING_RANK, SETTING_SIZE, SETTING_JOB_FD };
	for (unsigned i = 0; i < sizeof ours / sizeof *ours; i++)
		if (strlen(setting_table[ours[i]].name) == len &&
		    strncmp(text, setting_table[ours[i]].name, len) == 0)
			return true;
	return false;
}

static bool read_env(void *to, char *text)
{
	struct run_options *o = to;
	size_t len = strcspn(text, "=");
	if (!len)
		return option_refuse(
			"--env %s: a variable has a name, as in --env OMP_NUM_THREADS=4", text);
	if (env_is_ours(text, len))
		return option_refuse("--env %s: tern run sets that variable itself, for each rank",
				     text);
	if (!text[len] && !getenv(text))
		return option_refuse("--env %s: it is not set here; say --env %s=VALUE", text,
				     text);
	const char **more = realloc(o->env, (o->env_count + 1) * sizeof *more);
	if (!more)
		return option_refuse("--env %s: no memory", text);
	o->env = more;
	o->env[o->env_count++] = text;
	return true;
}

static bool check_complete(struct run_options *o)
{
	o->total = o->ranks;
	if (!o->ranks && !o->hosts) /* a list of hosts may say it */
		return option_refuse(
			"how many ranks? Say it with -n, as in `tern run -n 4 ./program`");
	if (!o->program[0])
		return option_refuse(
			"which program? Name it after the options, as in `tern run -n %u "
			"./program`",
			o->ranks ? o->ranks : 4);
	return true;
}

bool run_options_read(struct run_options *o, int argc, char **argv, int *status)
{
	char text[8192]; /* the help, with a number in it */
	bool tag = false;
	const struct choice choices[] = {
		/* as Open MPI's and MPICH's users write it; first, for it begins like -n */
		{ .name = "-np", .small = &o->ranks, .least = 1, .most = TERN_RANKS_MAX },
		{ .name = "-n", .small = &o->ranks, .least = 1, .most = TERN_RANKS_MAX },
		{ .name = "--bind", .read = read_binding, .to = o },
		{ .name = "--tag", .flag = &tag },
		{ .name = "--survive", .read = read_survival, .to = o, .optional = true },
		{ .name = "--signal", .read = read_signal, .to = o },
		{ .name = "--env", .read = read_env, .to = o },
		{ .name = "--hosts", .text = &o->hosts },
		{ .name = "--ssh", .text = &o->shell },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = {
		.command = "run", .help = text, .choice = choices, .program = true
	};
	snprintf(text, sizeof text, help_run, TERN_RANKS_MAX);
	*o = (struct run_options){ .shell = setting_text(SETTING_SSH), .order.signal = SIGTERM };
	if (!options_read(&options, argc, argv, status))
		return false;
	o->order.tag = tag;
	o->program = argv + optind;
	return check_complete(o);
}

bool run_options_environment(const struct run_options *o)
{
	bool set = true;
	for (uint32_t i = 0; set && i < o->env_count; i++) {
		const char *sign = strchr(o->env[i], '=');
		if (!sign || (o->hosts && strncmp(o->env[i], "TERN_", 5) != 0))
			continue; /* it is here already, or is not for us */
		char *name = strndup(o->env[i], (size_t)(sign - o->env[i]));
		set = name && setenv(name, sign + 1, 1) == 0;
		free(name);
	}
	return set;
}
