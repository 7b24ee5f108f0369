/* SPDX-License-Identifier: BSD-3-Clause */
/* The layers of an endpoint, as the core calls them: one after the other, as core/layer.h says. */
#ifndef TERN_CORE_LAYERS_H
#define TERN_CORE_LAYERS_H

#include "core/layer.h"

/* Those of this build, by their numbers; NULL: left out. */
extern const struct layer *const layer_table[];

/* The core's own handlers, before those of layers. */
enum core_handler {
	CORE_SERVED, /* stands for a message that was served early */
	CORE_ASK,    /* to be answered: what was sent before has been handled */
	CORE_TOLD,   /* the answer */
	CORE_PIECE,  /* of a long reply */
	CORE_CALLED, /* barrier, and the name of a call: see called.c */
};

/*
 * Bits of the endpoint's work that are no layer's: lost.c has some, a barrier is begun, a long
 * reply has not left.
 */
enum { LAYERS_DRAINING = LAYERS_MOST, LAYERS_BARRIER, LAYERS_LONG };

int layers_open(struct endpoint *e);
void layers_close(struct endpoint *e);
unsigned layers_progress(struct endpoint *e);
void layers_lost(struct endpoint *e, uint32_t rank);
bool layers_need_anyone(const struct endpoint *e, const tern_op *op);
bool layers_busy(const struct endpoint *e, uint32_t but); /* `but`: whose work does not count */
int layers_flush(struct endpoint *e);
int layers_closing(struct endpoint *e);
void layers_leave(struct endpoint *e);
void layers_disown(struct endpoint *e);
void layers_report(const struct endpoint *e, int fd);
const char *layers_await(const struct endpoint *e, uint64_t *set);

#endif
