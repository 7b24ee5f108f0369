/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/run/options.h"
#include "base/nearest.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

#include "base/setting.h"
#include "tools/tools.h"

static const char help[] =
	"usage: tern run -n N [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Starts N processes of PROGRAM, the ranks 0 to N-1 of one job, and ends when they have ended.\n"
	"\n"
	"  -n N, -np N         how many ranks, 1 to %d\n"
	"  --bind core|none    core: rank r stays on the r-th core that this command may use, and\n"
	"                      around again; none: the kernel places ranks. Unless said, core if\n"
	"                      the ranks are no more than the cores and more than half of them:\n"
	"                      a smaller job may share the machine with another one\n"
	"  --tag               begin each line of output with its rank, as in `[3] text`\n"
	"  --survive[=STATUS]  go on when a rank fails; the others' calls that need it return errors.\n"
	"                      The exit status is that of the first rank that failed (first, unless\n"
	"                      said); or ranks that died do not count (survivors); or it is 0 if any\n"
	"                      rank returned 0 (any)\n"
	"  --env NAME[=VALUE]  set this variable for the ranks, on every host; without a value, the one\n"
	"                      that it has here\n"
	"  --hosts A,B,...     on these hosts instead of this one, in equal parts; A:4,B:8 gives A 4 ranks\n"
	"                      and B 8, in this order, and -n may be left out. Tern, the program and this\n"
	"                      folder have to be there under the same paths\n"
	"  --hostfile FILE     the hosts, one in each line: `A`, `A:4` or `A slots=4`\n"
	"  --ssh COMMAND       the command that reaches a host, which gets the host's name and a command\n"
	"                      line; TERN_SSH unless given, `ssh -o BatchMode=yes` unless set\n"
	"  --help              print this\n"
	"\n"
	"Rank 0 gets the standard input, the others none. Output comes line by line, and lines of\n"
	"two ranks never mix. Signals are passed on; a second interrupt (Ctrl-C) ends the job at\n"
	"once. When a rank fails the others are ended: SIGTERM, and after a second SIGKILL. No\n"
	"process of the job outlives this command.\n"
	"\n"
	"The exit status is 0 if every rank returned 0, and else that of the first rank that failed\n"
	"(128 plus the signal if one killed it); 126 or 127 if PROGRAM cannot be started or found,\n"
	"2 for a mistake on the command line. TERN_MEMORY limits the job's shared memory (tern info).\n"
	"TERN_NET chooses the network between ranks, such as udp or shm,ofi/tcp: tern-net(7).\n"
	"\n"
	"examples:\n"
	"  tern run -n 2 ./hello\n"
	"  tern run -n 8 --tag ./solver --size 1000 < input > log\n"
	"  tern run -n 4 --survive=survivors -- sh -c 'exec ./server --port $((4000 + TERN_RANK))'\n"
	"  tern run --hosts a:4,b:8 --env OMP_NUM_THREADS=2 ./solver\n";

