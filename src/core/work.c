/* SPDX-License-Identifier: BSD-3-Clause */
/* Computation that a program declares: the world of the endpoint says how long it takes. */
#include <errno.h>

#include <tern/sim.h>

#include "base/error.h"
#include "core/scope.h"
#include "core/wait.h"

/* Whether messages may be served here, and other threads run: as in a poll of the program. */
static bool work_may(const struct endpoint *e)
{
	return !in_handler(e) && !held(e) && !e->defer.running && !e->inner &&
	       !e->barrier.quiescing && attach_is_mine(e);
}

int tern_sim_work(tern *t, const tern_work *work)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	uint64_t left;
	if (e->forked == NO_ENDPOINT)
		return rules_forked(e);
	if (!work)
		return error_set(-EINVAL, "tern_sim_work() was called without work");
	if (!e->world->work)
		return 0;
	int rc = e->world->price(work, &left);
	if (rc)
		return rc;
	for (;;) {
		uint64_t thread = e->site.context ? e->site.context() : 0;
		bool may = work_may(e), others = may && wait_scheduler;
		switch (e->world->work(&left, thread, may, others)) {
		case WORK_DONE:
			return 0;
		case WORK_SERVE:
			if (may)
				poll_once(e, KINDS_BOTH);
			break;
		case WORK_SWITCH:
			wait_scheduler->pass(e, NULL, 1);
		}
	}
}
