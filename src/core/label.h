/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers are called where people read of them: by number, and by the name of the function if
 * it is known. tern_on() passes what stands in its place for the function; only what is an
 * identifier is taken for a name.
 */
#ifndef TERN_CORE_LABEL_H
#define TERN_CORE_LABEL_H

#include "core/endpoint.h"

enum { LABEL_ROOM = 96 };

/* Tells the endpoint, its trace and the job's memory. `text` is kept, and may be NULL. */
void label_set(struct endpoint *e, unsigned id, const char *text);

/*
 * "handler 3 (on_greeting)", "Tern's handler mem 2 (on_get)"; written to `text`, which is returned.
 */
const char *label_of(const struct endpoint *e, unsigned id, char text[LABEL_ROOM]);

/* The part in front of a name: "user 3", "mem 2". */
void label_number(unsigned id, char *text, size_t room);

#endif

/* cost: base setup */
