/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests that need a network, and of what layers do where ranks have no memory in common,
 * whatever TERN_NET says.
 */
#ifndef TERN_TESTS_FAR_H
#define TERN_TESTS_FAR_H

#include "check.h"
#include "open/nets.h"

/* Skips the test if this build lacks a network that `text`, a TERN_NET or NULL, names. */
static inline void far_need(const char *text)
{
	char why[200] = "";
	for (int i = 0; text && net_table[i]; i++)
		if (!net_table[i]->device && strstr(text, net_table[i]->name) &&
		    !net_table[i]->usable(why, sizeof why))
			check_skip(why);
}

/* Ranks that are opened from now on talk over UDP; `fault` is TERN_FAULT, NULL for none. */
static inline void far_use(const char *fault)
{
	far_need("udp");
	setenv("TERN_NET", "udp", 1);
	unsetenv("TERN_FAULT");
	if (fault)
		setenv("TERN_FAULT", fault, 1);
}

#endif
