/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls whose lengths differ from member to member: gathering, scattering, all-to-all, the exchange
 * with neighbours, and the transposition of a matrix. All are lists of parts, each of which goes to
 * a member or comes from one. Members that name each other first tell each other the lengths. Where
 * two do not agree, the shorter one goes, and the call returns an error at both; in a checked team
 * nothing goes, and it fails at all: see agree.c.
 */
#include <errno.h>
#include <stdlib.h>
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
		size_t in = shorter(v->in_len[i], v->said[i].expects);
		size_t out = shorter(v->out_len[i], v->said[i].sends);
		if (v->in_len[i] == v->said[i].expects && v->out_len[i] == v->said[i].sends)
			continue;
		r->result = error_set(
			-EMSGSIZE,
			"%s: rank %u sends %llu bytes and expects %llu, where this "
			"one expects %zu and sends %zu",
			r->name, r->team->all.rank[i], (unsigned long long)v->said[i].sends,
			(unsigned long long)v->said[i].expects, v->out_len[i], v->in_len[i]);
		steps_shorten(r, r->team->all.rank[i], in, out);
		v->mine[i] = (struct lengths){ in, out };
	}
	if (r->result) /* sending what is left may find no room, which has another sentence */
		error_keep(&r->why);
}

/* Parts from one member follow each other, in the order of the list. */
static void parts_unpack(struct run *r)
{
	const struct varied *v = &r->varied;
	for (uint32_t k = 0; k < v->outs; k++) {
		struct run_walk w;
		uint32_t i = v->from[k];
		size_t len;
		if (parts_total(&v->out[k], 1, &len) || !(len = shorter(len, v->mine[i].expects)))
			continue;
		parts_begin(&w, &v->out[k], 1, true);
		parts_copy(&w, v->out_at + v->out_off[i], len, false);
		v->out_off[i] += len;
		v->mine[i].expects -= len;
	}
}

static void near_steps(struct run *r)
{
	struct varied *v = &r->varied;
	step_near(r, (struct near_step){ .kind = NEAR_ALLTOALL,
					 .in = (const char *)v->mine,
					 .out = (char *)v->said,
					 .len = sizeof *v->mine });
	step_near(r, (struct near_step){ .kind = NEAR_ALLREDUCE,
					 .in = (const char *)&v->longest[0],
					 .out = (char *)&v->longest[1],
					 .len = sizeof v->longest[0] });
	step_call(r, lengths_agree, NULL, NULL, 0);
	step_near(r, (struct near_step){ .kind = NEAR_ALLTOALLV, .varied = v });
}

/* Receives first, then sends from the next member on. */
static void far_lengths(struct run *r)
{
	struct varied *v = &r->varied;
	const struct members *p = &r->team->all;
	for (uint32_t i = 0; i < p->n; i++)
		if (i != p->me && v->named[i])
			step_recv(r, p->rank[i], 0, &v->said[i], sizeof *v->said);
	for (uint32_t k = 1; k < p->n; k++) {
		uint32_t i = (p->me + k) % p->n;
		if (v->named[i])
			step_send(r, p->rank[i], 0, &v->mine[i], sizeof *v->mine);
	}
	step_wait(r);
	step_call(r, lengths_agree, NULL, NULL, 0);
}

/* What has no bytes at one side has none that are agreed. */
static void far_data(struct run *r)
{
	struct varied *v = &r->varied;
	const struct members *p = &r->team->all;
	step_copy(r, v->out_at + v->out_off[p->me], v->in_at + v->in_off[p->me],
		  shorter(v->in_len[p->me], v->out_len[p->me]));
	for (uint32_t i = 0; i < p->n; i++)
		if (i != p->me && v->out_len[i])
			step_recv(r, p->rank[i], 1, v->out_at + v->out_off[i], v->out_len[i]);
	for (uint32_t k = 1; k < p->n; k++) {
		uint32_t i = (p->me + k) % p->n;
		if (v->in_len[i])
			step_send(r, p->rank[i], 1, v->in_at + v->in_off[i], v->in_len[i]);
	}
	step_wait(r);
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
		if (__builtin_add_overflow(*total, bytes, total))
			return error_set(-EINVAL, "parts have more bytes than memory can");
		len[member_of(p, k)] += bytes;
	}
	if (p->same)
		*total = bytes;
	return 0;
}

