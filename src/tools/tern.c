/* SPDX-License-Identifier: BSD-3-Clause */
/* The command's frame: finds the sub-command and hands over. */
#include <stdio.h>
#include <string.h>

#include <tern/tern.h>

#include "base/text.h"
#include "tools/tools.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *purpose;
} commands[] = {
	{ "run", run_main, "start a program as the ranks of a job" },
	{ "info", info_main, "show networks, limits and settings, and what is wrong with them" },
	{ "perf", perf_main, "measure messages, and the hardware's limit beside each figure" },
	{ "logp", logp_main, "measure the LogP parameters of this machine, and predict with them" },
	{ "cost", cost_main, "count the instructions of messages, and say what each is for" },
	{ "top", top_main, "show what the ranks of a running job do" },
	{ "why", why_main, "explain why a job makes no progress" },
	{ "trace", trace_main, "show what the ranks of a job did, from the files of TERN_TRACE" },
	{ "sim", sim_main, "run a program on a simulated machine" },
	{ "report", report_main, "run the papers' programs, and write a page with their figures" },
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(FILE *to)
{
	fputs("usage: tern COMMAND [OPTIONS]\n\n", to);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-6s %s\n", commands[i].name, commands[i].purpose);
	fputs("\n`tern help COMMAND` says more; so does `man tern`. `tern version` prints the "
	      "version.\n",
	      to);
}

static int unknown(const char *word)
{
	const char *names[COMMANDS];
	for (int i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	fprintf(stderr,
		"tern: there is no command '%s'; did you mean 'tern %s'? `tern help` lists them "
		"all\n",
		word, nearest_name(word, names, COMMANDS));
	return 2;
}

static const struct command *command_of(const char *word)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(word, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

/* `tern help COMMAND` is `tern COMMAND --help`. */
static int help_main(int argc, char **argv)
{
	static char option[] = "--help";
	if (argc < 2) {
		help(stdout);
		return 0;
	}
	const struct command *command = command_of(argv[1]);
	char *words[] = { argv[1], option, NULL };
	return command ? command->main(2, words) : unknown(argv[1]);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return 2;
	}
	const struct command *command = command_of(argv[1]);
	if (command)
		return command->main(argc - 1, argv + 1);
	if (strcmp(argv[1], "help") == 0)
		return help_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help_main(1, argv);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
		puts("tern " TERN_VERSION);
		return 0;
	}
	return unknown(argv[1]);
}
