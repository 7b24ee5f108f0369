/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers are called, for whoever has no endpoint: tern-link, which needs nothing else here.
 */
#include <stdio.h>

#include <tern/stats.h>

#include "endpoint/handler.h"

const char *layer_name(unsigned layer)
{
	if (layer >= TERN_STATS_LAYERS)
		return NULL;
	return layer ? layer_places[layer - 1].name : "user";
}

void handler_number(unsigned id, char *text, size_t room)
{
	const struct layer_place *place = layer_places;
	unsigned own = id - TERN_HANDLER_MAX;
	while (place->name && own >= (unsigned)place->first_handler + place->handlers)
		place++;
	if (id < TERN_HANDLER_MAX)
		snprintf(text, room, "user %u", id);
	else if (place->name && own >= place->first_handler)
		snprintf(text, room, "%s %u", place->name, own - place->first_handler);
	else
		snprintf(text, room, "tern %u", own);
}

const char *handler_label_of(unsigned id, const char *name, char text[LABEL_ROOM])
{
	char number[24];
	handler_number(id, number, sizeof number);
	if (id < TERN_HANDLER_MAX)
		snprintf(number, sizeof number, "handler %u", id);
	snprintf(text, LABEL_ROOM, "%s%s%s%.40s%s", id < TERN_HANDLER_MAX ? "" : "Tern's handler ",
		 number, name ? " (" : "", name ? name : "", name ? ")" : "");
	return text;
}
