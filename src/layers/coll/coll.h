/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of teams and collectives in an endpoint, and the messages of this layer.
 * docs/collectives.md has the design.
 */
#ifndef TERN_COLL_COLL_H
#define TERN_COLL_COLL_H

#include <tern/coll.h>

#include "core/layer.h"
#include "layers.h"

extern const struct layer coll_layer;

struct run;
struct outbox;

enum coll_handler {
	COLL_DATA = COLL_HANDLERS, /* team, call, tag, place, total; and bytes */
	COLL_READY,                /* team, call, tag: a long message may come */
	COLL_MARK,                 /* team, pass */
	COLL_MARKED,               /* the same */
	COLL_VIEW,                 /* of a team of survivors: team, leader; and a set of members */
	COLL_FAILED, /* team, call; and struct failure: the call failed at the sender */
	COLL_WAITS, /* team, call, and those of the request that this answers; and words: the sender
		     * waits in it */
};

struct coll {
	struct endpoint *e;
	tern_team *teams;
	uint64_t next_id;
	uint64_t handled;  /* messages of this layer */
	struct run *waits; /* which a call waits for; NULL: none */
	struct run *spent; /* to be freed in the program's next call */
	struct run *spare; /* for the next one */
	uint32_t started;  /* runs with a handle */
	uint32_t telling;  /* teams with members that are to be told of a failure */
	struct early *early, *early_free, *note_free;
	struct slab *slabs;      /* that these lie in */
	struct outbox *outboxes; /* that no team uses */
	bool outbox_first;       /* this rank has had the one of JOB_OUTBOX */
	char words[PULSE_TEXT];  /* of coll_awaits() */
};

static inline struct coll *coll_of(tern *t)
{
	return t->own->layer[LAYER_COLL];
}

/* Tells polls whether the layer has something to do. */
static inline void coll_work(struct coll *c)
{
	layer_work(c->e, LAYER_COLL, c->started || c->telling);
}

#endif
