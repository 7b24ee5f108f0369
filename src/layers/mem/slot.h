/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this rank has asked others for and not been answered. The number of a slot
 * travels in the request and comes back in the answer, never a pointer.
 */
#ifndef TERN_MEM_SLOT_H
#define TERN_MEM_SLOT_H

#include <stdbool.h>
#include <tern/mem.h>

#include "mem/scatter/parts.h"

struct mem;
struct transfer;

/*
 * Requests that are answered at once have their own part of the slots, so that those
 * which an owner holds for long cannot stop them.
 */
enum slot_part { SLOTS_QUICK = 0, SLOTS_HELD = 64 };
enum { SLOTS_OF_PART = 64, SLOTS = 128 };

struct slot {
	bool used;
	/* Raised with each use, so that an answer that is no longer wanted is known. */
	uint32_t generation;
	uint32_t rank;      /* who was asked */
	struct transfer *x; /* whose chunk it is; NULL if none */
	tern_op *op;        /* who waits for it; NULL for a chunk, whose transfer has one */
	size_t len;         /* of the data, which goes where the slot's walk stands; 0: none */
	bool word;          /* what comes back is one word, of which `len` bytes are wanted */
	size_t runs;        /* of a list of one part, its dimension */
	ptrdiff_t stride;
	tern_part part;
	uint64_t ask[4]; /* of a request that is sent again when its owner has no place for it */
	bool asks, again;
	bool moving;    /* a network does it by itself */
	int failed;     /* and could not: the error, unless its rank turns out to be lost */
	uint64_t until; /* when it is no longer waited for in either case */
};

struct slots {
	bool again; /* one may have to be sent again */
	struct slot slot[SLOTS];
	struct run_walk walk[SLOTS]; /* where data goes */
};

void slots_open(struct mem *m);

/*
 * A slot, or NULL. slot_wait() serves messages until there is one; an error where that is not
 * allowed.
 */
struct slot *slot_take(struct mem *m, uint32_t rank, enum slot_part part);
int slot_wait(struct mem *m, uint32_t rank, struct slot **out);
void slot_give(struct slot *s);
uint64_t slot_name(struct mem *m, struct slot *s); /* what travels */
/* The answer brings `len` bytes, which go to `local`. */
void slot_expect(struct mem *m, struct slot *s, void *local, size_t len);
/*
 * Sends the request that `s` is for, as a part of `op`; its words have the slot's name. If it
 * cannot be sent, the slot is given back. The request may wait for room, and its rank be lost
 * meanwhile: then the slot has ended, `op` has the error, and 0 is returned.
 */
int slot_request(struct mem *m, struct slot *s, tern_op *op, unsigned id, const void *data,
		 size_t len, unsigned n, const uint64_t *words);

/* The answer has come: lays down `data`, tells whoever waits. */
/* `data` is laid down if there is no error; if it is not what the slot expects, that is one. */
void slot_answer(struct mem *m, uint64_t name, int error, uint32_t from, const void *data,
		 size_t len);

/* A network has moved it. */
void slot_moved(struct mem *m, uint64_t name, int error);

/*
 * Whether the handle waits for a value that an owner holds back: anybody may be the one to make it
 * ready.
 */
bool slots_need_anyone(const void *mem, const tern_op *op);
/* Forgets what waits for the handle; answers that come later are ignored. */
void slots_forget(struct mem *m, tern_op *op);

/* Sends again what found no place at its owner. */
unsigned slot_progress(struct mem *m);
bool slots_quiet(const struct mem *m); /* nothing quick waits for its answer */

/*
 * Ends what was asked of ranks that have left, with the error that names them; true if answers
 * of theirs must be handled first.
 */
bool slot_lost(struct mem *m);

#endif
