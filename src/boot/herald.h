/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carries bulletins between the machines of a job that another launcher started.
 *
 * Every rank has a herald, a thread, which holds a stream to the next rank in the circle that lives on another machine, and
 * takes those of others. What there is to say of its own rank, and of ranks here that it has seen end, it
 * says there; what it hears it passes on, once; so news goes around all machines, and that of deaths in both directions. When a stream
 * ends, so has the rank at its other end, and the next one in the circle is called and told everything. When the
 * kernel cannot reach the other machine any more, that machine is lost, with all its ranks.
 */
#ifndef TERN_BOOT_HERALD_H
#define TERN_BOOT_HERALD_H

#include <netinet/in.h>

#include "net/shm/job.h"

/* Where the heralds of other ranks can reach ours; before it begins. */
int herald_open(int *listener, struct sockaddr_in6 *address);

/*
 * Begins, for as long as this process lives; `job` stays mapped so long. `address` has one of each rank, and
 * is copied. `listener` belongs to it from now on, unless it fails.
 */
int herald_begin(struct job *job, uint32_t rank, int listener, const struct sockaddr_in6 *address);

/* Waits, not for long, until what the rank has done is on its way: it may end now. */
void herald_settle(void);

#endif
