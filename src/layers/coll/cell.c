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

/* Where this member's data for another one begins. */
static const char *part_for(const struct near_step *s, uint32_t member)
{
	if (s->varied)
		return s->varied->in.base + s->varied->in.at[member];
	return flows[s->kind].pieces ? s->in + member * s->len : s->in;
}

/* What stays at its member lies in no cell, but for what its own result would be written over. */
void cell_fill(const tern_team *team, const struct near_step *s, uint64_t round, size_t at,
	       size_t chunk)
{
	const struct flow *flow = &flows[s->kind];
	uint32_t n = flow->pieces ? team->near.n : 1;
	if (s->kind == NEAR_BARRIER)
		return;
	unsigned char *to = data_of(team, team->near.me, round, n * chunk);
	for (uint32_t i = 0; i < n; i++) {
		size_t len = s->varied ? varied_part(s->varied->in.len[i], at, chunk) : chunk;
		if (len && !(flow->pieces && !flow->combines && i == team->near.me))
			memcpy(to + i * chunk, part_for(s, i) + at, len);
	}
}

/* -- Reading ----------------------------------------------------------------------------------- */

/* What a member has for this one in the team's round. */
static const char *part_from(const tern_team *team, const struct near_step *s, uint32_t member)
{
	const struct flow *flow = &flows[s->kind];
	uint32_t me = team->near.me;
	if (member == me && !flow->combines)
		return part_for(s, me) + s->done;
	size_t bytes = flow->pieces ? team->near.n * s->chunk : s->chunk;
	return (char *)data_of(team, member, team->round, bytes) +
	       (flow->pieces ? me * s->chunk : 0);
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
		const char *from = i == s->root ? own : part_from(team, s, i);
		if (k)
			combine_apply(&r->combine, sum, from, s->chunk / r->combine.size);
		else if (sum != from)
			memcpy(sum, from, s->chunk);
	}
	if (sum != out)
		memcpy(out, sum, s->chunk);
}

void cells_take(const struct run *r, const struct near_step *s, uint32_t first, uint32_t end)
{
	const tern_team *team = r->team;
	const struct flow *flow = &flows[s->kind];
	const struct varied *v = s->varied;
	if (s->kind == NEAR_REDUCE && end)
		root_combine(r, s);
	if (s->kind == NEAR_REDUCE || s->kind == NEAR_BARRIER)
		return;
	for (uint32_t i = first; i < end; i++) {
		const char *from = part_from(team, s, i);
		char *to = v && !flow->combines ? v->out.base + v->out.at[i]
						: s->out + (flow->places ? i * s->len : 0);
		size_t len = s->chunk;
		if (v)
			len = varied_part(flow->combines ? v->in.len[team->near.me] : v->out.len[i],
					  s->done, s->chunk);
		if (!len || to + s->done == from)
			continue;
		if (flow->combines && i != first)
			combine_apply(&r->combine, to + s->done, from, len / r->combine.size);
		else
			memmove(to + s->done, from, len);
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
