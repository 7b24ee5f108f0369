/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls whose lengths differ from member to member: gathering, scattering, all-to-all, the exchange
 * with neighbours, and the transposition of a matrix. All are lists of parts, each of which goes to
 * a member or comes from one. Members that name each other first tell each other the lengths. Where
 * two do not agree, the shorter one goes, and the call returns an error at both; in a checked team
 * nothing goes, and it fails at all: see agree.c.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "coll/far.h"
#include "mem/scatter/parts.h"

static size_t shorter(size_t a, uint64_t b)
{
	return a < b ? a : (size_t)b;
}

/* Parts that go to members, or come from them. */
struct parts {
	const tern_part *part;
	const uint32_t *member; /* of each part; NULL: part i is member i's */
	uint32_t n;
	bool same; /* one part goes to each of n members */
};

static uint32_t member_of(const struct parts *p, uint32_t k)
{
	return p->member ? p->member[k] : k;
}

static const tern_part *part_of(const struct parts *p, uint32_t k)
{
	return &p->part[p->same ? 0 : k];
}

/* -- Steps ------------------------------------------------------------------------------------- */

/*
 * Messages that are yet to be sent and received get the lengths that are agreed; 0: there is none.
 */
static void steps_shorten(struct run *r, uint32_t rank, size_t in, size_t out)
{
	for (unsigned i = r->at + 1; i < r->steps; i++) {
		struct step *s = &r->step[i];
		if (s->peer != rank || (s->kind != STEP_SEND && s->kind != STEP_RECV))
			continue;
		s->len = shorter(s->len, s->kind == STEP_SEND ? in : out);
		if (!s->len)
			s->kind = STEP_COPY;
	}
}

static void lengths_agree(struct run *r)
{
	struct varied *v = &r->varied;
	for (uint32_t i = 0; i < r->team->all.n; i++) {
		size_t *in = &v->in.len[i], *out = &v->out.len[i];
		v->longest = v->said[i].longest > v->longest ? v->said[i].longest : v->longest;
		if (*in == v->said[i].expects && *out == v->said[i].sends)
			continue;
		r->result = error_set(-EMSGSIZE,
				      "%s: rank %u sends %llu bytes and expects %llu, where this "
				      "one expects %zu and sends %zu",
				      r->name, r->team->all.rank[i],
				      (unsigned long long)v->said[i].sends,
				      (unsigned long long)v->said[i].expects, *out, *in);
		*in = shorter(*in, v->said[i].expects);
		*out = shorter(*out, v->said[i].sends);
		steps_shorten(r, r->team->all.rank[i], *in, *out);
	}
	if (r->result) /* sending what is left may find no room, which has another sentence */
		error_keep(&r->why);
}

/* Parts from one member follow each other, in the order of the list. */
static void parts_unpack(struct run *r)
{
	const struct varied *v = &r->varied;
	for (uint32_t k = 0; k < v->parts; k++) {
		struct run_walk w;
		uint32_t i = v->from[k];
		size_t len;
		if (parts_total(&v->part[k], 1, &len) || !(len = shorter(len, v->out.len[i])))
			continue;
		parts_begin(&w, &v->part[k], 1, true);
		parts_copy(&w, v->out.base + v->out.at[i], len, false);
		v->out.at[i] += len;
		v->out.len[i] -= len;
	}
}

static void near_steps(struct run *r)
{
	struct varied *v = &r->varied;
	step_near(r, (struct near_step){ .kind = NEAR_ALLTOALL,
					 .in = (const char *)v->mine,
					 .out = (char *)v->said,
					 .len = sizeof *v->mine });
	step_call(r, lengths_agree, NULL, NULL, 0);
	step_near(r, (struct near_step){ .kind = NEAR_ALLTOALLV, .varied = v });
}

/* Members that name each other tell each other the lengths. */
static void far_lengths(struct run *r)
{
	struct varied *v = &r->varied;
	const struct members *p = &r->team->all;
	struct blocks mine = blocks_lay(r, v->mine, p->n, NULL, p->n, sizeof *v->mine), said = mine;
	said.base = (char *)v->said;
	for (uint32_t i = 0; !r->error && i < p->n; i++)
		if (!v->named[i])
			mine.len[i] = 0; /* and that of `said`, which has the same array */
	far_exchange(r, p, 0, &mine, &said);
	step_call(r, lengths_agree, NULL, NULL, 0);
}

