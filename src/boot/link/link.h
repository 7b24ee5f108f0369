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

#include "base/process.h"
#include "boot/link/wire.h"
#include "job/job.h"

/* A socket at which the links of other machines can call; before it begins. */
int link_listen(int *listener, struct sockaddr_in6 *address);

struct link_plan {
	struct job *job; /* every rank that is here has `pid` and `born` */
	struct process_name launcher;
	bool closes;  /* a rank that has closed does not open again: it counts as ended */
	int listener; /* -1 on one machine; stays the caller's */
	const struct sockaddr_in6 *address; /* one a machine */
};
int link_begin(const struct link_plan *plan);

/*
 * Waits, not for long, until what `rank` has done is on its way to the other machines: it may end
 * now.
 */
void link_settle(struct job *job, uint32_t rank);

/*
 * FRAME_WATCH, an address for each machine behind it, and what tern-link answers in a FRAME_OVER.
 * The rest is in the job's memory.
 */
struct link_order {
	char version[16];  /* first, in every version */
	uint32_t machines; /* 0: there is no socket for others, */
	uint32_t notice;   /* nor one for notices */
	struct process_name launcher;
	uint64_t silence; /* TERN_KEEPALIVE, s */
};

struct link_answer {
	int32_t rc; /* 0, or why it does not begin */
	char text[400];
};

/* tern-link, if what came first from `wire` is such an order. Its exit status. */
int link_watch(struct wire *wire, const struct frame *order);

#endif
