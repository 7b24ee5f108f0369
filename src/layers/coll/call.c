/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls: what each collective is made of, on one machine and on several. With two levels, near
 * steps bring data to the first member of each machine (the head), heads exchange messages, and
 * near steps spread the result. call_do() makes every call: a row of `rows` has what is special in
 * one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "coll/far.h"

enum { AHEAD_MOST = 64 }; /* calls in which a member may be ahead of another */

/* A call with arguments that all members have in common, as a step of members that share memory. */
struct call {
	struct near_step s;
	size_t n; /* elements; all that follows is of reductions */
	enum tern_type type;
	uintptr_t how;
	struct combine combine;
	const size_t *counts; /* NEAR_REDUCE_SCATTER */
};

/* `root_` is 0 where there is none. */
#define MOVED(kind_, root_, in_, out_, len_)     \
	(struct call)                            \
	{                                        \
		.s = {.kind = NEAR_##kind_,      \
		      .root = (root_),           \
		      .in = (const void *)(in_), \
		      .out = (void *)(out_),     \
		      .len = (len_) }            \
	}
#define COMBINED(kind_, root_, in_, out_, n_, type_, ...)      \
	(struct call)                                          \
	{                                                      \
		.s = { .kind = NEAR_##kind_,                   \
		       .root = (root_),                        \
		       .in = (const void *)(in_),              \
		       .out = (void *)(out_) },                \
		.n = (n_), .type = (type_), .how = __VA_ARGS__ \
	}

int call_begin(tern_team *team, const char *name, struct run **r)
{
	int rc = run_begin(team, name, r);
	if (!rc && !team->is_near && ++team->ahead >= AHEAD_MOST) {
		levels_barrier(*r);
		(*r)->meets = true;
		team->ahead = 0;
	}
	return rc;
}

int root_check(const tern_team *team, uint32_t root, const char *name)
{
	if (root < team->all.n)
		return 0;
	if (!team->all.n) /* it was freed */
		return rules_forked(team->coll->e);
	return error_set(-EINVAL,
			 "%s was given member %u as its root; the team has members 0 to %u", name,
			 root, team->all.n - 1);
}

int memory_check(const void *at, size_t len, uint32_t parts, const char *name)
{
	if (len > SIZE_MAX / 4 / parts)
		return error_set(-EOVERFLOW, "%s was given %zu bytes for each of %u members", name,
				 len, parts);
	return at || !len ? 0
			  : error_set(-EINVAL, "%s was given %zu bytes, and no memory for them",
				      name, len);
}

/* -- Barrier ----------------------------------------------------------------------------------- */

int call_barrier(tern_team *team, tern_op *op, const char *name)
{
	struct run *r;
	if (team->is_near)
		return run_near(team, name, &(struct near_step){ .kind = NEAR_BARRIER }, NULL, op);
	int rc = run_begin(team, name, &r);
	if (rc)
		return rc;
	run_agree(r, "%s", "");
	levels_barrier(r);
	r->meets = true;
	return run_go(r, op);
}

/* -- Moving ------------------------------------------------------------------------------------ */

/*
 * Two levels are for what many messages would take longer: of a long gathering or scattering each
 * byte goes between the root and its member once, whatever goes first where.
 */
static bool moving_levels(const tern_team *team, const struct near_step *s)
{
	size_t given = s->kind == NEAR_ALLTOALL ? s->len * team->all.n : s->len;
	return team->heads.n < team->all.n && given <= MOVING_FEW;
}

static void moving_steps(struct run *r, const struct call *c)
{
	static const struct {
		mover *far, *levels;
	} movers[] = { [NEAR_BROADCAST] = { levels_broadcast, levels_broadcast },
		       [NEAR_GATHER] = { far_gather, levels_gather },
		       [NEAR_ALLGATHER] = { levels_allgather, levels_allgather },
		       [NEAR_SCATTER] = { far_scatter, levels_scatter },
		       [NEAR_ALLTOALL] = { far_alltoall, levels_alltoall } };
	const struct near_step *s = &c->s;
	mover *move = moving_levels(r->team, s) ? movers[s->kind].levels : movers[s->kind].far;
	move(r, s->root, s->in, s->out, s->len);
}

void steps_allgather(struct run *r, const void *in, void *out, size_t len)
{
	levels_allgather(r, 0, in, out, len);
}

void steps_alltoall(struct run *r, const void *in, void *out, size_t len)
{
	moving_steps(r, &MOVED(ALLTOALL, 0, in, out, len));
}

/* -- Combining --------------------------------------------------------------------------------- */

static void reduce_steps(struct run *r, const struct call *c)
{
	const struct near_step *s = &c->s;
	bool all = s->kind == NEAR_ALLREDUCE;
	if (r->combine.ordered)
		far_ordered(r, &r->team->all, all ? UINT32_MAX : s->root, s->in, s->out, c->n);
	else if (all)
		levels_allreduce(r, s->in, s->out, c->n);
	else
		levels_reduce(r, s->root, s->in, s->out, c->n);
}

