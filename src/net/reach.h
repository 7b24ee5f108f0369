/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which networks a rank has: to those of its machine, and to those of others. TERN_NET says so, or what all machines have: libfabric
 * carries messages between machines if each of them has a fabric, which they tell each other before their ranks open.
 */
#ifndef TERN_NET_REACH_H
#define TERN_NET_REACH_H

#include <stdbool.h>

#include "base/world.h"
#include "net/shm/job.h"

/* Names as in TERN_NET; "" for none. */
struct reach {
	char near[16], far[48];
};

/* Whether TERN_NET is understood: 0, or -EINVAL with a sentence. Nothing is opened. */
int reach_judge(void);

/* Waits, if this machine has a fabric, until it is known whether all have. -EINVAL with a sentence. */
int reach_find(struct reach *r, struct job_head *head, const struct world *w);

/* Whether ranks of this machine would use libfabric, as far as that is up to this machine. May take long. */
bool reach_fabric_here(void);

/* Of `head`, for ranks that wait: whether every machine has said so. */
void reach_agreed(struct job_head *head, bool fabric);

#endif
