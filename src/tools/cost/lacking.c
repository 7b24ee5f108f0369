/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern cost` where it was built without what it needs. */
#include <stdio.h>

#include "tools/tools.h"

int cost_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	fputs("tern cost: this command was built without " COST_LACKS
	      "; install that and build again\n",
	      stderr);
	return 2;
}
