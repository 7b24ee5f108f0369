/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire up to the launcher, as the keeper of another host's ranks has it: signals and the input
 * of rank 0 come in frames, and what the ranks write, news of them, and how they ended go out in
 * frames. When the wire ends, for any reason, the keeper ends everything on its host.
 */
#ifndef TERN_TOOLS_RUN_UP_H
#define TERN_TOOLS_RUN_UP_H

#include <poll.h>

#include "boot/link/keepalive.h"
#include "boot/link/wire.h"
#include "tools/run/options.h"

struct up {
	struct wire wire;
	struct job *job;          /* the memory of this host */
	int notice;               /* readable when there may be news of its ranks */
	uint64_t *told;           /* to the launcher; see rank_status_news() */
	int input;                /* of rank 0; -1 when closed, or not here */
	struct buffer pending;    /* input that it has not taken yet */
	struct keepalive silence; /* of the launcher */
};

/* `job` was made for all ranks of the job: says in it who is here. A code with a sentence. */
int up_open(struct up *u, struct job *job, const struct run_options *o);

/* The reading end of rank 0's input, for the rank alone. -errno. */
int up_input(struct up *u);

/* The ranks run: now there is something to be told, and input can come. */
void up_begin(struct up *u);

/* What to wait for, UP_POLLS entries, KEEPALIVE_LOOK_MS at most. */
enum { UP_POLLS = 4 };
void up_polls(const struct up *u, struct pollfd *p);

/*
 * Reads and writes what can be read and written. False: the launcher is gone, or has been silent
 * for too long. Then: the next signal for the ranks, as long as there is one; 0: end them.
 */
bool up_serve(struct up *u);
bool up_signal(struct up *u, int *signal);

/* Says how all of it ended, and waits until that is written. */
void up_end(struct up *u, int status);

#endif
