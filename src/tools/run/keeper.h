/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that starts the ranks and sees them end; run.c says why there are two. */
#ifndef TERN_TOOLS_RUN_KEEPER_H
#define TERN_TOOLS_RUN_KEEPER_H

#include <signal.h>
#include <sys/types.h>

#include "tools/run/options.h"

/* What the keeper has to know of the front. */
struct front {
	pid_t pid, group;
	sigset_t mask;   /* the signals blocked when `tern run` started */
	sigset_t passed; /* the signals that it passes on */
	int own[5];      /* descriptors of an agent, which the keeper closes */
	unsigned owns;
};

/* Runs the job, in a child of the front, and returns the exit status. */
int keeper_run(struct run_options *options, const struct front *front);

#endif
