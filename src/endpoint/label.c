/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers are called, for whoever has no endpoint: tern-link, which needs nothing else here.
 */
#include <stdio.h>
#include <string.h>

#include <tern/stats.h>

#include "endpoint/handler.h"

const char *layer_name(unsigned layer)
{
	if (layer >= TERN_STATS_LAYERS)
		return NULL;
	return layer ? layer_places[layer - 1].name : "user";
}

void handler_number(unsigned id, const char *user, const char *name, char text[NUMBER_ROOM])
{
	const struct layer_place *place = layer_places;
	unsigned own = id - TERN_HANDLER_MAX;
	while (place->name && own >= (unsigned)place->first_handler + place->handlers)
		place++;
	bool placed = place->name && own >= place->first_handler;
	const char *whose = id < TERN_HANDLER_MAX ? user : placed ? place->name : "tern";
	if (placed)
		own -= place->first_handler;
	snprintf(text, NUMBER_ROOM, name ? "%s %u (%.40s)" : "%s %u", whose,
		 id < TERN_HANDLER_MAX ? id : own, name);
}

const char *handler_label_of(unsigned id, const char *name, char text[LABEL_ROOM])
{
	char *own = id < TERN_HANDLER_MAX ? text : stpcpy(text, "Tern's handler ");
	handler_number(id, "handler", name, own);
	return text;
}
