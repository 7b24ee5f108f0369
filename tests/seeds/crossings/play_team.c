/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on families of teams that overlap. */
#include <math.h>

#include "lib/type_size.h"
#include "play.h"

static uint32_t group_find(const struct group *g, uint64_t ranks)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (step_has(ranks, g->rank[i]))
			return i;
	return g->n;
}

/* -- Results ---------------------------------------------------------------------------------- */

/* A sum whose order is not told: near the model's, and the same at every member. */
static bool rounds(const struct step *s)
{
	return s->values == FRACTION && s->how <= TERN_REDUCE_PRODUCT && s->call >= C_REDUCE &&
	       s->call <= C_REDUCE_SCATTER;
}

static void near_check(const struct step *s, const char *got, const char *want, size_t len)
{
	size_t size = type_size(s->type);
	for (size_t i = 0; i < len; i += size) {
		double a, b, within = 1e-9;
		if (s->type == TERN_TYPE_FLOAT) {
			float x, y;
			memcpy(&x, got + i, size);
			memcpy(&y, want + i, size);
			a = x, b = y, within = 1e-2;
		} else {
			memcpy(&a, got + i, size);
			memcpy(&b, want + i, size);
		}
		if (fabs(a - b) > within * (1 + fabs(b) + (s->how == TERN_REDUCE_SUM ? 1000 : 0))) {
			wrong(s, "element %zu is %g, not about %g", i / size, a, b);
			return;
		}
	}
}

/* All members have the same bits. The call was made without a handle, and so is this. */
static void agree_check(const struct step *s, tern_team *team, const struct group *g,
			const char *got, size_t len)
{
	uint64_t hash = 0, all[RANKS_MOST];
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)got[i]) * UINT64_C(1099511628211);
	int rc = tern_team_allgather(team, &hash, all, sizeof hash);
	if (rc)
		return; /* a member is lost: the next call says so */
	for (uint32_t i = 0; i < g->n; i++)
		number_is(s, "the bits of the result at another member", all[i], hash);
}

struct called {
	tern_team *team;
	int may; /* an error that the call may have */
	bool must;
	struct group group;
	tern_matrix matrix[2];
	tern_part part[2][RANKS_MOST];
	size_t count[2][RANKS_MOST];
	char in[];
};

/* In place: the call got its data where the result is. */
static void call_check(struct pending *w, int rc)
{
	const struct step *s = w->s;
	struct called *c = w->own[0];
	if (c->may && (rc == c->may || c->must)) {
		code_is(s, call_names[s->call], rc, c->may);
		return;
	}
	if (!code_is(s, call_names[s->call], rc, 0))
		return;
	size_t len = model_out_bytes(s, &c->group);
	char *want = malloc(len + 1);
	model_out(s, &c->group, want);
	if (rounds(s) && (s->call != C_REDUCE || model_root(s, &c->group) == c->group.me) &&
	    (s->call != C_EXSCAN || c->group.me))
		near_check(s, w->bytes, want, len);
	else
		same_bytes(s, call_names[s->call], w->bytes, want, len);
	free(want);
	if (rounds(s) && s->call == C_ALLREDUCE)
		agree_check(s, c->team, &c->group, w->bytes, len);
}

/* -- Calls ------------------------------------------------------------------------------------ */

/* One run or, now and then, runs of 8 bytes. Returns where it ends. */
static char *part_lay(const struct step *s, struct called *c, bool in, uint32_t i, char *base,
		      size_t len)
{
	static const ptrdiff_t stride = 8;
	bool runs = s->value >> (11 + in) & 1 && len % 8 == 0;
	c->count[in][i] = len / 8;
	c->part[in][i] = runs ? (tern_part){ .base = base,
					     .run = 8,
					     .dims = 1,
					     .count = &c->count[in][i],
					     .stride = &stride }
			      : (tern_part){ .base = base, .run = len };
	return base + len;
}

