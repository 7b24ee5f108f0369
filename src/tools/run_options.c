/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/run_options.h"
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
	"  -n N                how many ranks, 1 to %d\n"
	"  --bind core|none    core: rank r stays on the r-th core that this command may use, and\n"
	"                      around again; none: the kernel places ranks. Unless said, core if\n"
	"                      the ranks are no more than the cores and more than half of them:\n"
	"                      a smaller job may share the machine with another one\n"
	"  --tag               begin each line of output with its rank, as in `[3] text`\n"
	"  --survive           go on when a rank fails; the others' calls that need it return errors\n"
	"  --hosts A,B,...     on these hosts instead of this one, in equal parts; Tern has to be there\n"
	"                      under the same path, and the program and this folder, too\n"
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
	"  tern run -n 4 --survive -- sh -c 'exec ./server --port $((4000 + TERN_RANK))'\n";

static const struct option long_options[] = {
	{ "bind", required_argument, NULL, 'b' },
	{ "tag", no_argument, NULL, 't' },
	{ "survive", no_argument, NULL, 's' },
	{ "hosts", required_argument, NULL, 'H' },
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

/* Long options are misspelt; of a short one there is nothing to guess. */
static bool unknown(const char *word)
{
	static const char *const names[] = { "--bind", "--tag", "--survive", "--hosts", "--ssh", "--help" };
	if (strncmp(word, "--", 2) != 0)
		return refuse("there is no option '%s'; `tern run --help` lists them. "
			      "If it belongs to the program, the program's name comes first",
			      word);
	return refuse("the option '%s' cannot be used so; did you mean %s? `tern run --help` lists them",
		      word, nearest_name(word, names, sizeof names / sizeof *names));
}

static bool read_option(struct run_options *o, int letter, const char *word)
{
	switch (letter) {
	case 'n':
		return read_ranks(o, optarg);
	case 'b':
		return read_binding(o, optarg);
	case 't':
		o->tag = true;
		return true;
	case 's':
		o->survive = true;
		return true;
	case 'H':
		o->hosts = optarg;
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
	if (!o->ranks)
		return refuse("how many ranks? Say it with -n, as in `tern run -n 4 ./program`");
	if (!o->program[0])
		return refuse("which program? Name it after the options, as in `tern run -n %u ./program`",
			      o->ranks);
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
		if (!read_option(o, letter, word))
			return false;
	}
	o->program = argv + optind;
	return check_complete(o);
}
