/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process finds its job: through `tern run`, through another launcher, or alone. */
#ifndef TERN_BOOT_BOOT_H
#define TERN_BOOT_BOOT_H

#include <stdbool.h>
#include <stdint.h>

struct boot {
	uint32_t rank, size;
	int fd; /* of the job's memory; -1 alone */
};

/*
 * Reads the environment, and joins the job that another launcher has started. A process that is one
 * of several and cannot join them is refused with the variable that says so, instead of becoming
 * several jobs of one. Blocks until every rank has come. `fabric` says whether this machine has
 * one, and is asked only if a job is joined; NULL: it has none.
 */
int boot_find(struct boot *b, bool (*fabric)(void));

/*
 * Asks the launcher's process manager, if it is still open, to end the job with `status`. Waits for
 * it, not for long. From everywhere, a signal's handler too.
 */
void boot_abort(int status);

/* The endpoint of a rank that was launched is closed. Another one can still be opened. */
void boot_left(void);

#endif