static int parts_call(const struct step *s, tern_team *team, uint32_t root, struct called *c,
		      char *out, tern_op *op)
{
	const struct group *g = &c->group;
	bool one_in = s->call == C_ALLGATHERV || s->call == C_GATHERV,
	     one_out = s->call == C_SCATTERV;
	char *in = c->in;
	for (uint32_t i = 0; i < g->n && (!one_in || i == 0); i++)
		in = part_lay(s, c, true, i, in, model_piece(s, g, g->me, one_in ? root : i));
	for (uint32_t i = 0; i < g->n && (!one_out || i == 0); i++)
		out = part_lay(s, c, false, i, out, model_piece(s, g, one_out ? root : i, g->me));
	switch (s->call) {
	case C_ALLTOALLV:
		return tern_team_alltoallv_start(team, c->part[1], c->part[0], op);
	case C_ALLGATHERV:
		return tern_team_allgatherv_start(team, c->part[1], c->part[0], op);
	case C_GATHERV:
		return tern_team_gatherv_start(team, root, c->part[1],
					       g->me == root ? c->part[0] : NULL, op);
	default:
		return tern_team_scatterv_start(team, root, g->me == root ? c->part[1] : NULL,
						c->part[0], op);
	}
}

static int exchange(const struct step *s, tern_team *team, struct called *c, char *out, tern_op *op)
{
	const struct group *g = &c->group;
	tern_neighbor list[NEIGHBOURS];
	char *in = c->in;
	for (unsigned i = 0; i < NEIGHBOURS; i++) {
		uint32_t to = model_neighbour(g, g->me, i, true);
		uint32_t from = model_neighbour(g, g->me, i, false);
		in = part_lay(s, c, true, i, in, model_neighbour_len(s, g, g->me, to, i));
		out = part_lay(s, c, false, i, out, model_neighbour_len(s, g, from, g->me, i));
		list[i] = (tern_neighbor){ to, from, c->part[1][i], c->part[0][i] };
	}
	return tern_team_exchange_start(team, list, NEIGHBOURS, op);
}

static int transpose(const struct step *s, tern_team *team, struct called *c, char *out,
		     tern_op *op)
{
	size_t element = s->len / 64 < 2048 ? s->len / 64 + 1 : 2048;
	c->matrix[0] = (tern_matrix){ .base = c->in,
				      .rows = 1 + s->value % 13,
				      .cols = 1 + (s->value >> 8) % 11,
				      .element = element };
	c->matrix[1] = (tern_matrix){ .base = out,
				      .rows = c->matrix[0].cols,
				      .cols = c->matrix[0].rows,
				      .element = element };
	return tern_team_transpose_start(team, &c->matrix[0], &c->matrix[1], op);
}

static int reduction(const struct step *s, tern_team *team, uint32_t root, struct called *c,
		     char *out, tern_op *op)
{
	static const tern_reduce_op compose = { model_compose, NULL, 8 };
	bool user = s->how == HOW_COMPOSE;
	size_t n = s->len / type_size(s->type);
	enum tern_type type = user ? TERN_TYPE_USER : s->type;
	uintptr_t how = user ? TERN_REDUCE_BY(&compose) : s->how;
	/* In place now and then. */
	bool in_place = s->value >> 7 & 1 && s->call != C_REDUCE_SCATTER &&
			(s->call != C_REDUCE || c->group.me == root) &&
			(s->call != C_EXSCAN || c->group.me);
	const void *in = c->in;
	for (uint32_t i = 0; i < c->group.n; i++)
		c->count[0][i] = model_first(s, &c->group, i + 1) - model_first(s, &c->group, i);
	if (in_place) {
		memcpy(out, c->in, n * type_size(s->type));
		in = out;
	}
	switch (s->call) {
	case C_REDUCE:
		return tern_team_reduce_start(team, root, in, out, n, type, how, op);
	case C_ALLREDUCE:
		return tern_team_allreduce_start(team, in, out, n, type, how, op);
	case C_SCAN:
		return tern_team_scan_start(team, in, out, n, type, how, op);
	case C_REDUCE_SCATTER:
		return tern_team_reduce_scatter_start(team, in, out, c->count[0], type, how, op);
	default:
		return tern_team_exscan_start(team, in, out, n, type, how, op);
	}
}

