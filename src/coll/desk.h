/* SPDX-License-Identifier: BSD-3-Clause */
/* Cells of desks: where they are, and what goes in and out in a round. For desk.c and cell.c. */
#ifndef TERN_COLL_DESK_H
#define TERN_COLL_DESK_H

#include "coll/coll.h"

static inline struct desk_cell *cell_of(const tern_team *team, uint32_t member, uint64_t round)
{
	return &team->desk[member]->cell[round % DESK_CELLS];
}

/* Where a member's data of a round lies, which are `bytes`. */
static inline unsigned char *data_of(const tern_team *team, uint32_t member, uint64_t round,
				     size_t bytes)
{
	struct desk_cell *c = cell_of(team, member, round);
	return bytes <= CELL_SHORT ? c->data : team->desk[member]->bytes[c->place % DESK_PLACES];
}

/* Whether each member combines a slice, rather than whoever needs the result all of it. */
bool near_sliced(const tern_team *team, const struct near_step *s);

/* -- cell.c -- */
/* Writes `chunk` bytes from `at` on into this member's cell of a round. */
void cell_fill(const tern_team *team, const struct near_step *s, uint64_t round, size_t at,
	       size_t chunk);
/* Takes what the team's round has brought, where no slices are combined. */
void cells_take(const struct run *r, const struct near_step *s);
/* Combines this member's slice, and takes the slices of all. */
void slice_combine(const struct run *r, const struct near_step *s);
void slices_take(const struct run *r, const struct near_step *s);

#endif
