/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-to-all with lengths that differ, and the transposition of a matrix, which is one. Members
 * first tell each other the lengths. Where two do not agree, the shorter one goes, and the call
 * returns an error at both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coll/far.h"
#include "mem/parts.h"

static size_t shorter(size_t a, uint64_t b)
{
	return a < b ? a : (size_t)b;
}

/* -- Steps ------------------------------------------------------------------------------------- */

/* Messages that are yet to be sent and received get the lengths that are agreed. */
static void steps_shorten(struct run *r, uint32_t rank, size_t in, size_t out)
{
	for (unsigned i = r->at + 1; i < r->steps; i++) {
		struct step *s = &r->step[i];
		if (s->peer == rank && s->kind == STEP_SEND)
			s->len = shorter(s->len, in);
		else if (s->peer == rank && s->kind == STEP_RECV)
			s->len = shorter(s->len, out);
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
}

static void parts_unpack(struct run *r)
{
	const struct varied *v = &r->varied;
	const char *at = v->out_at;
	for (uint32_t i = 0; i < r->team->all.n; at += v->out_len[i++]) {
		struct run_walk w;
		size_t len = shorter(v->out_len[i], v->mine[i].expects);
		if (!len)
			continue;
		parts_begin(&w, &v->out[i], 1, true);
		parts_copy(&w, (char *)(uintptr_t)at, len, false);
	}
}

static void step_call(struct run *r, void (*call)(struct run *r))
{
	step_add(r, (struct step){ .kind = STEP_CALL, .peer = UINT32_MAX, .call = call });
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
	step_call(r, lengths_agree);
	step_near(r, (struct near_step){ .kind = NEAR_ALLTOALLV, .varied = v });
}

/* The part of this member to itself needs no message. */
static void own_copy(struct run *r, const struct varied *v, uint32_t me)
{
	size_t in_at = 0, out_at = 0;
	for (uint32_t i = 0; i < me; i++) {
		in_at += v->in_len[i];
		out_at += v->out_len[i];
	}
	step_copy(r, v->out_at + out_at, v->in_at + in_at, shorter(v->in_len[me], v->out_len[me]));
}

static void far_steps(struct run *r)
{
	struct varied *v = &r->varied;
	const struct members *all = &r->team->all;
	far_alltoall(r, all, (const char *)v->mine, (char *)v->said, sizeof *v->mine);
	step_call(r, lengths_agree);
	own_copy(r, v, all->me);
	far_alltoallv(r, all, v);
}

/* What the part of a transposition points to. */
struct block_shape {
	size_t count[2];
	ptrdiff_t stride[2];
};

/* -- Beginning ----------------------------------------------------------------------------------
 */

static int lengths_read(const tern_part *list, uint32_t n, size_t *len, size_t *total)
{
	for (uint32_t i = 0; i < n; i++) {
		int rc = parts_total(&list[i], 1, &len[i]);
		if (rc)
			return rc;
		if (len[i] && !list[i].base)
			return error_set(-EINVAL, "part %u has %zu bytes, and no memory for them",
					 i, len[i]);
		if (__builtin_add_overflow(*total, len[i], total))
			return error_set(-EINVAL, "parts have more bytes than memory can");
	}
	return 0;
}

static void parts_pack(const struct varied *v, const tern_part *in, uint32_t n)
{
	char *at = v->in_at;
	for (uint32_t i = 0; i < n; at += v->in_len[i++]) {
		struct run_walk w;
		if (!v->in_len[i])
			continue;
		parts_begin(&w, &in[i], 1, true);
		parts_copy(&w, at, v->in_len[i], true);
	}
}

/* Everything that the run needs lies in its scratch; what is sent is packed into it now. */
static void varied_fill(struct run *r, const tern_part *in, const tern_part *out)
{
	struct varied *v = &r->varied;
	uint32_t n = r->team->all.n;
	v->out = memcpy(v->said + n, out, n * sizeof *out);
	for (uint32_t i = 0; i < n; i++) {
		v->mine[i] = (struct lengths){ v->in_len[i], v->out_len[i] };
		v->longest[0] = v->in_len[i] > v->longest[0] ? v->in_len[i] : v->longest[0];
	}
	parts_pack(v, in, n);
}

static int varied_room(struct run *r, const tern_part *in, const tern_part *out)
{
	struct varied *v = &r->varied;
	uint32_t n = r->team->all.n;
	size_t total[2] = { 0, 0 }, *len = malloc(2 * n * sizeof *len);
	size_t fixed = n * (2 * sizeof *len + 2 * sizeof *v->mine + sizeof *out);
	if (!len)
		return error_set(-ENOMEM, "%s: no memory", r->name);
	int rc = lengths_read(in, n, len, &total[0]);
	if (!rc)
		rc = lengths_read(out, n, len + n, &total[1]);
	char *scratch = rc ? NULL : run_scratch(r, fixed + total[0] + total[1]);
	if (scratch) {
		v->in_len = memcpy(scratch, len, 2 * n * sizeof *len);
		v->out_len = v->in_len + n;
		v->mine = (struct lengths *)(void *)(v->out_len + n);
		v->said = v->mine + n;
		v->in_at = scratch + fixed;
		v->out_at = v->in_at + total[0];
	} else if (!rc) {
		rc = error_set(-ENOMEM, "%s: no memory for %zu bytes", r->name,
			       fixed + total[0] + total[1]);
	}
	free(len);
	return rc;
}

/* `keep`, if it is not NULL, points to memory that the parts need; the run takes it. */
static int alltoallv(tern_team *team, const tern_part *in, const tern_part *out, tern_op *op,
		     const char *name, struct block_shape **keep)
{
	struct run *r;
	int rc = in && out ? 0 : error_set(-EINVAL, "%s was given no list of parts", name);
	if (!rc)
		rc = call_begin(team, name, &r);
	if (rc)
		return rc;
	rc = varied_room(r, in, out);
	if (!rc)
		rc = combine_find(team->coll, TERN_TYPE_UINT64, TERN_REDUCE_MAX, name, &r->combine);
	if (rc) {
		run_drop(r);
		return rc;
	}
	run_agree(r, "%s", "");
	varied_fill(r, in, out);
	if (keep) {
		r->varied.kept = *keep;
		*keep = NULL;
	}
	if (team->is_near)
		near_steps(r);
	else
		far_steps(r);
	step_call(r, parts_unpack);
	r->meets = true;
	return run_go(r, op);
}

int tern_team_alltoallv(tern_team *team, const tern_part *in, const tern_part *out)
{
	INSIDE struct scope scope = team_scope(&team, __func__);
	return alltoallv(team, in, out, NULL, "tern_team_alltoallv()", NULL);
}

int tern_team_alltoallv_start(tern_team *team, const tern_part *in, const tern_part *out,
			      tern_op *op)
{
	INSIDE struct scope scope = team_scope_op(&team, op, __func__);
	return alltoallv(team, in, out, op, "tern_team_alltoallv_start()", NULL);
}

/* -- Transposition ------------------------------------------------------------------------------
 */

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
static int transpose(tern_team *team, const tern_matrix *in, const tern_matrix *out, tern_op *op,
		     const char *name)
{
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
		rc = alltoallv(team, parts, parts + n, op, name, &shapes);
	else
		rc = error_set(-ENOMEM, "%s: no memory", name);
	free(parts);
	free(shapes);
	return rc;
}

int tern_team_transpose(tern_team *team, const tern_matrix *in, const tern_matrix *out)
{
	INSIDE struct scope scope = team_scope(&team, __func__);
	return transpose(team, in, out, NULL, "tern_team_transpose()");
}

int tern_team_transpose_start(tern_team *team, const tern_matrix *in, const tern_matrix *out,
			      tern_op *op)
{
	INSIDE struct scope scope = team_scope_op(&team, op, __func__);
	return transpose(team, in, out, op, "tern_team_transpose_start()");
}
