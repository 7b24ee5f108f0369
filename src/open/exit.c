/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ending the whole job from one rank. The rank writes in the job's memory that it ends the job and
 * with which status; whoever watches the ranks reads that and ends the others: `tern run`, or the
 * link of each machine under another launcher. A launcher that offers PMIx is asked, too.
 *
 * Nothing is closed, and nothing that was registered with atexit() runs: this may be a handler, and
 * that of a signal.
 */
#include "open/exit.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "boot/boot.h"
#include "core/core.h"
#include "core/delivery.h"

enum { ABORTED = 1, STATUS_MOST = 255 };

/* Unless this thread, or another, may be in the middle of writing there. */
static void output_flush(void)
{
	if (interrupt_active() || ftrylockfile(stdout) != 0)
		return;
	fflush(stdout);
	funlockfile(stdout);
}

void job_exit(tern *t, int status)
{
	struct group *g = t->own->group;
	struct job_end end = { .rank = t->rank, .status = status };
	output_flush();
	if (!g->made_job) {
		job_end_write(&g->job, t->rank, status, &end);
		boot_abort(end.status);
	}
	_exit(end.status);
}

int tern_exit(tern *t, int status)
{
	int forked = rules_forked(given(t)->own);
	if (forked)
		return forked;
	if (status < 0 || status > STATUS_MOST)
		return error_set(-EINVAL,
				 "tern_exit() was called with status %d; a process ends with 0 to "
				 "%d",
				 status, STATUS_MOST);
	if (status)
		error_warn("rank %u ends the job with status %d", t->rank, status);
	job_exit(t, status);
}

int tern_abort(tern *t, const char *sentence)
{
	int forked = rules_forked(given(t)->own);
	if (forked)
		return forked;
	error_warn("rank %u ends the job: %s", t->rank,
		   sentence ? sentence : "it does not say why");
	job_exit(t, ABORTED);
}
