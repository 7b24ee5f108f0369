/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services there are: order and retry here, the strategies of flow in src/flow.
 *
 * A service registers itself. cmake/Services.cmake finds each line `const struct service NAME` in
 * those two folders and writes the table below, so nobody names a service and another one is a
 * file. A constructor or a section of the linker would not do: the linker takes from an archive
 * only objects that somebody refers to, and nobody refers to a file that nobody names.
 */
#ifndef TERN_SERVICE_SERVICE_H
#define TERN_SERVICE_SERVICE_H

#include "net/packet/service.h"

/* All of them, for a network that has no reason to leave one out. */
extern service_list service_all;

/* Whether TERN_FLOW is understood: 0, or -EINVAL with a sentence. */
static inline int flow_judge(void)
{
	return strategies_judge(service_all);
}

#endif