static void scan_steps(struct run *r, const struct call *c)
{
	far_scan(r, c->s.in, c->s.out, c->n, c->s.kind == NEAR_SCAN);
}

/* Elements in cells are not divided. */
static bool near_may(const tern_team *team, const struct combine *k)
{
	return team->is_near && k->size <= PIECE_LEAST;
}

/* On one machine each takes the pieces for it out of the cells of all, and combines them alone. */
static void reduce_scatter_steps(struct run *r, const struct call *c)
{
	uint32_t n = r->team->near.n;
	struct near_step s = c->s;
	if (!near_may(r->team, &r->combine) || r->combine.size > CELL_LONG / n) {
		far_reduce_scatter(r, s.in, s.out, c->counts);
		return;
	}
	r->varied.in = blocks_lay(r, s.in, n, c->counts, 0, r->combine.size);
	s.varied = &r->varied;
	s.unit = r->combine.size;
	s.len = 0;
	for (uint32_t i = 0; !r->error && i < n; i++)
		s.len = r->varied.in.len[i] > s.len ? r->varied.in.len[i] : s.len;
	step_near(r, s);
}

/* The first counts, and a checksum of all of them. */
enum { COUNT_WORDS = 72 };

static const char *counts_words(const tern_team *team, const size_t *counts, char *words)
{
	uint32_t n = team->all.n, sum = 0, i = 0;
	int at = snprintf(words, COUNT_WORDS, " in parts of");
	for (; i < n && at < COUNT_WORDS - 40; i++)
		at += snprintf(words + at, (size_t)(COUNT_WORDS - at), " %zu", counts[i]);
	for (; i < n; i++)
		sum = (sum ^ (uint32_t)counts[i]) * 0x01000193;
	if (sum)
		snprintf(words + at, (size_t)(COUNT_WORDS - at), " ... (%08x)", sum);
	return words;
}

static int counts_sum(const tern_team *team, const size_t *counts, const char *name, size_t *sum)
{
	if (!counts)
		return error_set(-EINVAL, "%s was given no counts", name);
	*sum = 0;
	for (uint32_t i = 0; i < team->all.n; i++)
		if (__builtin_add_overflow(*sum, counts[i], sum))
			return error_set(-EOVERFLOW, "%s was given %zu elements for member %u",
					 name, counts[i], i);
	return 0;
}

/* -- Every call -------------------------------------------------------------------------------- */

/* Who has memory for a part, or for what all give or get: what others pass is not looked at. */
enum whose { ALL_HAVE, ROOT_HAS, LATER_HAVE };

static const struct {
	void (*steps)(struct run *r, const struct call *c);
	const char *way;      /* to the root, or from it; NULL: there is none */
	bool combines, parts; /* elements; a part for each member, or of each */
	bool meets;           /* whoever has completed it has met all members, if there are bytes */
	enum whose in, out;
} rows[] = {
	[NEAR_BROADCAST] = { moving_steps, .way = "from" },
	[NEAR_REDUCE] = { reduce_steps, .way = "to", .combines = true, .out = ROOT_HAS },
	[NEAR_ALLREDUCE] = { reduce_steps, .meets = true, .combines = true },
	[NEAR_SCAN] = { scan_steps, .combines = true },
	[NEAR_EXSCAN] = { scan_steps, .combines = true, .out = LATER_HAVE },
	[NEAR_GATHER] = { moving_steps, .way = "to", .parts = true, .out = ROOT_HAS },
	[NEAR_ALLGATHER] = { moving_steps, .meets = true, .parts = true },
	[NEAR_SCATTER] = { moving_steps, .way = "from", .parts = true, .in = ROOT_HAS },
	[NEAR_ALLTOALL] = { moving_steps, .meets = true, .parts = true },
	[NEAR_REDUCE_SCATTER] = { reduce_scatter_steps, .combines = true },
};

static bool has_memory(const tern_team *team, const struct call *c, enum whose whose)
{
	return whose == ALL_HAVE || (whose == ROOT_HAS ? team->all.me == c->s.root : team->all.me);
}

static int elements_check(const tern_team *team, struct call *c, const char *name)
{
	int rc = c->s.kind == NEAR_REDUCE_SCATTER ? counts_sum(team, c->counts, name, &c->n) : 0;
	if (!rc)
		rc = combine_find(c->type, c->how, name, &c->combine);
	if (!rc && c->n > SIZE_MAX / 4 / c->combine.size)
		rc = error_set(-EOVERFLOW, "%s was given %zu elements", name, c->n);
	if (rc)
		return rc;
	c->combine.n = c->n;
	c->s.len = c->n * c->combine.size;
	c->s.unit = c->combine.fn ? 0 : c->combine.size;
	return 0;
}

static int call_check(const tern_team *team, struct call *c, const char *name)
{
	const struct near_step *s = &c->s;
	int rc = root_check(team, s->root, name);
	if (!rc && rows[s->kind].combines)
		rc = elements_check(team, c, name);
	if (rc)
		return rc;
	uint32_t parts = rows[s->kind].parts ? team->all.n : 1;
	size_t out = c->counts ? c->counts[team->all.me] : s->len;
	if (has_memory(team, c, rows[s->kind].in))
		rc = memory_check(s->in, s->len, parts, name);
	if (!rc && has_memory(team, c, rows[s->kind].out))
		rc = memory_check(s->out, out, parts, name);
	return rc;
}

