/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of handlers, and their names. */
#include "endpoint/handler.h"

#include <tern/stats.h>

#include "endpoint/misuse.h"
#include "endpoint/trace.h"
#include "endpoint/watchdog.h"
#include "endpoint/watched.h"

void handler_set(struct endpoint *e, unsigned id, tern_handler *fn, const char *name)
{
	fn = trace_handler(e, id, watchdog_handler(e, id, fn));
	e->t->handler[id] = watched_handler(e, id, fn);
	e->t->known[id] = 1;
	e->handlers.name[id] = job_name_in(name);
	if (!e->handlers.name[id])
		return;
	job_name_set(&e->group->job, id, e->handlers.name[id]);
	if (e->trace)
		trace_name(e, id, e->handlers.name[id]);
}

/* Another rank may have registered what is not registered here. */
static const char *name_of(const struct endpoint *e, unsigned id, char text[JOB_NAME])
{
	if (e->handlers.name[id])
		return e->handlers.name[id];
	return job_name_get(&e->group->job, id, text) ? text : NULL;
}

const char *handler_label(const struct endpoint *e, unsigned id, char text[LABEL_ROOM])
{
	char other[JOB_NAME];
	return handler_label_of(id, name_of(e, id, other), text);
}
