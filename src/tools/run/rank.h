/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting the processes of a job. */
#ifndef TERN_TOOLS_RUN_RANK_H
#define TERN_TOOLS_RUN_RANK_H

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "tools/common/bind.h"

struct rank {
	pid_t pid;    /* 0: ended, or not started */
	int out, err; /* the reading ends of its output */
};

/* What the ranks of a job have in common when they start. */
struct launch {
	char **program;
	int job_fd;     /* a descriptor that they inherit */
	uint32_t first; /* the lowest of those that are started here */
	uint32_t total; /* in the whole job */
	pid_t group;    /* the process group they join: the terminal's signals reach it */
	sigset_t mask;  /* as the launcher found it */
	struct bind bind;
	int input;           /* the next one's */
	int null;            /* /dev/null, the input of all but rank 0 */
	struct rlimit files; /* as the launcher found it */
};

/*
 * Prepares the environment and the limit on descriptors; `l` has program, job_fd, group and mask.
 */
int launch_open(struct launch *l, uint32_t ranks, enum binding asked);
void launch_close(struct launch *l);

/* Returns 0 when the program runs; a negative code when it cannot, and no process is left. */
int rank_start(const struct launch *l, uint32_t number, struct rank *r);

/* Why the number-th of so many cannot be started, in words: behind "cannot start". */
void rank_refused(const char *program, uint32_t number, uint32_t ranks, int rc, char *text,
		  size_t room);

#endif
