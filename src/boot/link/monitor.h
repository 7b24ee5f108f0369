/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who of this machine's ranks has ended, where no `tern run` watches. A rank is dead when its
 * process has ended, and for no other reason: one descriptor for each process becomes readable then
 * (Linux 5.3), and nothing else is asked.
 *
 * The launcher is watched as well: ranks whose launcher was killed are told to end, and are killed
 * after a second. The same is done two seconds after a rank has ended the job, or when those that
 * want to run have had a core.
 */
#ifndef TERN_BOOT_LINK_MONITOR_H
#define TERN_BOOT_LINK_MONITOR_H

#include <poll.h>

#include "job/job.h"

struct watched {
	uint32_t rank;
	int fd;        /* of its process; -1 if there is no descriptor to be had */
	bool ended;    /* and the job knows */
	uint64_t used; /* time on a core when the job was ended, in the kernel's ticks */
};

struct monitor {
	struct job *job;
	struct watched *rank; /* those that are here */
	uint32_t count, left; /* how many have not ended */
	int launcher_fd;      /* as in `watched`; -1 also if nobody knows the launcher */
	uint64_t ended; /* when it was seen that a rank has ended the job, ns; 0: it goes on */
	/* When the ranks were told to end, ns; 0: they were not. */
	uint64_t asked;
};

/* `room` has a place for each rank that is here. Every rank that is here has `pid` and `born`. */
void monitor_open(struct monitor *m, struct job *job, struct watched *room);
/* What to wait for: 1 + count places. */
unsigned monitor_polls(const struct monitor *m, struct pollfd *p);
/* Tells the job of whoever has ended; `p` as it was filled, and poll() has answered. */
void monitor_serve(struct monitor *m, const struct pollfd *p);
/* Whether something must be tried again that no descriptor announces. */
bool monitor_must_retry(const struct monitor *m);

#endif
