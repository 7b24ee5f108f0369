/* SPDX-License-Identifier: BSD-3-Clause */
/* The command's frame: finds the sub-command and hands over. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <tern/tern.h>

#include "tools/tools.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *purpose;
} commands[] = {
	{ "run", run_main, "start a program as the ranks of a job" },
	{ "info", info_main, "show networks, limits and settings, and what is wrong with them" },
	{ "perf", perf_main, "measure messages, and the hardware's limit beside each figure" },
};

enum { COMMANDS = sizeof commands / sizeof *commands };

/* Edits that turn `a` into `b`; one row, as names are short. */
static unsigned edits(const char *a, const char *b)
{
	unsigned row[32];
	size_t width = strlen(b);
	if (width >= sizeof row / sizeof *row)
		return UINT_MAX;
	for (unsigned j = 0; j <= width; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned corner = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= width; j++) {
			unsigned least = corner + (a[i - 1] != b[j - 1]);
			corner = row[j];
			if (row[j] + 1 < least)
				least = row[j] + 1;
			if (row[j - 1] + 1 < least)
				least = row[j - 1] + 1;
			row[j] = least;
		}
	}
	return row[width];
}

const char *tools_nearest(const char *word, const char *const *names, size_t n)
{
	const char *nearest = names[0];
	unsigned least = UINT_MAX;
	for (size_t i = 0; i < n; i++) {
		unsigned distance = edits(word, names[i]);
		if (distance < least) {
			least = distance;
			nearest = names[i];
		}
	}
	return nearest;
}

static void help(FILE *to)
{
	fputs("usage: tern COMMAND [OPTIONS]\n\n", to);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-6s %s\n", commands[i].name, commands[i].purpose);
	fputs("\n`tern COMMAND --help` says more; so does `man tern`. `tern --version` prints the version.\n",
	      to);
}

static int unknown(const char *word)
{
	const char *names[COMMANDS];
	for (int i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	fprintf(stderr,
		"tern: there is no command '%s'; did you mean 'tern %s'? `tern --help` lists them all\n",
		word, tools_nearest(word, names, COMMANDS));
	return 2;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return 2;
	}
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("tern " TERN_VERSION);
		return 0;
	}
	return unknown(argv[1]);
}
