/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of handlers, and their names. */
#include "endpoint/handler.h"

#include <errno.h>
#include <stdlib.h>

#include "endpoint/misuse.h"
#include "endpoint/trace.h"
#include "endpoint/watchdog.h"
#include "endpoint/watched.h"

/* -- Where handlers are watched ---------------------------------------------------------------- */

static void handler_run(tern *t, const tern_msg *m)
{
	struct endpoint *e = t->own;
	struct delivery d = { 0 };
	uint64_t before = 0;
	if (e->trace)
		d = trace_arrived(e, m);
	if (e->watchdog)
		before = watchdog_handles(e, m);
	e->handlers.meant[handler_of(m)](t, m);
	if (e->watchdog)
		watchdog_handled(e, before);
	if (e->trace)
		trace_handled(e, d);
}

/* Stands in the table for every handler, and calls the one that is meant. */
static void handler_watched(tern *t, const tern_msg *m)
{
	if (t->own->watched)
		watched_deliver(t, m, handler_run);
	else
		handler_run(t, m);
}

int handlers_open(struct endpoint *e)
{
	e->watched = watched();
	if (!e->watched && !e->trace && !e->watchdog)
		return 0;
	e->handlers.meant = malloc(TERN_HANDLER_SLOTS * sizeof *e->handlers.meant);
	if (!e->handlers.meant)
		return error_set(-ENOMEM, "opening rank %u: no memory", e->t->rank);
	for (unsigned id = 0; id < TERN_HANDLER_SLOTS; id++) /* also those that nobody registers */
		handler_put(e, id, e->t->handler[id]);
	return 0;
}

void handler_put(struct endpoint *e, unsigned id, tern_handler *fn)
{
	if (e->handlers.meant)
		e->handlers.meant[id] = fn;
	e->t->handler[id] = e->handlers.meant ? handler_watched : fn;
}

tern_handler *handler_meant(const struct endpoint *e, unsigned id)
{
	return e->handlers.meant ? e->handlers.meant[id] : e->t->handler[id];
}

/* -- Their names ------------------------------------------------------------------------------- */

void handler_set(struct endpoint *e, unsigned id, tern_handler *fn, const char *name)
{
	handler_put(e, id, fn);
	e->t->known[id] = 1;
	e->handlers.name[id] = job_name_in(name);
	if (!e->handlers.name[id])
		return;
	job_name_set(&e->group->job, id, e->handlers.name[id]);
	if (e->trace)
		trace_name(e, id, e->handlers.name[id]);
}

const char *handler_label(const struct endpoint *e, unsigned id, char text[LABEL_ROOM])
{
	char other[JOB_NAME];
	const char *name = e->handlers.name[id];
	/* Another rank may have registered what is not registered here. */
	if (!name && job_name_get(&e->group->job, id, other))
		name = other;
	return handler_label_of(id, name, text);
}
