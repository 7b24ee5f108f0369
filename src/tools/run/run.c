/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern run`, from its command line. */
#include "tools/run/run.h"

#include <stdio.h>

#include "tools/tools.h"

int run_main(int argc, char **argv)
{
	static struct run_options options; /* and what it points to, until the process ends */
	int status;
	if (!run_options_read(&options, argc, argv, &status))
		return status;
	if (run_options_environment(&options))
		return front_run(&options, NULL, argc, argv);
	fputs("tern run: no memory for the variables of --env\n", stderr);
	return 1;
}
