/* SPDX-License-Identifier: BSD-3-Clause */
/* Cells of outboxes: where they are, and what goes in and out in a round. For near.c and cell.c. */
#ifndef TERN_COLL_CELL_H
#define TERN_COLL_CELL_H

#include "coll/run.h"

static inline struct outbox_cell *cell_of(const tern_team *team, uint32_t member, uint64_t round)
{
	return &team->outbox[member]->cell[round % OUTBOX_CELLS];
}

/* Where a member's data of a round lies, which are `bytes`. */
static inline unsigned char *data_of(const tern_team *team, uint32_t member, uint64_t round,
				     size_t bytes)
{
	struct outbox_cell *c = cell_of(team, member, round);
	if (bytes <= CELL_SHORT)
		return c->data;
	char *places = team->coll->e->group->job.base + team->outbox[member]->places;
	return (unsigned char *)places + (size_t)(c->place % OUTBOX_PLACES) * CELL_LONG;
}

/* Who writes in a round, or is waited for. */
enum who { NOBODY, ROOT, OTHERS, ALL, BEFORE, UP_TO };

/* What is special in each kind of step. */
struct flow {
	uint8_t writes, root_needs, needs; /* enum who */
	bool pieces;                       /* a cell has one for each member */
	bool places;                       /* each member's data has a place of its own */
	bool combines;
};

extern const struct flow flows[];

/* Whether each member combines a slice, rather than whoever needs the result all of it. */
bool near_sliced(const tern_team *team, const struct near_step *s);

/* Whether this member's cell of the team's round may be written. */
bool near_cell_free(tern_team *team, const struct near_step *s);
/* Whether the numbers of members [first, end) have come in the phase of the team's round. */
bool numbers_come(const tern_team *team, struct near_step *s, uint32_t first, uint32_t end);
/* Announces what this member has written in a round, or combined. */
void number_tell(const tern_team *team, const struct near_step *s, uint64_t round, bool combined);
/* Leaves the team's round, whatever it has moved. */
void round_skip(tern_team *team, struct near_step *s);

/* -- direct.c -- */
bool direct_may(const tern_team *team, const struct near_step *s);
/* False: it must wait. True: the step is over, or goes on by the outboxes. */
bool direct_turn(tern_team *team, struct near_step *s);

/* -- cell.c -- */
/* Writes `chunk` bytes from `at` on into this member's cell of a round. */
void cell_fill(const tern_team *team, const struct near_step *s, uint64_t round, size_t at,
	       size_t chunk);
/* Takes what the team's round has brought from [first, end), where no slices are combined. */
void cells_take(const struct run *r, const struct near_step *s, uint32_t first, uint32_t end);
/* Combines this member's slice, and takes the slices of all. */
void slice_combine(const struct run *r, const struct near_step *s);
void slices_take(const struct run *r, const struct near_step *s);

#endif
