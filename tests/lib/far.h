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

/*
 * libfabric looks through the kernel's symbols when it is first asked, for 0.1 s on some machines.
 * Whoever forks ranks asks before, so that they need not. Its receive buffers take 64 MiB for each
 * rank unless it is told how many to have.
 */
static inline void far_ready(const char *text)
{
	char why[200] = "";
	for (int i = 0; text && net_table[i]; i++)
		if (net_table[i]->device && strstr(text, net_table[i]->name)) {
			setenv("FI_OFI_RXM_MSG_RX_SIZE", "256", 0);
			net_table[i]->usable(why, sizeof why);
		}
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