/* -- Beginning --------------------------------------------------------------------------------- */

/* Adds up what each member's parts have, and all of them. */
static int lengths_read(const struct parts *p, size_t *len, size_t *total)
{
	size_t bytes = 0;
	for (uint32_t k = 0; k < p->n; k++) {
		const tern_part *part = part_of(p, k);
		int rc = parts_total(part, 1, &bytes);
		if (rc)
			return rc;
		if (bytes && !part->base)
			return error_set(-EINVAL, "part %u has %zu bytes, and no memory for them",
					 k, bytes);
		if (__builtin_add_overflow(*total, bytes, total) || *total > SIZE_MAX / 4)
			return error_set(-EINVAL, "parts have more bytes than memory can");
		len[member_of(p, k)] += bytes;
	}
	if (p->same)
		*total = bytes;
	return 0;
}

/* Parts for one member follow each other; one part may go to all. */
static bool blocks_place(struct run *r, struct blocks *b, bool same, size_t total)
{
	b->base = run_scratch(r, total);
	for (uint32_t i = 1; i < r->team->all.n; i++)
		b->at[i] = same ? 0 : b->at[i - 1] + b->len[i - 1];
	return b->base;
}

static void parts_pack(const struct varied *v, const struct parts *in)
{
	for (uint32_t k = 0; k < (in->same ? in->n != 0 : in->n); k++) {
		struct run_walk w;
		struct lengths *said = &v->said[member_of(in, k)]; /* counts, for the moment */
		char *at = v->in.base + v->in.at[member_of(in, k)] + said->sends;
		size_t len;
		if (parts_total(part_of(in, k), 1, &len) || !len)
			continue;
		parts_begin(&w, part_of(in, k), 1, true);
		parts_copy(&w, at, len, true);
		said->sends += len;
	}
}

/* Everything that the run needs lies in its scratch; what is sent is packed into it now. */
static void varied_fill(struct run *r, const struct parts *in, const struct parts *out)
{
	struct varied *v = &r->varied;
	uint32_t n = r->team->all.n;
	parts_pack(v, in);
	uint64_t longest = 0;
	for (uint32_t i = 0; i < n; i++)
		longest = v->in.len[i] > longest ? v->in.len[i] : longest;
	for (uint32_t i = 0; i < n; i++)
		v->mine[i] = (struct lengths){ v->in.len[i], v->out.len[i], longest };
	memset(v->said, 0, n * sizeof *v->said);
	for (uint32_t k = 0; k < in->n; k++)
		v->named[member_of(in, k)] = true;
	for (uint32_t k = 0; k < out->n; k++) {
		v->named[v->from[k] = member_of(out, k)] = true;
		v->part[k] = *part_of(out, k);
	}
	v->parts = out->n;
}

static int varied_read(struct run *r, const struct parts *in, const struct parts *out)
{
	struct varied *v = &r->varied;
	uint32_t n = r->team->all.n;
	size_t total[2] = { 0, 0 }, bytes = n * (2 * sizeof *v->mine + sizeof *v->named);
	if ((in->n && !in->part) || (out->n && !out->part))
		return error_set(-EINVAL, "%s was given no list of parts", r->name);
	v->in = blocks_none(r, NULL, n);
	v->out = blocks_none(r, NULL, n);
	v->mine = (void *)run_scratch(r, bytes);
	v->part = (void *)run_scratch(r, out->n * (sizeof *v->part + sizeof *v->from));
	if (r->error)
		return 0; /* the run says so */
	memset(v->mine, 0, bytes);
	v->said = v->mine + n;
	v->named = (bool *)(v->said + n);
	v->from = (void *)(v->part + out->n);
	int rc = lengths_read(in, v->in.len, &total[0]);
	if (!rc)
		rc = lengths_read(out, v->out.len, &total[1]);
	if (!rc && blocks_place(r, &v->in, in->same, total[0]) &&
	    blocks_place(r, &v->out, false, total[1]))
		varied_fill(r, in, out);
	return rc;
}

/* A call with varied lengths. */
struct varied_call {
	struct parts in, out;
	bool meets; /* every member names every other */
	uint32_t root;
	const char *way; /* " to member " and the root; NULL: there is none */
};

