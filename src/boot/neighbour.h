/* SPDX-License-Identifier: BSD-3-Clause */
/* Who tells of a rank's end where no `tern run` watches: the rank before it. */
#ifndef TERN_BOOT_NEIGHBOUR_H
#define TERN_BOOT_NEIGHBOUR_H

#include "net/shm/job.h"

/*
 * Begins to watch, for as long as this process lives; `job` stays mapped so long. Every rank
 * that is here has `pid` and `born` by then.
 */
int neighbour_watch(struct job *job, uint32_t rank);

#endif
