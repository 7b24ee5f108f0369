/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers are called, for whoever has no endpoint: tern-link, which needs nothing else here.
 */
#include <stdio.h>

#include <tern/stats.h>

#include "endpoint/handler.h"

const char *tern_stats_layer_name(unsigned layer)
{
	static const char *const names[TERN_STATS_LAYERS] = { "user", "mem",   "msg",   "typed",
							      "chan", "async", "spawn", "sequence",
							      "coll", "post" };
	return layer < TERN_STATS_LAYERS ? names[layer] : NULL;
}

void handler_number(unsigned id, char *text, size_t room)
{
	unsigned own = id - TERN_HANDLER_MAX;
	if (id < TERN_HANDLER_MAX)
		snprintf(text, room, "%s %u", tern_stats_layer_name(0), id);
	else if (own / LAYER_HANDLERS < TERN_STATS_LAYERS - 1)
		snprintf(text, room, "%s %u", tern_stats_layer_name(1 + own / LAYER_HANDLERS),
			 own % LAYER_HANDLERS);
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
