/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern cost` where it was built without what it needs. */
#include <stdio.h>
#include <string.h>

#include "lab/lab.h"

int cost_main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		return fputs(help_cost, stdout) == EOF;
	fputs("tern cost: this command was built without " COST_LACKS
	      "; install that and build again\n",
	      stderr);
	return 2;
}
