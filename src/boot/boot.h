/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process finds its job: through `tern run`, through another launcher, or alone. */
#ifndef TERN_BOOT_BOOT_H
#define TERN_BOOT_BOOT_H

#include <stdbool.h>
#include <stdint.h>

#include <tern/tern.h>

#include "job/job.h"

struct boot {
	uint32_t rank, size;
	int fd;        /* of the job's memory; -1 alone */
	bool gathered; /* by a function of the program's: the descriptor is the caller's */
};

/*
 * Reads the environment, and joins the job that another launcher has started. A process that is one
 * of several and cannot join them is refused with the variable that says so, instead of becoming
 * several jobs of one. Blocks until every rank has come. `fabric` says whether this machine has
 * one, and is asked only if a job is joined; NULL: it has none. The options may name another job:
 * see tern_open(3); NULL: they do not.
 */
int boot_find(struct boot *b, const tern_options *o, bool (*fabric)(void));

/*
 * Asks the launcher's process manager, if it is still open, to end the job with `status`. Waits for
 * it, not for long. From everywhere, a signal's handler too.
 */
void boot_abort(int status);

/*
 * The endpoint of a rank that was launched is closed. Another one can still be opened. Lets go of
 * the process manager, unless MPI in this process uses it or may come to: then that is done when
 * the process returns from main(), or by MPI.
 */
void boot_left(void);
/* The same in a job that was gathered: `rank` has left it for good. */
void boot_left_gathered(struct job *job, uint32_t rank);

#endif
