/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes into the cells of a round, and out of them: copying and combining, without waiting. */
#include <string.h>

#include "coll/cell.h"

/* -- Writing ----------------------------------------------------------------------------------- */

/* What is left of a member's part in this round, where lengths differ. */
static size_t varied_part(size_t len, size_t at, size_t chunk)
{
	size_t left = len > at ? len - at : 0;
	return left < chunk ? left : chunk;
}

static void varied_fill(const tern_team *team, const struct varied *v, unsigned char *to, size_t at,
			size_t chunk)
{
	for (uint32_t i = 0; i < team->near.n; i++) {
		size_t len = varied_part(v->in.len[i], at, chunk);
		if (len)
			memcpy(to + i * chunk, v->in.base + v->in.at[i] + at, len);
	}
}

/* A piece for each other member: the own one never lies in a cell. */
static void pieces_fill(const tern_team *team, const struct near_step *s, unsigned char *to,
			size_t at, size_t chunk)
{
	for (uint32_t i = 0; i < team->near.n; i++)
		if (i != team->near.me)
			memcpy(to + i * chunk, s->in + i * s->len + at, chunk);
}

void cell_fill(const tern_team *team, const struct near_step *s, uint64_t round, size_t at,
	       size_t chunk)
{
	uint32_t me = team->near.me, n = team->near.n;
	switch (s->kind) {
	case NEAR_BARRIER:
		break;
	case NEAR_ALLTOALLV:
	case NEAR_REDUCE_SCATTER:
		varied_fill(team, s->varied, data_of(team, me, round, n * chunk), at, chunk);
		break;
	case NEAR_SCATTER:
	case NEAR_ALLTOALL:
		pieces_fill(team, s, data_of(team, me, round, n * chunk), at, chunk);
		break;
	default:
		memcpy(data_of(team, me, round, chunk), s->in + at, chunk);
		break;
	}
}

/* -- Reading ----------------------------------------------------------------------------------- */

/* A part that stays at its member; in place there is nothing to do. */
static void own_move(char *to, const char *from, size_t len)
{
	if (to != from)
		memmove(to, from, len);
}

static void varied_take(const tern_team *team, const struct near_step *s)
{
	const struct varied *v = s->varied;
	size_t bytes = team->near.n * s->chunk;
	for (uint32_t i = 0; i < team->near.n; i++) {
		size_t len = varied_part(v->out.len[i], s->done, s->chunk);
		if (len)
			memcpy(v->out.base + v->out.at[i] + s->done,
			       data_of(team, i, team->round, bytes) + team->near.me * s->chunk,
			       len);
	}
}

/* The piece for this member of each one's cell; `all` says that the whole cell is for it. */
static void pieces_take(const tern_team *team, const struct near_step *s, bool all)
{
	uint32_t me = team->near.me, n = team->near.n;
	size_t bytes = all ? s->chunk : n * s->chunk, piece = all ? 0 : me * s->chunk;
	const char *own = all ? s->in : s->in + me * s->len;
	own_move(s->out + me * s->len + s->done, own + s->done, s->chunk);
	for (uint32_t i = 0; i < n; i++)
		if (i != me)
			memcpy(s->out + i * s->len + s->done,
			       data_of(team, i, team->round, bytes) + piece, s->chunk);
}

static void scatter_take(const tern_team *team, const struct near_step *s)
{
	uint32_t me = team->near.me;
	if (me == s->root)
		own_move(s->out + s->done, s->in + me * s->len + s->done, s->chunk);
	else
		memcpy(s->out + s->done,
		       data_of(team, s->root, team->round, team->near.n * s->chunk) + me * s->chunk,
		       s->chunk);
}

/* Combines `len` bytes from `at` on in the cells of members 0 .. last, which have `bytes` each. */
static void data_combine(const struct run *r, const struct near_step *s, uint32_t last,
			 size_t bytes, size_t at, size_t len)
{
	const tern_team *team = r->team;
	char *out = s->out + s->done;
	memcpy(out, data_of(team, 0, team->round, bytes) + at, len);
	for (uint32_t i = 1; i <= last; i++)
		combine_apply(&r->combine, out, data_of(team, i, team->round, bytes) + at,
			      len / r->combine.size);
}

