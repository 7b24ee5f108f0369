/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command's frame: finds the sub-command and hands over. Those that need libc alone are part
 * of this program; `tern NAME` executes tern-NAME for every other name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/text.h"
#include "boot/link/program.h"
#include "tools/tools.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv); /* NULL: a program */
	const char *purpose;
} commands[] = {
	{ "run", run_main, "start a program as the ranks of a job" },
	{ "info", NULL, "show networks, limits and settings, and what is wrong with them" },
	{ "top", NULL, "show what the ranks of a running job do" },
	{ "why", why_main, "explain why a job makes no progress" },
	{ "trace", trace_main, "show what the ranks of a job did, from the files of TERN_TRACE" },
	{ "sim", NULL, "run a program on a simulated machine" },
	{ "machines", NULL, "let this machine play several, for `tern run --hosts`" },
	{ "perf", NULL, "measure messages, and the hardware's limit beside each figure" },
	{ "logp", NULL, "measure the LogP parameters of this machine, and predict with them" },
	{ "cost", NULL, "count the instructions of messages, and say what each is for" },
	{ "report", NULL, "run the papers' programs, and write a page with their figures" },
};

enum { COMMANDS = sizeof commands / sizeof *commands, NAME_MOST = 64 };

#define PREFIX "tern-"

static const struct command *command_of(const char *word)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(word, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static bool program_of(const char *word, char path[PATH_MAX])
{
	char name[NAME_MOST];
	return !strchr(word, '/') && strcmp(word, "link") != 0 && /* tern-link is no command */
	       snprintf(name, sizeof name, PREFIX "%s", word) < (int)sizeof name &&
	       program_locate(name, path);
}

static bool command_here(const struct command *c)
{
	char path[PATH_MAX];
	return c->main || program_of(c->name, path);
}

static void help(FILE *to)
{
	fputs("usage: tern COMMAND [OPTIONS]\n\n", to);
	for (int i = 0; i < COMMANDS; i++)
		if (command_here(&commands[i]))
			fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].purpose);
	fputs("\n`tern help COMMAND` says more; so does `man tern`. `tern version` prints the "
	      "version.\n",
	      to);
}

static int unknown(const char *word)
{
	const char *name[COMMANDS];
	char folder[PATH_MAX];
	int n = 0;
	for (int i = 0; i < COMMANDS; i++)
		if (command_here(&commands[i]))
			name[n++] = commands[i].name;
	fprintf(stderr, "tern: there is no command '%s'; did you mean 'tern %s'? There are", word,
		nearest_name(word, name, n));
	for (int i = 0; i < n; i++)
		fprintf(stderr, "%s %s", i ? "," : "", name[i]);
	fprintf(stderr, ". " PREFIX "%s was looked for in", word);
	for (int i = 0; i < PROGRAM_FOLDERS && program_folder(i, folder); i++)
		fprintf(stderr, " %s,", folder);
	fputs(" and on PATH\n", stderr);
	return 2;
}

/* argv[0] is the command's name. */
static int command_main(int argc, char **argv)
{
	char path[PATH_MAX];
	const struct command *c = command_of(argv[0]);
	if (c && c->main)
		return c->main(argc, argv);
	if (!program_of(argv[0], path))
		return unknown(argv[0]);
	argv[0] = path;
	execv(path, argv);
	fprintf(stderr, "tern: executing %s: %s\n", path, strerror(errno));
	return 126;
}

/* `tern help COMMAND` is `tern COMMAND --help`. */
static int help_main(int argc, char **argv)
{
	static char option[] = "--help";
	if (argc < 2) {
		help(stdout);
		return 0;
	}
	char *words[] = { argv[1], option, NULL };
	return command_main(2, words);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return 2;
	}
	if (strcmp(argv[1], "help") == 0)
		return help_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help_main(1, argv);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
		puts("tern " TERN_VERSION);
		return 0;
	}
	return command_main(argc - 1, argv + 1);
}
