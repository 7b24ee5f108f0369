/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern run`, from its command line. */
#include "tools/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tools.h"

/* The keeper writes over the command line, so what the options point to is a copy of it. */
static char **words_copy(int argc, char **argv)
{
	char **copy = calloc((size_t)argc + 1, sizeof *copy);
	for (int i = 0; copy && i < argc; i++)
		if (!(copy[i] = strdup(argv[i])))
			return NULL;
	return copy;
}

int run_main(int argc, char **argv)
{
	static struct run_options options; /* and what it points to, until the process ends */
	static char **words;
	int status;
	words = words_copy(argc, argv);
	if (words && !run_options_read(&options, argc, words, &status))
		return status;
	if (words && run_options_environment(&options))
		return front_run(&options, NULL, argc, argv);
	fputs("tern run: no memory for the command line\n", stderr);
	return 1;
}
