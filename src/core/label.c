/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/label.h"

#include <stdio.h>

#include <tern/stats.h>

#include "core/layer.h"
#include "core/trace.h"

void label_set(struct endpoint *e, unsigned id, const char *text)
{
	const char *name = job_name_in(text);
	e->name[id] = name;
	if (!name)
		return;
	job_name_set(&e->group->job, id, name);
	if (e->trace)
		trace_name(e, id, name);
}

/* Another rank may have registered what is not registered here. */
static const char *name_of(const struct endpoint *e, unsigned id, char text[JOB_NAME])
{
	if (e->name[id])
		return e->name[id];
	return job_name_get(&e->group->job, id, text) ? text : NULL;
}

void label_number(unsigned id, char *text, size_t room)
{
	unsigned own = id - TERN_HANDLER_MAX;
	if (id < TERN_HANDLER_MAX)
		snprintf(text, room, "%s %u", tern_stats_layer_name(0), id);
	else if (own / LAYER_HANDLERS < LAYERS)
		snprintf(text, room, "%s %u", tern_stats_layer_name(1 + own / LAYER_HANDLERS),
			 own % LAYER_HANDLERS);
	else
		snprintf(text, room, "tern %u", own);
}

const char *label_of(const struct endpoint *e, unsigned id, char text[LABEL_ROOM])
{
	char number[24], other[JOB_NAME];
	const char *name = name_of(e, id, other);
	label_number(id, number, sizeof number);
	if (id < TERN_HANDLER_MAX)
		snprintf(number, sizeof number, "handler %u", id);
	snprintf(text, LABEL_ROOM, "%s%s%s%.40s%s", id < TERN_HANDLER_MAX ? "" : "Tern's handler ",
		 number, name ? " (" : "", name ? name : "", name ? ")" : "");
	return text;
}

const char *tern_stats_handler_name(tern *t, unsigned id)
{
	return id < TERN_STATS_HANDLERS ? t->own->name[id] : NULL;
}

/* cost: base setup */
