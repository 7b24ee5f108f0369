/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handler that does not return stops its rank, and in the end the job. The launcher looks at its
 * ranks from outside, a few times within TERN_HANDLER_LIMIT: each says in its pulse where in its
 * memory it notes which message it handles. A message costs nothing for that, and ranks need no
 * thread. TERN_WATCHDOG (endpoint/watchdog.h) is for limits of milliseconds, and for other
 * launchers.
 *
 * Time counts while the process is on a core, or sleeps; not while it waits for a core, or is
 * stopped.
 */
#ifndef TERN_TOOLS_RUN_OVERDUE_H
#define TERN_TOOLS_RUN_OVERDUE_H

#include "job/job.h"

struct overdue {
	struct job *job;
	uint64_t limit_ns; /* 0: for ever */
	uint64_t next;     /* look, on the clock */
	bool ends;         /* the job; else it is only told of */
	struct reading *reading;
};

/* 0, or a code with a sentence. Without a call, it looks at nobody. */
int overdue_open(struct overdue *o, struct job *job);

/* Milliseconds until the next look, for poll(2): -1 for ever. */
int overdue_wait(const struct overdue *o);

/*
 * Looks, if it is time. True if a rank is in a handler for too long: which one, and what is to be
 * said of it. Once for each handler.
 */
enum { OVERDUE_TEXT = 256 };
bool overdue_look(struct overdue *o, uint32_t *rank, char text[OVERDUE_TEXT]);

#endif
