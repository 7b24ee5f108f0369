/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link of a machine: a program of its own, tern-link, with a wire to whoever started it, and
 * what comes there first says what it is to do. A launcher has it start the ranks of the machine
 * (FRAME_ORDER, tools/run/run.h). In a job that another launcher started, the lowest rank of the
 * machine executes it when it joins (FRAME_WATCH): it watches the machine's ranks and
 * their launcher (monitor.h), tells the job's memory who has ended, and has a connection to the
 * link of each other machine (mesh.h). It ends when all ranks of its machine have ended and the
 * others know.
 *
 * It has no thread, takes no signal, and has no descriptor of the program's. A second process, its
 * guard, does nothing but wait for it, and starts another one if it is killed (watch.c).
 */
#ifndef TERN_BOOT_LINK_LINK_H
#define TERN_BOOT_LINK_LINK_H

#include <netinet/in.h>

#include "boot/link/wire.h"
#include "job/job.h"

/* A socket at which the links of other machines can call; before it begins. */
int link_listen(int *listener, struct sockaddr_in6 *address);

/*
 * Starts it for a job in whose memory every rank that is here has `pid` and `born`, and every
 * machine, where there are several, has a rank with a `link`. `listener`: -1 on one machine; stays
 * the caller's. `closes`: a rank that has closed does not open again: it counts as ended.
 */
int link_begin(struct job *job, int listener, bool closes);

/*
 * Waits, not for long, until what this rank has done is on its way to the other machines: it may
 * end now.
 */
void link_settle(struct job *job);

/*
 * tern-link, if what came first from `wire` is FRAME_WATCH. It answers with a FRAME_OVER: an error
 * as it is kept (error.h), or none. Its exit status.
 */
int link_watch(struct wire *wire);

#endif