/* Parts for one member follow each other; the second array is as long as the first one. */
static void offsets_set(const size_t *len, size_t *off, uint32_t n, bool same)
{
	off[0] = 0;
	for (uint32_t i = 1; i < n; i++)
		off[i] = same ? 0 : off[i - 1] + len[i - 1];
}

static void parts_pack(const struct varied *v, const struct parts *in)
{
	for (uint32_t k = 0; k < (in->same ? in->n != 0 : in->n); k++) {
		struct run_walk w;
		struct lengths *said = &v->said[member_of(in, k)]; /* counts, for the moment */
		char *at = v->in_at + v->in_off[member_of(in, k)] + said->sends;
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
	uint32_t n = r->team->all.n, me = r->team->all.me;
	offsets_set(v->in_len, v->in_off, n, in->same);
	offsets_set(v->out_len, v->out_off, n, false);
	parts_pack(v, in);
	memset(v->said, 0, n * sizeof *v->said);
	for (uint32_t i = 0; i < n; i++) {
		v->mine[i] = (struct lengths){ v->in_len[i], v->out_len[i] };
		v->longest[0] = v->in_len[i] > v->longest[0] ? v->in_len[i] : v->longest[0];
	}
	v->said[me] = v->mine[me];
	for (uint32_t k = 0; k < in->n; k++)
		v->named[member_of(in, k)] = true;
	for (uint32_t k = 0; k < out->n; k++) {
		v->named[v->from[k] = member_of(out, k)] = true;
		v->out[k] = *part_of(out, k);
	}
	v->outs = out->n;
}

static int varied_room(struct run *r, const struct parts *in, const struct parts *out)
{
	struct varied *v = &r->varied;
	uint32_t n = r->team->all.n;
	size_t total[2] = { 0, 0 }, *len = calloc(2 * n, sizeof *len);
	size_t fixed = n * (4 * sizeof *len + 2 * sizeof *v->mine + sizeof *v->named) +
		       out->n * (sizeof *v->out + sizeof *v->from);
	if (!len)
		return error_set(-ENOMEM, "%s: no memory", r->name);
	int rc = lengths_read(in, len, &total[0]);
	if (!rc)
		rc = lengths_read(out, len + n, &total[1]);
	char *scratch = rc ? NULL : run_scratch(r, fixed + total[0] + total[1]);
	if (scratch) {
		v->in_len = memcpy(memset(scratch, 0, fixed), len, 2 * n * sizeof *len);
		v->out_len = v->in_len + n;
		v->in_off = v->out_len + n;
		v->out_off = v->in_off + n;
		v->mine = (struct lengths *)(void *)(v->out_off + n);
		v->said = v->mine + n;
		v->out = (tern_part *)(void *)(v->said + n);
		v->from = (uint32_t *)(void *)(v->out + out->n);
		v->named = (bool *)(v->from + out->n);
		v->in_at = scratch + fixed;
		v->out_at = v->in_at + total[0];
	} else if (!rc) {
		rc = error_set(-ENOMEM, "%s: no memory for %zu bytes", r->name,
			       fixed + total[0] + total[1]);
	}
	free(len);
	return rc;
}

/* What the part of a transposition points to. */
struct block_shape {
	size_t count[2];
	ptrdiff_t stride[2];
};

/* A call with varied lengths. */
struct varied_call {
	struct parts in, out;
	bool meets; /* every member names every other */
	uint32_t root;
	const char *way;           /* " to member " and the root; NULL: there is none */
	struct block_shape **keep; /* memory that the parts need, which the run takes; or NULL */
};

static int varied_begin(tern_team *team, const struct varied_call *x, const char *name,
			struct run **out)
{
	struct run *r;
	if ((x->in.n && !x->in.part) || (x->out.n && !x->out.part))
		return error_set(-EINVAL, "%s was given no list of parts", name);
	int rc = call_begin(team, name, &r);
	if (rc)
		return rc;
	rc = varied_room(r, &x->in, &x->out);
	if (!rc)
		rc = combine_find(TERN_TYPE_UINT64, TERN_REDUCE_MAX, name, &r->combine);
	if (rc)
		run_drop(r);
	*out = r;
	return rc;
}

static int varied_go(tern_team *team, const struct varied_call *x, tern_op *op, const char *name)
{
	struct run *r = NULL;
	int rc = varied_begin(team, x, name, &r);
	if (rc)
		return rc;
	if (x->way)
		run_agree(r, " %s member %u", x->way, x->root);
	else
		run_agree(r, "%s", "");
	varied_fill(r, &x->in, &x->out);
	if (x->keep) {
		r->varied.kept = *x->keep;
		*x->keep = NULL;
	}
	if (team->is_near) {
		near_steps(r);
	} else {
		(team->checked ? run_agree_lengths : far_lengths)(r);
		far_data(r);
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
	return varied_go(team, &x, op, name);
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
	int rc = root_check(team, root, name);
	if (rc)
		return rc;
	struct parts one = { .part = gathers ? in : out, .member = &root, .n = 1 };
	struct parts all = { .part = gathers ? out : in };
	all.n = team->all.me == root ? team->all.n : 0;
	struct varied_call x = { .in = gathers ? one : all, .out = gathers ? all : one };
	x.root = root;
	x.way = gathers ? "to" : "from";
	return varied_go(team, &x, op, name);
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
	int rc = rules_forked(team->coll->e);
	if (rc)
		return rc;
	if ((n && !list) || n > UINT32_MAX / 2)
		return error_set(-EINVAL, "%s was given no list of %zu neighbours", name, n);
	tern_part *part = malloc((2 * n + 1) * sizeof *part);
	uint32_t *member = malloc((2 * n + 1) * sizeof *member);
	struct varied_call x = { .in = { .part = part, .member = member } };
	if (!part || !member)
		rc = error_set(-ENOMEM, "%s: no memory", name);
	else
		x.out = (struct parts){ .part = part + n, .member = member + n };
	for (size_t k = 0; !rc && k < n; k++) {
		rc = neighbor_add(team, &x.in, part, member, &list[k].in, list[k].to, name);
		if (!rc)
			rc = neighbor_add(team, &x.out, part + n, member + n, &list[k].out,
					  list[k].from, name);
	}
	if (!rc)
		rc = varied_go(team, &x, op, name);
	free(part);
	free(member);
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

/*
 * A block of our rows and another's columns: sent column by column, each of which is a piece of a
 * row over there.
 */
static tern_part block_out_of(const tern_matrix *m, uint32_t n, uint32_t me, uint32_t to,
			      struct block_shape *shape)
{
	size_t col = row_of(m->cols, n, to), cols = row_of(m->cols, n, to + 1) - col;
	size_t rows = row_of(m->rows, n, me + 1) - row_of(m->rows, n, me);
	*shape = (struct block_shape){ { rows, cols },
				       { (ptrdiff_t)stride_of(m), (ptrdiff_t)m->element } };
	tern_part p = { .run = m->element, .dims = 2, .count = shape->count };
	p.base = (char *)m->base + col * m->element;
	p.stride = shape->stride;
	return p;
}

static tern_part block_into(const tern_matrix *m, uint32_t n, uint32_t me, uint32_t from,
			    struct block_shape *shape)
{
	size_t col = row_of(m->cols, n, from), cols = row_of(m->cols, n, from + 1) - col;
	size_t rows = row_of(m->rows, n, me + 1) - row_of(m->rows, n, me);
	*shape = (struct block_shape){ { rows, 0 }, { (ptrdiff_t)stride_of(m), 0 } };
	tern_part p = { .run = cols * m->element, .dims = 1, .count = shape->count };
	p.base = (char *)m->base + col * m->element;
	p.stride = shape->stride;
	return p;
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
	int rc = transpose_check(in, out, name);
	if (rc)
		return rc;
	tern_part *parts = malloc(2 * n * sizeof *parts);
	struct block_shape *shapes = malloc(2 * n * sizeof *shapes);
	for (uint32_t i = 0; parts && shapes && i < n; i++) {
		parts[i] = block_out_of(in, n, me, i, &shapes[i]);
		parts[n + i] = block_into(out, n, me, i, &shapes[n + i]);
	}
	if (parts && shapes)
		rc = varied_go(team,
			       &(struct varied_call){ .in = { .part = parts, .n = n },
						      .out = { .part = parts + n, .n = n },
						      .meets = true,
						      .keep = &shapes },
			       op, name);
	else
		rc = error_set(-ENOMEM, "%s: no memory", name);
	free(parts);
	free(shapes);
	return rc;
}