/* Its arguments, in words: see agree.c. */
static void call_agree(struct run *r, const struct call *c)
{
	char what[COMBINE_WORDS + 48], way[32] = "", parts[COUNT_WORDS] = "", words[COMBINE_WORDS];
	if (!r->team->maker.checked)
		return;
	snprintf(what, sizeof what, " of %zu bytes", c->s.len);
	if (rows[c->s.kind].combines) {
		combine_words(c->type, c->how, words);
		snprintf(what, sizeof what, " of %zu elements (%s)", c->n, words);
	}
	if (rows[c->s.kind].way)
		snprintf(way, sizeof way, " %s member %u", rows[c->s.kind].way, c->s.root);
	if (c->counts)
		counts_words(r->team, c->counts, parts);
	run_agree(r, "%s%s%s", what, way, parts);
}

/* `op` may be NULL. */
static int call_do(tern_team *team, struct call *c, tern_op *op, const char *name)
{
	struct run *r;
	bool combines = rows[c->s.kind].combines;
	int rc = call_check(team, c, name);
	if (!rc && team->is_near && !c->counts && (!combines || near_may(team, &c->combine)))
		return run_near(team, name, &c->s, combines ? &c->combine : NULL, op);
	if (!rc)
		rc = call_begin(team, name, &r);
	if (rc)
		return rc;
	r->combine = c->combine;
	call_agree(r, c);
	rows[c->s.kind].steps(r, c);
	r->meets |= rows[c->s.kind].meets && c->s.len;
	return run_go(r, op);
}

int call_max(tern_team *team, const uint64_t *in, uint64_t *out, const char *name)
{
	struct call c = COMBINED(ALLREDUCE, 0, in, out, 1, TERN_TYPE_UINT64, TERN_REDUCE_MAX);
	return call_do(team, &c, NULL, name);
}

static int call_go(tern_team *team, struct call *c, tern_op *op, const char *name)
{
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	return call_do(team, c, op, name);
}

/* -- The calls ----------------------------------------------------------------------------------
 */

int tern_team_barrier_start(tern_team *team, tern_op *op)
{
	const char *name = CALLED(barrier, op);
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	return call_barrier(team, op, name);
}

int tern_team_broadcast_start(tern_team *team, uint32_t root, void *data, size_t len, tern_op *op)
{
	return call_go(team, &MOVED(BROADCAST, root, data, data, len), op, CALLED(broadcast, op));
}

int tern_team_gather_start(tern_team *team, uint32_t root, const void *in, void *out, size_t len,
			   tern_op *op)
{
	return call_go(team, &MOVED(GATHER, root, in, out, len), op, CALLED(gather, op));
}

int tern_team_allgather_start(tern_team *team, const void *in, void *out, size_t len, tern_op *op)
{
	return call_go(team, &MOVED(ALLGATHER, 0, in, out, len), op, CALLED(allgather, op));
}

int tern_team_scatter_start(tern_team *team, uint32_t root, const void *in, void *out, size_t len,
			    tern_op *op)
{
	return call_go(team, &MOVED(SCATTER, root, in, out, len), op, CALLED(scatter, op));
}

int tern_team_alltoall_start(tern_team *team, const void *in, void *out, size_t len, tern_op *op)
{
	return call_go(team, &MOVED(ALLTOALL, 0, in, out, len), op, CALLED(alltoall, op));
}

int tern_team_reduce_start(tern_team *team, uint32_t root, const void *in, void *out, size_t n,
			   enum tern_type type, uintptr_t how, tern_op *op)
{
	return call_go(team, &COMBINED(REDUCE, root, in, out, n, type, how), op,
		       CALLED(reduce, op));
}

int tern_team_allreduce_start(tern_team *team, const void *in, void *out, size_t n,
			      enum tern_type type, uintptr_t how, tern_op *op)
{
	return call_go(team, &COMBINED(ALLREDUCE, 0, in, out, n, type, how), op,
		       CALLED(allreduce, op));
}

int tern_team_scan_start(tern_team *team, const void *in, void *out, size_t n, enum tern_type type,
			 uintptr_t how, tern_op *op)
{
	return call_go(team, &COMBINED(SCAN, 0, in, out, n, type, how), op, CALLED(scan, op));
}

int tern_team_exscan_start(tern_team *team, const void *in, void *out, size_t n,
			   enum tern_type type, uintptr_t how, tern_op *op)
{
	return call_go(team, &COMBINED(EXSCAN, 0, in, out, n, type, how), op, CALLED(exscan, op));
}

int tern_team_reduce_scatter_start(tern_team *team, const void *in, void *out, const size_t *counts,
				   enum tern_type type, uintptr_t how, tern_op *op)
{
	return call_go(team, &COMBINED(REDUCE_SCATTER, 0, in, out, 0, type, how, .counts = counts),
		       op, CALLED(reduce_scatter, op));
}
