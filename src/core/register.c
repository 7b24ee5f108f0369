/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering handlers, at any time, and handing out numbers for them. */
#include <errno.h>

#include "base/error.h"
#include "core/scope.h"
#include "endpoint/handler.h"

/*
 * Whoever delivers messages reads the table, so a call that changes it has ownership; it serves
 * nobody on its way out, because the program may have more handlers to register. Before a thread
 * has the endpoint nobody delivers.
 */
static struct scope register_open(tern *t)
{
	return t->own->owner.shared || attach_is_mine(t->own) ? scope_open(t)
							      : (struct scope){ NULL };
}

#define REGISTERING __attribute__((cleanup(scope_close_unserved), unused))

int tern_on_with(tern *t, unsigned id, tern_handler *fn, void *arg, const char *name)
{
	t = given(t);
	REGISTERING struct scope scope = register_open(t);
	int rc = rules_function(t->own, "handler", id, TERN_HANDLER_MAX, fn);
	if (rc)
		return rc;
	t->own->handlers.arg[id] = arg; /* before a message can be for it */
	handler_set(t->own, id, fn, name);
	return 0;
}

#undef tern_on

int tern_on(tern *t, unsigned id, tern_handler *fn)
{
	return tern_on_with(t, id, fn, NULL, NULL);
}

void *tern_msg_handler_arg(const tern *t, const tern_msg *m)
{
	unsigned id = m ? tern_msg_handler(m) : TERN_HANDLER_MAX;
	return id < TERN_HANDLER_MAX ? given(t)->own->handlers.arg[id] : NULL;
}

int tern_msg_is_reply(tern *t, const tern_msg *m)
{
	struct endpoint *e = given(t)->own;
	int rc = rules_handling(e, m, "tern_msg_is_reply()");
	return rc ? rc : e->inlet->kind == TERN_KIND_REPLY;
}

/* From the last number down: programs count from 0. */
int tern_on_range(tern *t, unsigned n, unsigned *first)
{
	t = given(t);
	REGISTERING struct scope scope = register_open(t);
	struct endpoint *e = t->own;
	int rc = rules_forked(e);
	if (rc)
		return rc;
	if (!n || !first)
		return error_set(-EINVAL, "tern_on_range() was asked for no handlers");
	unsigned left = TERN_HANDLER_MAX - e->handlers.ranged;
	if (n > left)
		return error_set(
			-ENOSPC,
			"tern_on_range() was asked for %u handlers; rank %u has %u left of %d", n,
			t->rank, left, TERN_HANDLER_MAX);
	for (unsigned id = left - n; id < left; id++)
		if (t->known[id])
			return error_set(
				-EEXIST,
				"tern_on_range() was asked for %u handlers, numbers %u to %u, "
				"but handler %u is registered already",
				n, left - n, left - 1, id);
	e->handlers.ranged += n;
	*first = left - n;
	return 0;
}
