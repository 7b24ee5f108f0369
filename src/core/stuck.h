/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wait in words, for whoever looks at the job from outside, and for the user whose patience
 * TERN_STUCK gives.
 */
#ifndef TERN_CORE_STUCK_H
#define TERN_CORE_STUCK_H

#include "core/wait.h"

/* "tern_recv 0x7 from rank 2": the call, and the rank if one is meant. */
void stuck_call(const struct wait *l, char *text, size_t room);

/*
 * Writes to standard error in which call the rank waits, for whom, and what its layers have under
 * way.
 */
void stuck_report(struct endpoint *e, const struct wait *l, uint64_t ns);

#endif

/* cost: base control */
