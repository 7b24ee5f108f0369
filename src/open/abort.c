/* SPDX-License-Identifier: BSD-3-Clause */
/* Ending the whole job from one rank. */
#include <unistd.h>

#include "base/error.h"
#include "core/core.h"

enum { ABORTED = 1 }; /* the status of the process */

/*
 * Nothing is closed, and nothing that was registered with atexit() runs: this may be a handler, a
 * signal's too, and a launcher is to see a rank that failed. `tern run` then ends the others.
 */
int tern_abort(tern *t, const char *sentence)
{
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	error_warn("rank %u ends the job: %s", t->rank,
		   sentence ? sentence : "it does not say why");
	_exit(ABORTED);
}

/* cost: base control */
