/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of `tern run`: the front and its keeper, and, with hosts, a link to each and the
 * agent there. run.c says why there are so many.
 */
#ifndef TERN_TOOLS_RUN_RUN_H
#define TERN_TOOLS_RUN_RUN_H

#include <signal.h>
#include <sys/types.h>

#include "tools/run/options.h"

/* Signals to the keeper: the front has died, so nobody waits for it; it is to end the ranks. */
#define KEEPER_ALONE SIGRTMIN
#define KEEPER_END (SIGRTMIN + 1)

/* What the keeper has to know of the front. */
struct front {
	pid_t pid, group;
	sigset_t mask;   /* the signals blocked when `tern run` started */
	sigset_t passed; /* the signals that it passes on */
	int own[5];      /* descriptors of an agent, which the keeper closes */
	unsigned owns;
};

/*
 * The keeper: starts the ranks, in a child of the front, sees them end and returns the exit
 * status.
 */
int keeper_run(struct run_options *options, const struct front *front);

/* -- The front, above the keeper; an agent on another host is one, too */

/* Blocks the signals that are passed on, and SIGCHLD: all of them in `heard`. */
void front_open(struct front *f, sigset_t *heard);

/*
 * Starts the keeper, which is to run the job; its command line is written over. -errno if it
 * cannot.
 */
pid_t front_start(struct run_options *o, const struct front *f, int argc, char **argv);

/* Takes in the dead; true when the keeper is among them. */
bool front_reap(pid_t keeper, int *status);

/* The keeper has ended: ends what is left, and returns the job's exit status. */
int front_finish(pid_t keeper, int status);

/*
 * `tern run --agent`: the front of the ranks of another host. Gets its order through standard
 * input and sends what its ranks write, and how they ended, through standard output. Returns the
 * exit status of its part of the job.
 */
int agent_run(int argc, char **argv);

/*
 * `tern run --link`: stands among the launcher's ranks for the ranks of a host. The first of
 * `words` names the host, the others are a command that leads to its agent. Runs it, and carries
 * frames between it and the launcher, which is at the other end of `control`; text of the agent's
 * ranks goes to our own outputs and our input to rank 0. Returns the status that the agent told.
 */
int link_run(int control, char **words);

#endif