/* Of a run that has just begun, whose memory the lists may lie in. */
static int varied_go(struct run *r, const struct varied_call *x, tern_op *op)
{
	const tern_team *team = r->team;
	int rc = varied_read(r, &x->in, &x->out);
	if (rc) {
		run_drop(r);
		return rc;
	}
	if (x->way)
		run_agree(r, " %s member %u", x->way, x->root);
	else
		run_agree(r, "%s", "");
	if (team->is_near) {
		near_steps(r);
	} else {
		(team->maker.checked ? run_agree_lengths : far_lengths)(r);
		far_exchange(r, &team->all, 1, &r->varied.in, &r->varied.out);
	}
	step_call(r, parts_unpack, NULL, NULL, 0);
	r->meets = x->meets;
	return run_go(r, op);
}

/* -- The calls --------------------------------------------------------------------------------- */

/* A part from each member, for which each has one for every member, or one for all. */
static int from_all(tern_team *team, const tern_part *in, bool same, const tern_part *out,
		    tern_op *op, const char *name)
{
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	uint32_t n = team->all.n;
	struct varied_call x = { .in = { .part = in, .n = n, .same = same },
				 .out = { .part = out, .n = n },
				 .meets = true };
	struct run *r;
	int rc = call_begin(team, name, &r);
	return rc ? rc : varied_go(r, &x, op);
}

int tern_team_alltoallv_start(tern_team *team, const tern_part *in, const tern_part *out,
			      tern_op *op)
{
	return from_all(team, in, false, out, op, CALLED(alltoallv, op));
}

int tern_team_allgatherv_start(tern_team *team, const tern_part *in, const tern_part *out,
			       tern_op *op)
{
	return from_all(team, in, true, out, op, CALLED(allgatherv, op));
}

/* The root has a part for each member, and each member one for the root. */
static int rooted(tern_team *team, uint32_t root, const tern_part *in, const tern_part *out,
		  bool gathers, tern_op *op, const char *name)
{
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	struct run *r;
	int rc = root_check(team, root, name);
	if (!rc)
		rc = call_begin(team, name, &r);
	if (rc)
		return rc;
	struct parts one = { .part = gathers ? in : out, .member = &root, .n = 1 };
	struct parts all = { .part = gathers ? out : in };
	all.n = team->all.me == root ? team->all.n : 0;
	struct varied_call x = { .in = gathers ? one : all, .out = gathers ? all : one };
	x.root = root;
	x.way = gathers ? "to" : "from";
	return varied_go(r, &x, op);
}

int tern_team_gatherv_start(tern_team *team, uint32_t root, const tern_part *in,
			    const tern_part *out, tern_op *op)
{
	return rooted(team, root, in, out, true, op, CALLED(gatherv, op));
}

int tern_team_scatterv_start(tern_team *team, uint32_t root, const tern_part *in,
			     const tern_part *out, tern_op *op)
{
	return rooted(team, root, in, out, false, op, CALLED(scatterv, op));
}

/* Adds a part of a neighbour, if it is one. */
static int neighbor_add(const tern_team *team, struct parts *p, tern_part *part, uint32_t *member,
			const tern_part *given, uint32_t other, const char *name)
{
	if (other == TERN_RANK_NONE)
		return 0;
	if (other >= team->all.n)
		return error_set(-EINVAL,
				 "%s was given member %u as a neighbour; the team has members 0 to "
				 "%u",
				 name, other, team->all.n - 1);
	member[p->n] = other;
	part[p->n++] = *given;
	return 0;
}

int tern_team_exchange_start(tern_team *team, const tern_neighbor *list, size_t n, tern_op *op)
{
	const char *name = CALLED(exchange, op);
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	struct run *r;
	int rc = call_begin(team, name, &r);
	if (rc)
		return rc;
	if ((n && !list) || n > UINT32_MAX / 2)
		rc = error_set(-EINVAL, "%s was given no list of %zu neighbours", name, n);
	size_t most = rc ? 0 : 2 * n;
	tern_part *part = (void *)run_scratch(r, most * sizeof *part);
	uint32_t *member = (void *)run_scratch(r, most * sizeof *member);
	struct varied_call x = { .in = { .part = part, .member = member } };
	if (!r->error)
		x.out = (struct parts){ .part = part + n, .member = member + n };
	for (size_t k = 0; !rc && !r->error && k < n; k++) {
		rc = neighbor_add(team, &x.in, part, member, &list[k].in, list[k].to, name);
		if (!rc)
			rc = neighbor_add(team, &x.out, part + n, member + n, &list[k].out,
					  list[k].from, name);
	}
	if (!rc)
		return varied_go(r, &x, op);
	run_drop(r);
	return rc;
}

