/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that combine elements: reductions to one member or to all, and scans. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "coll/far.h"

struct reduction {
	const void *in;
	void *out;
	size_t n;
	enum tern_type type;
	uintptr_t how;
};

static int reduction_check(const struct reduction *x, const char *name, struct combine *k)
{
	int rc = combine_find(x->type, x->how, name, k);
	k->n = x->n;
	if (!rc && x->n > SIZE_MAX / 4 / k->size)
		rc = error_set(-EOVERFLOW, "%s was given %zu elements", name, x->n);
	if (!rc)
		rc = memory_check(x->in, x->n * k->size, 1, name);
	return rc;
}

/* Elements in cells are not divided. */
static bool near_may(const tern_team *team, const struct combine *k)
{
	return team->is_near && k->size <= PIECE_LEAST;
}

static struct near_step near_of(enum near_kind kind, uint32_t root, const struct reduction *x,
				const struct combine *k)
{
	return (struct near_step){ .kind = kind,
				   .root = root,
				   .in = x->in,
				   .out = x->out,
				   .len = x->n * k->size,
				   .unit = k->fn ? 0 : k->size };
}

static int reduction_begin(tern_team *team, const struct reduction *x, const char *name,
			   struct run **r)
{
	struct combine k;
	int rc = reduction_check(x, name, &k);
	if (!rc)
		rc = call_begin(team, name, r);
	if (!rc)
		(*r)->combine = k;
	return rc;
}

/* `to`: "", or which member gets the result. */
static void reduction_agree(struct run *r, const struct reduction *x, const char *to)
{
	char words[COMBINE_WORDS];
	combine_words(x->type, x->how, words);
	run_agree(r, " of %zu elements (%s)%s", x->n, words, to);
}

static void allreduce_steps(struct run *r, const struct reduction *x)
{
	tern_team *team = r->team;
	size_t bytes = x->n * r->combine.size;
	if (r->combine.ordered) {
		far_ordered(r, &team->all, UINT32_MAX, x->in, x->out, x->n);
	} else if (team->two_levels) {
		if (team->near.n == 1)
			step_copy(r, x->out, x->in, bytes);
		near_add(r, NEAR_REDUCE, HEAD, x->in, x->out, bytes);
		if (is_head(team))
			far_allreduce(r, &team->heads, x->out, x->n);
		near_add(r, NEAR_BROADCAST, HEAD, x->out, x->out, bytes);
	} else {
		step_copy(r, x->out, x->in, bytes);
		far_allreduce(r, &team->all, x->out, x->n);
	}
	if (team->all.n == 1)
		step_copy(r, x->out, x->in, bytes);
	r->meets = x->n != 0;
}

static int allreduce(tern_team *team, const struct reduction *x, tern_op *op, const char *name)
{
	struct run *r;
	struct combine k;
	int rc = reduction_check(x, name, &k);
	if (!rc)
		rc = memory_check(x->out, x->n * k.size, 1, name);
	if (!rc && near_may(team, &k)) {
		struct near_step s = near_of(NEAR_ALLREDUCE, 0, x, &k);
		return run_near(team, name, &s, &k, op);
	}
	if (!rc)
		rc = reduction_begin(team, x, name, &r);
	if (rc)
		return rc;
	reduction_agree(r, x, "");
	allreduce_steps(r, x);
	return run_go(r, op);
}

int tern_team_allreduce_start(tern_team *team, const void *in, void *out, size_t n,
			      enum tern_type type, uintptr_t how, tern_op *op)
{
	const char *name = CALLED(allreduce, op);
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	return allreduce(team, &(struct reduction){ in, out, n, type, how }, op, name);
}

int call_max(tern_team *team, const uint64_t *in, uint64_t *out, const char *name)
{
	struct reduction x = { in, out, 1, TERN_TYPE_UINT64, TERN_REDUCE_MAX };
	return allreduce(team, &x, NULL, name);
}

static void reduce_steps(struct run *r, uint32_t root, const struct reduction *x)
{
	tern_team *team = r->team;
	size_t bytes = x->n * r->combine.size;
	if (team->all.n == 1) {
		step_copy(r, x->out, x->in, bytes);
	} else if (r->combine.ordered) {
		far_ordered(r, &team->all, root, x->in, x->out, x->n);
	} else if (team->two_levels) {
		levels_reduce(r, root, x->in, x->out, x->n);
	} else {
		far_reduce(r, &team->all, root, x->in, x->out, x->n);
	}
}