static const struct option long_options[] = {
	{ "bind", required_argument, NULL, 'b' },
	{ "tag", no_argument, NULL, 't' },
	{ "survive", optional_argument, NULL, 's' },
	{ "env", required_argument, NULL, 'E' },
	{ "hosts", required_argument, NULL, 'H' },
	{ "hostfile", required_argument, NULL, 'F' },
	{ "ssh", required_argument, NULL, 'S' },
	{ "agent", no_argument, NULL, 'A' },
	{ "link", required_argument, NULL, 'L' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

__attribute__((format(printf, 1, 2))) static bool refuse(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("tern run: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return false;
}

static bool read_ranks(struct run_options *o, const char *text)
{
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (end == text || *end || errno || n < 1 || n > TERN_RANKS_MAX)
		return refuse(
			"-n %s: a job has a whole number of ranks, 1 to %d, as in `tern run -n 4 ./program`",
			text, TERN_RANKS_MAX);
	o->ranks = (uint32_t)n;
	return true;
}

static bool read_binding(struct run_options *o, const char *text)
{
	if (strcmp(text, "core") == 0)
		o->binding = BINDING_CORE;
	else if (strcmp(text, "none") == 0)
		o->binding = BINDING_NONE;
	else
		return refuse("--bind %s: ranks are bound to 'core' or to 'none'", text);
	return true;
}

static bool read_survival(struct run_options *o, const char *text)
{
	static const char *const names[] = { "first", "survivors", "any" };
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (!text || strcmp(text, names[i]) == 0) {
			o->survive = (enum survive)(SURVIVE_FIRST + i);
			return true;
		}
	return refuse("--survive=%s: the exit status is that of 'first', 'survivors' or 'any'", text);
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

static bool read_env(struct run_options *o, const char *text)
{
	size_t len = strcspn(text, "=");
	if (!len)
		return refuse("--env %s: a variable has a name, as in --env OMP_NUM_THREADS=4", text);
	if (env_is_ours(text, len))
		return refuse("--env %s: tern run sets that variable itself, for each rank", text);
	if (!text[len] && !getenv(text))
		return refuse("--env %s: it is not set here; say --env %s=VALUE", text, text);
	const char **more = realloc(o->env, (o->env_count + 1) * sizeof *more);
	if (!more)
		return refuse("--env %s: no memory", text);
	o->env = more;
	o->env[o->env_count++] = text;
	return true;
}

/* Open MPI's and MPICH's users write it so; to getopt it is -n with the value p. */
static bool read_np(struct run_options *o, char **argv)
{
	if (!argv[optind])
		return refuse("-np needs a value after it; `tern run --help` shows which");
	return read_ranks(o, argv[optind++]);
}

/* Long options are misspelt; of a short one there is nothing to guess. */
static bool unknown(const char *word)
{
	static const char *const names[] = { "--bind",  "--tag",      "--survive", "--env",
					     "--hosts", "--hostfile", "--ssh",     "--help" };
	if (strncmp(word, "--", 2) != 0)
		return refuse("there is no option '%s'; `tern run --help` lists them. "
			      "If it belongs to the program, the program's name comes first",
			      word);
	return refuse("the option '%s' cannot be used so; did you mean %s? `tern run --help` lists them",
		      word, nearest_name(word, names, sizeof names / sizeof *names));
}

static bool read_option(struct run_options *o, int letter, const char *word, char **argv)
{
	switch (letter) {
	case 'n':
		return strcmp(word, "-np") == 0 ? read_np(o, argv) : read_ranks(o, optarg);
	case 'b':
		return read_binding(o, optarg);
	case 't':
		o->tag = true;
		return true;
	case 's':
		return read_survival(o, optarg);
	case 'E':
		return read_env(o, optarg);
	case 'H':
		o->hosts = optarg;
		return true;
	case 'F':
		o->hostfile = optarg;
		return true;
	case 'S':
		o->shell = optarg;
		return true;
	case 'A':
		o->agent = true;
		return true;
	case 'L':
		o->link = atoi(optarg);
		return true;
	case ':':
		return refuse("%s needs a value after it; `tern run --help` shows which", word);
	default:
		return unknown(word);
	}
}

static bool check_complete(struct run_options *o)
{
	if (o->agent || o->link)
		return true; /* started by another tern run, which has checked */
	o->total = o->ranks;
	if (o->hosts && o->hostfile)
		return refuse("--hosts and --hostfile: the hosts are named in one of them");
	if (!o->ranks && !run_options_remote(o)) /* a list of hosts may say it */
		return refuse("how many ranks? Say it with -n, as in `tern run -n 4 ./program`");
	if (!o->program[0])
		return refuse("which program? Name it after the options, as in `tern run -n %u ./program`",
			      o->ranks ? o->ranks : 4);
	return true;
}

bool run_options_read(struct run_options *o, int argc, char **argv, int *status)
{
	*o = (struct run_options){ .shell = setting_text(SETTING_SSH) };
	*status = 2;
	optind = 0; /* glibc: forget whatever was parsed before */
	for (;;) {
		const char *word = argv[optind ? optind : 1];
		int letter = getopt_long(argc, argv, "+:n:h", long_options, NULL);
		if (letter == 'h') {
			printf(help, TERN_RANKS_MAX);
			*status = 0;
			return false;
		}
		if (letter < 0)
			break;
		if (!read_option(o, letter, word, argv))
			return false;
	}
	o->program = argv + optind;
	return check_complete(o);
}

void run_options_close(struct run_options *o)
{
	free(o->env);
}

bool run_options_environment(const struct run_options *o)
{
	bool set = true;
	for (uint32_t i = 0; set && i < o->env_count; i++) {
		const char *sign = strchr(o->env[i], '=');
		if (!sign || (run_options_remote(o) && strncmp(o->env[i], "TERN_", 5) != 0))
			continue; /* it is here already, or is not for us */
		char *name = strndup(o->env[i], (size_t)(sign - o->env[i]));
		set = name && setenv(name, sign + 1, 1) == 0;
		free(name);
	}
	return set;
}
