/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of what layers do where ranks have no memory in common, whatever TERN_NET says. */
#ifndef TERN_TESTS_FAR_H
#define TERN_TESTS_FAR_H

#include "check.h"
#include "open/nets.h"

/* Ranks that are opened from now on talk over UDP; `fault` is TERN_FAULT, NULL for none. */
static inline void far_use(const char *fault)
{
	char why[200] = "";
	for (int i = 0; net_table[i]; i++)
		if (!strcmp(net_table[i]->name, "udp") && !net_table[i]->usable(why, sizeof why))
			check_skip(why);
	setenv("TERN_NET", "udp", 1);
	unsetenv("TERN_FAULT");
	if (fault)
		setenv("TERN_FAULT", fault, 1);
}

#endif
