/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member's outbox: memory that it writes and the other members of its machine read, in cells. See
 * near.c, and docs/collectives.md.
 */
#ifndef TERN_COLL_OUTBOX_H
#define TERN_COLL_OUTBOX_H

#include <stdatomic.h>
#include <stdint.h>

#include "coll/threshold.h"

struct coll;

enum { OUTBOX_CELLS = 32, OUTBOX_PLACES = 8 };

/*
 * What a member says in a round, and to whom it does not matter. CELL_LINE bytes are in one line.
 */
struct outbox_cell {
	_Alignas(64) _Atomic uint64_t ready; /* the round whose data is here, plus 1 */
	uint32_t place; /* where the data is if it is longer: see struct outbox, `bytes` */
	_Alignas(16) unsigned char data[CELL_SHORT];
	_Alignas(64) _Atomic uint64_t combined; /* the round whose slice is combined, plus 1 */
};

/*
 * An outbox is used again by later teams, and is never given back: who is slow to leave the last
 * round of a team may still look at it. Its numbers only grow, so what it sees then is not too
 * small.
 */
struct outbox {
	struct outbox_cell cell[OUTBOX_CELLS];
	_Alignas(64) _Atomic uint64_t left; /* rounds that its owner has left */
	/* In the first member's outbox: members that may sleep in a round. */
	_Alignas(64) _Atomic uint64_t sleepers;
	struct outbox *next; /* of those that the owner does not use */
	/*
	 * Where its OUTBOX_PLACES places of CELL_LONG bytes are in the job's memory; 0: they were
	 * not needed yet. Written before the number of the first cell that names one.
	 */
	uint64_t places;
};

/* What a member brings to a team. */
struct place {
	uint64_t outbox; /* where it is in the job's memory; OUTBOX_NONE: it has none */
	uint64_t round;  /* the first that the outbox has not been used for */
};
/* A member of a team that is to be made, among others by its key. */
struct seat {
	uint32_t rank;
	int32_t key;
	struct place place;
};
enum { OUTBOX_NONE = 0 }; /* where the job's head is; also of a member that has not said */

/* NULL, and OUTBOX_NONE, if the heap has no room, or others do not map it. */
struct outbox *outbox_take(struct coll *c, struct place *place);
void outbox_give(struct coll *c, struct outbox *d);

#endif