int tern_team_reduce_start(tern_team *team, uint32_t root, const void *in, void *out, size_t n,
			   enum tern_type type, uintptr_t how, tern_op *op)
{
	const char *name = CALLED(reduce, op);
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	const struct reduction *x = &(struct reduction){ in, out, n, type, how };
	struct run *r;
	struct combine k;
	int rc = root_check(team, root, name);
	if (!rc && team->all.me == root)
		rc = memory_check(x->out, x->n, 1, name);
	if (!rc)
		rc = reduction_check(x, name, &k);
	if (!rc && near_may(team, &k)) {
		struct near_step s = near_of(NEAR_REDUCE, root, x, &k);
		return run_near(team, name, &s, &k, op);
	}
	if (!rc)
		rc = reduction_begin(team, x, name, &r);
	if (rc)
		return rc;
	char to[32];
	snprintf(to, sizeof to, " to member %u", root);
	reduction_agree(r, x, to);
	reduce_steps(r, root, x);
	return run_go(r, op);
}

static int scan(tern_team *team, const struct reduction *x, bool inclusive, tern_op *op,
		const char *name)
{
	struct run *r;
	int rc = memory_check(x->out, inclusive || team->all.me ? x->n : 0, 1, name);
	if (!rc)
		rc = reduction_begin(team, x, name, &r);
	if (rc)
		return rc;
	reduction_agree(r, x, "");
	if (near_may(team, &r->combine))
		step_near(r, near_of(inclusive ? NEAR_SCAN : NEAR_EXSCAN, 0, x, &r->combine));
	else
		far_scan(r, &team->all, x->in, x->out, x->n, inclusive);
	if (team->all.n == 1 && inclusive)
		step_copy(r, x->out, x->in, x->n * r->combine.size);
	return run_go(r, op);
}

int tern_team_scan_start(tern_team *team, const void *in, void *out, size_t n, enum tern_type type,
			 uintptr_t how, tern_op *op)
{
	INSIDE struct scope scope = team_scope_op(&team, op, __func__);
	return scan(team, &(struct reduction){ in, out, n, type, how }, true, op, CALLED(scan, op));
}

int tern_team_exscan_start(tern_team *team, const void *in, void *out, size_t n,
			   enum tern_type type, uintptr_t how, tern_op *op)
{
	INSIDE struct scope scope = team_scope_op(&team, op, __func__);
	return scan(team, &(struct reduction){ in, out, n, type, how }, false, op,
		    CALLED(exscan, op));
}

/* -- A part for each member -------------------------------------------------------------------- */

/* Where the part of each member begins; in the run's scratch. NULL: kept as -ENOMEM. */
static size_t *cuts_of(struct run *r, const size_t *counts)
{
	uint32_t n = r->team->all.n;
	size_t *cuts = (size_t *)(void *)run_scratch(r, (n + 1) * sizeof *cuts);
	if (cuts)
		cuts[0] = 0;
	for (uint32_t i = 0; cuts && i < n; i++)
		cuts[i + 1] = cuts[i] + counts[i];
	return cuts;
}

/* Each member takes the pieces for it out of the cells of all, so it combines its part alone. */
static void near_reduce_scatter(struct run *r, const struct reduction *x, const size_t *counts,
				size_t *cuts)
{
	uint32_t n = r->team->all.n;
	struct near_step s = near_of(NEAR_REDUCE_SCATTER, 0, x, &r->combine);
	struct lengths *mine = (struct lengths *)(void *)run_scratch(r, n * sizeof *mine);
	s.len = 0;
	s.unit = r->combine.size;
	s.varied = &r->varied;
	for (uint32_t i = 0; mine && i < n; i++) {
		mine[i].sends = counts[i] * s.unit;
		cuts[i] *= s.unit;
		s.len = mine[i].sends > s.len ? mine[i].sends : s.len;
	}
	r->varied = (struct varied){ .mine = mine, .in_at = (char *)x->in, .in_off = cuts };
	step_near(r, s);
}

static void reduce_scatter_steps(struct run *r, const struct reduction *x, const size_t *counts)
{
	tern_team *team = r->team;
	size_t *cuts = cuts_of(r, counts);
	if (!cuts)
		return;
	if (near_may(team, &r->combine) && r->combine.size <= CELL_LONG / team->near.n)
		near_reduce_scatter(r, x, counts, cuts);
	else
		far_reduce_scatter(r, &team->all, x->in, x->out, cuts);
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

int tern_team_reduce_scatter_start(tern_team *team, const void *in, void *out, const size_t *counts,
				   enum tern_type type, uintptr_t how, tern_op *op)
{
	const char *name = CALLED(reduce_scatter, op);
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	struct reduction x = { in, out, 0, type, how };
	struct run *r;
	int rc = counts_sum(team, counts, name, &x.n);
	if (!rc && team->all.n)
		rc = memory_check(x.out, counts[team->all.me], 1, name);
	if (!rc)
		rc = reduction_begin(team, &x, name, &r);
	if (rc)
		return rc;
	char parts[COUNT_WORDS];
	reduction_agree(r, &x, counts_words(team, counts, parts));
	reduce_scatter_steps(r, &x, counts);
	return run_go(r, op);
}
