/* SPDX-License-Identifier: BSD-3-Clause */
/* The process above the keeper; run.c says why there are two. An agent on another host is one, too. */
#ifndef TERN_TOOLS_RUN_FRONT_H
#define TERN_TOOLS_RUN_FRONT_H

#include "tools/run/keeper.h"

/* Blocks the signals that are passed on, and SIGCHLD: all of them in `heard`. */
void front_open(struct front *f, sigset_t *heard);

/* Starts the keeper, which is to run the job; its command line is written over. -errno if it cannot. */
pid_t front_start(struct run_options *o, const struct front *f, int argc, char **argv);

/* Takes in the dead; true when the keeper is among them. */
bool front_reap(pid_t keeper, int *status);

/* The keeper has ended: ends what is left, and returns the job's exit status. */
int front_finish(pid_t keeper, int status);

#endif
