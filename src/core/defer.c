/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that handlers leave for the program: they run after the handlers of a poll. */
#include <errno.h>

#include "base/error.h"
#include "core/scope.h"
#include "endpoint/count.h"

enum { DEFER_PLACES = TERN_DEFER_MAX + 3 };

void defer_run(struct endpoint *e)
{
	/* In a layer's turn (inner), one that waited would keep that from going on. */
	if (e->defer.running || e->barrier.quiescing || e->inner)
		return;
	e->defer.running = true;
	e->defer.thread = e->site.context ? e->site.context() : 0;
	e->defer.by = attach_token();
	/* Those that these defer wait for the next poll. */
	for (uint32_t n = e->deferred_count; n; n--) {
		struct deferred d = e->defer.queue[e->defer.first];
		e->defer.first = (e->defer.first + 1) % DEFER_PLACES;
		e->deferred_count--;
		d.fn(e->t, d.arg);
	}
	e->defer.running = false;
}

void defer_add(struct endpoint *e, void (*fn)(tern *t, void *arg), void *arg)
{
	e->defer.queue[(e->defer.first + e->deferred_count++) % DEFER_PLACES] =
		(struct deferred){ fn, arg };
}

int tern_defer(tern *t, void (*fn)(tern *t, void *arg), void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked)
		return rules_forked(t->own);
	struct endpoint *e = t->own;
	if (!fn)
		return error_set(-EINVAL, "tern_defer() was given no function");
	if (e->deferred_count - e->lost.deferred - (e->defer.ops_done != NULL) - end_deferred(e) ==
	    TERN_DEFER_MAX)
		return error_set(
			-EAGAIN,
			"%d deferred functions are waiting already: let the program poll first",
			TERN_DEFER_MAX);
	defer_add(e, fn, arg);
	stats_most(&e->pulse->count[PULSE_DEFERRED], e->deferred_count);
	return 0;
}