/* The piece for this member, which may have no bytes left. */
static void piece_combine(const struct run *r, const struct near_step *s)
{
	uint32_t me = r->team->near.me, n = r->team->near.n;
	size_t len = varied_part(s->varied->in.len[me], s->done, s->chunk);
	if (len)
		data_combine(r, s, n - 1, n * s->chunk, me * s->chunk, len);
}

/*
 * At the root of a reduction, whose own data lies in no cell: from itself on, or, where the order
 * matters, from the first member on. In place, and with members before the root, its data is needed
 * later: then the first member's cell takes the sum.
 */
static void root_combine(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	uint32_t n = team->near.n, first = r->combine.ordered ? 0 : s->root;
	const char *own = s->in + s->done;
	char *out = s->out + s->done, *sum = out;
	if (out == own && first != s->root)
		sum = (char *)data_of(team, first, team->round, s->chunk);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = (first + k) % n;
		const char *from =
			i == s->root ? own : (char *)data_of(team, i, team->round, s->chunk);
		if (k)
			combine_apply(&r->combine, sum, from, s->chunk / r->combine.size);
		else if (sum != from)
			memcpy(sum, from, s->chunk);
	}
	if (sum != out)
		memcpy(out, sum, s->chunk);
}

void cells_take(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	uint32_t me = team->near.me, n = team->near.n;
	switch (s->kind) {
	case NEAR_BARRIER:
		break;
	case NEAR_BROADCAST:
		if (me != s->root && s->out)
			memcpy(s->out + s->done, data_of(team, s->root, team->round, s->chunk),
			       s->chunk);
		break;
	case NEAR_REDUCE:
		if (me == s->root)
			root_combine(r, s);
		break;
	case NEAR_ALLREDUCE:
		data_combine(r, s, n - 1, s->chunk, 0, s->chunk);
		break;
	case NEAR_SCAN:
		data_combine(r, s, me, s->chunk, 0, s->chunk);
		break;
	case NEAR_EXSCAN:
		if (me)
			data_combine(r, s, me - 1, s->chunk, 0, s->chunk);
		break;
	case NEAR_GATHER:
		if (me == s->root)
			pieces_take(team, s, true);
		break;
	case NEAR_ALLGATHER:
		pieces_take(team, s, true);
		break;
	case NEAR_SCATTER:
		scatter_take(team, s);
		break;
	case NEAR_ALLTOALLV:
		varied_take(team, s);
		break;
	case NEAR_ALLTOALL:
		pieces_take(team, s, false);
		break;
	case NEAR_REDUCE_SCATTER:
		piece_combine(r, s);
		break;
	}
}

/* -- Slices ------------------------------------------------------------------------------------ */

static void slice_of(const struct run *r, const struct near_step *s, uint32_t member, size_t *from,
		     size_t *end)
{
	size_t n = s->chunk / r->combine.size, each = (n + r->team->near.n - 1) / r->team->near.n;
	size_t line = 64 / r->combine.size ? 64 / r->combine.size : 1;
	each = (each + line - 1) / line * line; /* members do not write to one line */
	*from = member * each < n ? member * each : n;
	*end = *from + each < n ? *from + each : n;
	*from *= r->combine.size;
	*end *= r->combine.size;
}

/*
 * In the first member's cell, whose slice nobody else reads now: so members are combined in their
 * order, and all of the result lies in one place.
 */
void slice_combine(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	size_t from, end;
	slice_of(r, s, team->near.me, &from, &end);
	for (uint32_t i = 1; i < team->near.n && from < end; i++)
		combine_apply(&r->combine, data_of(team, 0, team->round, s->chunk) + from,
			      data_of(team, i, team->round, s->chunk) + from,
			      (end - from) / r->combine.size);
}

void slices_take(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	if (s->kind == NEAR_ALLREDUCE || team->near.me == s->root)
		memcpy(s->out + s->done, data_of(team, 0, team->round, s->chunk), s->chunk);
}
