/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps among members that share memory, as a run sees them: see near.c. */
#ifndef TERN_COLL_NEAR_H
#define TERN_COLL_NEAR_H

#include <stdbool.h>

#include <tern/coll.h>

#include "base/cpu.h"
#include "coll/outbox.h"
#include "core/wait.h"

struct run;
struct combine;

enum { LOOKS_MOST = 400, YIELDS_MOST = 8 }; /* at the outboxes, before a wait begins */

enum near_kind {
	NEAR_BARRIER,
	NEAR_BROADCAST,
	NEAR_REDUCE, /* to the root */
	NEAR_ALLREDUCE,
	NEAR_SCAN,
	NEAR_EXSCAN,
	NEAR_GATHER,
	NEAR_ALLGATHER,
	NEAR_SCATTER, /* from here on a cell has a piece for each member */
	NEAR_ALLTOALL,
	NEAR_ALLTOALLV,
	NEAR_REDUCE_SCATTER,
};

enum near_phase { NEAR_WAIT, NEAR_READ, NEAR_SLICES };

/* What a member tells another of the part that it sends it, and of the one that it expects. */
struct lengths {
	uint64_t sends, expects;
	uint64_t longest; /* that it sends to any */
};

/* Memory in blocks, of `len` bytes from `at` on: one for each member of a party, or from each. */
struct blocks {
	char *base;
	size_t *at, *len;
};

/* What goes to each member, and comes from it, where the lengths differ; see varied.c. */
struct varied {
	struct blocks in, out;       /* packed, one part behind the other */
	struct lengths *mine, *said; /* for each member, and by it */
	tern_part *part;             /* where what comes goes, `parts` of them, */
	uint32_t *from, parts;       /* and the member that each comes from */
	bool *named;                 /* of each member: parts go to it, or come from it */
	uint64_t longest;            /* part that any member sends */
};

/* A step among members that share memory, and how far it is. */
struct near_step {
	enum near_kind kind;
	uint32_t root; /* a place among the near members */
	const char *in;
	char *out;
	size_t len;     /* bytes of one member's part */
	size_t unit;    /* of these, never divided; 0: a divisor of 64 */
	size_t filled;  /* of these, written into cells */
	size_t done;    /* and left behind; */
	size_t chunk;   /* what the round moves that is to be left next */
	uint32_t ahead; /* rounds whose cell is written, and that are not left */
	enum near_phase phase;
	uint32_t seen; /* members from the first on whose number has come */
	struct varied *varied;
	bool direct;  /* the kernel moves it; see direct.c */
	size_t moved; /* bytes of the block that it reads */
};

/* Does what can be done of it now; whether it is over. */
bool near_turn(struct run *r, struct near_step *s);
/*
 * A barrier (`k` is NULL) or an allreduce of few bytes, without the turns of a run, if all come
 * within a moment. False: a run goes on from where the step is.
 */
bool near_meet(tern_team *team, struct near_step *s, const struct combine *k);
/*
 * Makes the places of this member's outbox if the step needs them: 0, or -ENOMEM with a sentence.
 */
int near_places(tern_team *team, const struct near_step *s);
bool near_placed(const tern_team *team, const struct near_step *s); /* it has all it needs */
/*
 * Whether near_turn() would get further. No effects but on `seen`, from which member on a look has
 * to go on: 0 at the first one.
 */
bool near_ready(const struct run *r, const struct near_step *s, uint32_t *seen);
/* A member that has left, and that the step waits for: its rank, plus 1; 0: none. */
uint32_t near_lacks(const struct run *r, const struct near_step *s);
/* Whether it waits until a cell of this member is free, of which no bell tells. */
static inline bool near_full(const struct near_step *s)
{
	return !s->ahead && s->filled < s->len;
}
/*
 * Between two looks. Where the members have not a core each, others get this one. False: that takes
 * long, and the call should wait.
 */
static inline bool near_rest(struct endpoint *e)
{
	if (!e->waiting.spin)
		return wait_yield(e);
	cpu_relax();
	return true;
}
/* So many of these before a wait begins. */
static inline uint32_t near_looks(const struct endpoint *e)
{
	uint32_t spin = e->waiting.spin;
	return !spin ? YIELDS_MOST : spin < LOOKS_MOST ? spin : LOOKS_MOST;
}
void near_doze(tern_team *team, bool begin); /* may sleep, and does not any more */
/* Sets the bits of the ranks that it waits for. */
void near_awaits(const struct run *r, const struct near_step *s, uint64_t *set);
static inline void set_add(uint64_t *set, uint32_t rank)
{
	if (rank < TERN_RANKS_MAX)
		set[rank / 64] |= UINT64_C(1) << rank % 64;
}

#endif
