/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers of an endpoint: their table, and what they are called where people read of them.
 * That is a number, and the name of the function if it is known. tern_on() passes what stands in
 * its place for the function; only what is an identifier is taken for a name.
 */
#ifndef TERN_ENDPOINT_HANDLER_H
#define TERN_ENDPOINT_HANDLER_H

#include "endpoint/endpoint.h"

/* The number of the handler that the message is for. */
static inline unsigned handler_of(const tern_msg *m)
{
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	return (unsigned)(head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS;
}

/*
 * After all that watches handlers is open, and before any is registered. 0, or -ENOMEM with a
 * sentence.
 */
int handlers_open(struct endpoint *e);
/* The table has `fn` under that number, or what stands for it where handlers are watched. */
void handler_put(struct endpoint *e, unsigned id, tern_handler *fn);
tern_handler *handler_meant(const struct endpoint *e, unsigned id); /* what was put there */

/*
 * Registers `fn`, and tells the endpoint, its trace and the job's memory its name, which is kept
 * and may be NULL.
 */
void handler_set(struct endpoint *e, unsigned id, tern_handler *fn, const char *name);

/*
 * "handler 3 (on_greeting)", "Tern's handler mem 2 (on_get)"; written to `text`, which is returned.
 */
enum { LABEL_ROOM = 96, NUMBER_ROOM = 80 };
/* "user" for 0, then the name of a layer of this build; NULL if there is none. */
const char *layer_name(unsigned layer);
const char *handler_label(const struct endpoint *e, unsigned id, char text[LABEL_ROOM]);
/* The same where there is no endpoint; `name` may be NULL. */
const char *handler_label_of(unsigned id, const char *name, char text[LABEL_ROOM]);

/* "user 3 (on_greeting)", where `user` says so, and "mem 2 (on_get)"; `name` may be NULL. */
void handler_number(unsigned id, const char *user, const char *name, char text[NUMBER_ROOM]);

#endif