/* -- Transposition ----------------------------------------------------------------------------- */

/* The first row of member i. */
static size_t row_of(size_t rows, uint32_t n, uint32_t i)
{
	return (size_t)((__uint128_t)rows * i / n);
}

static size_t stride_of(const tern_matrix *m)
{
	return m->stride ? m->stride : m->cols * m->element;
}

/* What the part of a transposition points to. */
struct block_shape {
	size_t count[2];
	ptrdiff_t stride[2];
};

/*
 * A block of our rows and another's columns: sent column by column, each of which is a piece of a
 * row over there.
 */
static tern_part matrix_block(const tern_matrix *m, uint32_t n, uint32_t me, uint32_t other,
			      bool by_column, struct block_shape *shape)
{
	size_t col = row_of(m->cols, n, other), cols = row_of(m->cols, n, other + 1) - col;
	size_t rows = row_of(m->rows, n, me + 1) - row_of(m->rows, n, me);
	*shape = (struct block_shape){ { rows, cols },
				       { (ptrdiff_t)stride_of(m), (ptrdiff_t)m->element } };
	return (tern_part){ .base = (char *)m->base + col * m->element,
			    .run = by_column ? m->element : cols * m->element,
			    .dims = by_column ? 2 : 1,
			    .count = shape->count,
			    .stride = shape->stride };
}

static int matrix_check(const tern_matrix *m, const char *name)
{
	size_t row, all;
	if (!m)
		return error_set(-EINVAL, "%s was given no matrix", name);
	if (__builtin_mul_overflow(m->cols, m->element, &row) ||
	    __builtin_mul_overflow(m->rows, m->stride > row ? m->stride : row, &all))
		return error_set(-EOVERFLOW, "%s was given %zu times %zu elements of %zu bytes",
				 name, m->rows, m->cols, m->element);
	if (!m->element || (m->stride && m->stride < row))
		return error_set(-EINVAL,
				 "%s was given a matrix with %zu elements of %zu bytes in a row, "
				 "and rows %zu bytes apart",
				 name, m->cols, m->element, m->stride);
	return 0;
}

static int transpose_check(const tern_matrix *in, const tern_matrix *out, const char *name)
{
	int rc = matrix_check(in, name);
	if (!rc)
		rc = matrix_check(out, name);
	if (rc)
		return rc;
	if (in->rows == out->cols && in->cols == out->rows && in->element == out->element)
		return 0;
	return error_set(-EINVAL,
			 "%s was given a matrix of %zu times %zu elements of %zu bytes, to become "
			 "one of %zu times %zu of %zu",
			 name, in->rows, in->cols, in->element, out->rows, out->cols, out->element);
}

/* The shapes last as long as the run: its parts point to them. */
int tern_team_transpose_start(tern_team *team, const tern_matrix *in, const tern_matrix *out,
			      tern_op *op)
{
	const char *name = CALLED(transpose, op);
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	uint32_t n = team->all.n, me = team->all.me;
	struct run *r;
	int rc = transpose_check(in, out, name);
	if (!rc)
		rc = call_begin(team, name, &r);
	if (rc)
		return rc;
	tern_part *parts = (void *)run_scratch(r, 2 * n * sizeof *parts);
	struct block_shape *shapes = (void *)run_scratch(r, 2 * n * sizeof *shapes);
	for (uint32_t i = 0; !r->error && i < n; i++) {
		parts[i] = matrix_block(in, n, me, i, true, &shapes[i]);
		parts[n + i] = matrix_block(out, n, me, i, false, &shapes[n + i]);
	}
	struct varied_call x = { .in = { .part = parts, .n = n }, .meets = true };
	if (!r->error)
		x.out = (struct parts){ .part = parts + n, .n = n };
	return varied_go(r, &x, op);
}