static int call_begin(const struct step *s, tern_team *team, struct called *c, char *out,
		      tern_op *op)
{
	uint32_t root = model_root(s, &c->group);
	switch (s->call) {
	case C_BARRIER:
		return tern_team_barrier_start(team, op);
	case C_BROADCAST:
		if (c->group.me == root)
			memcpy(out, c->in, s->len);
		return tern_team_broadcast_start(team, root, out, s->len, op);
	case C_GATHER:
		return tern_team_gather_start(team, root, c->in, out, s->len, op);
	case C_ALLGATHER:
		return tern_team_allgather_start(team, c->in, out, s->len, op);
	case C_SCATTER:
		return tern_team_scatter_start(team, root, c->in, out, s->len, op);
	case C_ALLTOALL:
		return tern_team_alltoall_start(team, c->in, out, s->len, op);
	case C_ALLTOALLV:
	case C_ALLGATHERV:
	case C_GATHERV:
	case C_SCATTERV:
		return parts_call(s, team, root, c, out, op);
	case C_EXCHANGE:
		return exchange(s, team, c, out, op);
	case C_TRANSPOSE:
		return transpose(s, team, c, out, op);
	default:
		return reduction(s, team, root, c, out, op);
	}
}

int call_make(const struct step *s, tern_team *team, const struct group *g, bool stay, int may,
	      bool must)
{
	uint32_t lost = group_find(g, gone);
	struct pending *w = pending_new(s, 0, model_out_bytes(s, g), call_check);
	struct called *c = malloc(sizeof *c + model_in_bytes(s, g) + 1);
	*c = (struct called){ .team = team, .may = may, .group = *g };
	c->must = must && lost < g->n && model_needs(s, g, lost);
	model_in(s, g, g->me, c->in);
	w->own[0] = c;
	int rc = call_begin(s, team, c, w->bytes, stay ? &w->op : NULL);
	pending_begun(w, rc, stay);
	return rc;
}

void call_play(const struct step *s)
{
	struct place *p = &place[s->family];
	/* A sum whose bits all members compare is made by all without a handle. */
	bool stay = !waits_here(s) && !(rounds(s) && s->call == C_ALLREDUCE);
	if (p->team)
		call_make(s, p->team, &p->group, stay, p->lost, p->lost != 0);
}

/* -- Families --------------------------------------------------------------------------------- */

void teams_open(void)
{
	const struct step s = { .kind = MAKE };
	struct group *g = &place[0].group;
	code_is(&s, "tern_team_all()", tern_team_all(t, &place[0].team), 0);
	for (g->n = 0; g->n < program.ranks; g->n++)
		g->rank[g->n] = g->n;
	g->me = me;
}

static void members_check(const struct step *s, tern_team *team, const struct group *g)
{
	number_is(s, "the size of the team", tern_team_size(team), g->n);
	number_is(s, "the place in the team", tern_team_rank(team), g->me);
	for (uint32_t i = 0; i < g->n; i++)
		number_is(s, "a member", tern_team_member(team, i), g->rank[i]);
}

void machine_group(const struct group *of, struct group *out)
{
	for (uint32_t i = 0; i < of->n; i++) {
		if (!tern_near_is(t, of->rank[i]))
			continue;
		if (of->rank[i] == me)
			out->me = out->n;
		out->rank[out->n++] = of->rank[i];
	}
}

void make_play(const struct step *s)
{
	struct place *of = &place[s->of], *p = &place[s->family];
	uint32_t list[RANKS_MOST];
	int rc, key = 0;
	if (!of->team)
		return;
	tern_team *team = NULL;
	if (s->form < 2) {
		int color = model_color(s, me, &key);
		rc = tern_team_split(of->team, color, key, &team);
	} else if (s->form == 3) {
		rc = tern_team_machine(of->team, &team);
	} else {
		uint32_t n = model_list(s, &of->group, list);
		rc = tern_team_list(of->team, list, n, &team);
	}
	if (!code_is(s, "a split or list", rc, of->lost) || rc)
		return;
	*p = (struct place){ 0 };
	if (s->form == 3) {
		machine_group(&of->group, &p->group);
	} else if (!model_family(s, &of->group, &p->group)) {
		number_is(s, "a team where there is none", (uintptr_t)team, 0);
		return;
	}
	p->team = team;
	members_check(s, team, &p->group);
}

void free_play(const struct step *s)
{
	struct place *p = &place[s->family];
	pending_wait_all();
	if (p->team)
		code_is(s, "tern_team_free()", tern_team_free(p->team), 0);
	*p = (struct place){ 0 };
}

void quiet_play(const struct step *s)
{
	pending_wait_all();
	if (!place[0].team)
		return;
	code_is(s, "tern_team_quiet()", tern_team_quiet(place[0].team), place[0].lost);
	if (!gone)
		handled_check(s, true);
}
