/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow: no receiver is overrun, and a reply can always be sent. There are several strategies;
 * each is a service of its own, and TERN_FLOW names the one that a job has. A strategy registers
 * itself by the line `const struct service NAME` (service/service.h): another one is a file here
 * and nothing else. What they have in common:
 *
 *  - Requests and replies are counted apart, and neither ever waits for room for the other.
 *  - Reply handlers send nothing, so replies are always handled, so room for replies always comes
 *    back, so staged replies drain, so gates open and requests are handled.
 *  - Whatever they tell each other is a count since ever, in a header of every packet: one that is
 *    lost or doubled does no harm, and the next has all of it. It is told when a packet with a new
 *    number has it: one that is sent again may be a double, whose header nobody looks at. A header
 *    that makes no sense is counted and not believed; the messages behind it are taken in, since
 *    retry has acknowledged them.
 */
#ifndef TERN_PROTOCOLS_FLOW_H
#define TERN_PROTOCOLS_FLOW_H

#include "net/packet/service.h"

/* Between two looks for blocks that the program gives back: nobody tells of those. */
enum { FLOW_LOOK_NS = 100000 };

/* What a path has of the strategy in force, whose file knows what it is. */
static inline void *flow_of(const struct path *p)
{
	return p->state[SERVICE_FLOW];
}

#endif
