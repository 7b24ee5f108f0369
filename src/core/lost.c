/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telling the program of ranks that are lost. It is told in a deferred function, which may send and
 * wait.
 */
#include "core/scope.h"

static void lost_tell(tern *t, void *arg)
{
	struct endpoint *e = t->own;
	(void)arg;
	e->lost_deferred = false;
	for (uint32_t r = 0; r < t->size && e->lost_fn; r++) {
		struct peer *p = &e->site.peer[r];
		if (!p->lost || p->told)
			continue;
		p->told = true;
		e->lost_fn(t, r, p->net->ops->check(p->net, r), e->lost_arg);
	}
}

void lost_found(struct endpoint *e)
{
	if (!e->lost_fn || e->lost_deferred)
		return;
	e->lost_deferred = true;
	poll_defer(e, lost_tell, NULL);
}

static bool lost_untold(const struct endpoint *e)
{
	for (uint32_t r = 0; r < e->t->size; r++)
		if (e->site.peer[r].lost && !e->site.peer[r].told)
			return true;
	return false;
}

int tern_on_lost(tern *t, tern_lost_handler *fn, void *arg)
{
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct endpoint *e = t->own;
	e->lost_fn = fn;
	e->lost_arg = arg;
	if (lost_untold(e))
		lost_found(e);
	return 0;
}

/* cost: fault control */
