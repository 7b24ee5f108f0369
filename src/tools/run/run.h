/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of `tern run`: the front and its keeper, and, with hosts, a remote shell to each,
 * and the front and keeper of that host's ranks there. front.c says why there are so many.
 */
#ifndef TERN_TOOLS_RUN_RUN_H
#define TERN_TOOLS_RUN_RUN_H

#include <signal.h>
#include <sys/types.h>

#include "tools/run/options.h"
#include "tools/run/up.h"

/* A signal to the keeper: the front has died, so nobody waits for it. */
#define KEEPER_ALONE SIGRTMIN

/* What the keeper has to know of the front. */
struct front {
	pid_t pid, group;
	sigset_t mask;   /* the signals blocked when `tern run` started */
	sigset_t passed; /* the signals that it passes on */
};

/*
 * Runs the job, or, with a wire up to its launcher, this host's part of it. The command line is
 * written over. Returns the exit status.
 */
int front_run(struct run_options *o, struct up *up, int argc, char **argv);

/*
 * The keeper: starts the ranks, in a child of the front, sees them end and returns the exit
 * status.
 */
int keeper_run(struct run_options *o, const struct front *front, struct up *up);

/*
 * tern-link, if what came first from `wire` is a launcher's order: the front of this host's ranks.
 * `argc` and `argv` as main() has them.
 */
int order_run(struct wire *wire, const struct frame *order, int argc, char **argv);

#endif
