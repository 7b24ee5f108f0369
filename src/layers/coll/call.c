/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls: what each collective is made of, on one machine and on several. With two levels, near
 * steps bring data to the first member of each machine (the head), heads exchange messages, and
 * near steps spread the result.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "coll/far.h"

enum { AHEAD_MOST = 64 }; /* calls in which a member may be ahead of another */

/* -- Beginning and ending ---------------------------------------------------------------------- */

static void barrier_steps(struct run *r);

int call_begin(tern_team *team, const char *name, struct run **r)
{
	int rc = run_begin(team, name, r);
	if (!rc && !team->is_near && ++team->ahead >= AHEAD_MOST) {
		barrier_steps(*r);
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

static void barrier_steps(struct run *r)
{
	tern_team *team = r->team;
	if (team->two_levels) {
		near_add(r, NEAR_BARRIER, 0, NULL, NULL, 0);
		if (is_head(team))
			far_barrier(r, &team->heads);
		near_add(r, NEAR_BARRIER, 0, NULL, NULL, 0);
	} else {
		far_barrier(r, &team->all);
	}
	r->meets = true;
}

int call_barrier(tern_team *team, tern_op *op, const char *name)
{
	struct run *r;
	if (team->is_near)
		return run_near(team, name, &(struct near_step){ .kind = NEAR_BARRIER }, NULL, op);
	int rc = run_begin(team, name, &r);
	if (rc)
		return rc;
	run_agree(r, "%s", "");
	barrier_steps(r);
	return run_go(r, op);
}

int tern_team_barrier_start(tern_team *team, tern_op *op)
{
	const char *name = CALLED(barrier, op);
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	return call_barrier(team, op, name);
}

/* -- Broadcast --------------------------------------------------------------------------------- */

static void broadcast_steps(struct run *r, uint32_t root, void *data, size_t len)
{
	tern_team *team = r->team;
	uint32_t at = team->machine[root];
	if (team->two_levels) {
		bool here = team->machine[team->all.me] == at;
		if (here)
			near_add(r, NEAR_BROADCAST, near_place(team, root), data, data, len);
		if (is_head(team))
			far_broadcast(r, &team->heads, at, data, len);
		if (!here)
			near_add(r, NEAR_BROADCAST, HEAD, data, data, len);
	} else {
		far_broadcast(r, &team->all, root, data, len);
	}
}

int tern_team_broadcast_start(tern_team *team, uint32_t root, void *data, size_t len, tern_op *op)
{
	const char *name = CALLED(broadcast, op);
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	struct run *r;
	int rc = root_check(team, root, name);
	if (!rc)
		rc = memory_check(data, len, 1, name);
	if (!rc && team->is_near)
		return run_near(team, name,
				&(struct near_step){ .kind = NEAR_BROADCAST,
						     .root = root,
						     .in = data,
						     .out = data,
						     .len = len },
				NULL, op);
	if (!rc)
		rc = call_begin(team, name, &r);
	if (rc)
		return rc;
	run_agree(r, " of %zu bytes from member %u", len, root);
	broadcast_steps(r, root, data, len);
	return run_go(r, op);
}

/* -- Gathering and scattering ------------------------------------------------------------------ */

enum moving { GATHER, ALLGATHER, SCATTER, ALLTOALL };

/*
 * Two levels are for what many messages would take longer: of a long gathering or scattering each
 * byte goes between the root and its member once, whatever goes first where.
 */
static bool moving_levels(const tern_team *team, enum moving what, size_t len)
{
	size_t given = what == ALLTOALL ? len * team->all.n : len;
	return team->two_levels && (what == ALLGATHER || given <= MOVING_FEW);
}

static void moving_steps(struct run *r, enum moving what, uint32_t root, const void *in, void *out,
			 size_t len)
{
	static mover *const far[] = { far_gather, far_allgather, far_scatter, far_alltoall };
	static mover *const levels[] = { levels_gather, levels_allgather, levels_scatter,
					 levels_alltoall };
	if (r->team->all.n == 1)
		step_copy(r, out, in, len);
	else
		(moving_levels(r->team, what, len) ? levels : far)[what](r, root, in, out, len);
	r->meets = len && (what == ALLGATHER || what == ALLTOALL);
}

void steps_allgather(struct run *r, const void *in, void *out, size_t len)
{
	moving_steps(r, ALLGATHER, 0, in, out, len);
}

void steps_alltoall(struct run *r, const void *in, void *out, size_t len)
{
	moving_steps(r, ALLTOALL, 0, in, out, len);
}

static void moving_agree(struct run *r, enum moving what, uint32_t root, size_t len)
{
	if (what == ALLGATHER || what == ALLTOALL)
		run_agree(r, " of %zu bytes", len);
	else
		run_agree(r, " of %zu bytes %s member %u", len, what == GATHER ? "to" : "from",
			  root);
}

/* What only the root gives, or gets, need not be there at others. */
static int moving_check(tern_team *team, enum moving what, uint32_t root, const void *in,
			const void *out, size_t len, const char *name)
{
	bool at_root = team->all.me == root;
	int rc = root_check(team, root, name);
	if (!rc && (what != SCATTER || at_root))
		rc = memory_check(in, len, team->all.n, name);
	if (!rc && (what != GATHER || at_root))
		rc = memory_check(out, len, team->all.n, name);
	return rc;
}

static int move(tern_team *team, enum moving what, uint32_t root, const void *in, void *out,
		size_t len, tern_op *op, const char *name)
{
	static const enum near_kind near[] = { NEAR_GATHER, NEAR_ALLGATHER, NEAR_SCATTER,
					       NEAR_ALLTOALL };
	INSIDE struct scope scope = team_scope_op(&team, op, name);
	struct run *r;
	int rc = moving_check(team, what, root, in, out, len, name);
	if (!rc && team->is_near)
		return run_near(team, name,
				&(struct near_step){ .kind = near[what],
						     .root = root,
						     .in = in,
						     .out = out,
						     .len = len },
				NULL, op);
	if (!rc)
		rc = call_begin(team, name, &r);
	if (rc)
		return rc;
	moving_agree(r, what, root, len);
	moving_steps(r, what, root, in, out, len);
	return run_go(r, op);
}

int tern_team_gather_start(tern_team *team, uint32_t root, const void *in, void *out, size_t len,
			   tern_op *op)
{
	return move(team, GATHER, root, in, out, len, op, CALLED(gather, op));
}

int tern_team_allgather_start(tern_team *team, const void *in, void *out, size_t len, tern_op *op)
{
	return move(team, ALLGATHER, 0, in, out, len, op, CALLED(allgather, op));
}

int tern_team_scatter_start(tern_team *team, uint32_t root, const void *in, void *out, size_t len,
			    tern_op *op)
{
	return move(team, SCATTER, root, in, out, len, op, CALLED(scatter, op));
}

int tern_team_alltoall_start(tern_team *team, const void *in, void *out, size_t len, tern_op *op)
{
	return move(team, ALLTOALL, 0, in, out, len, op, CALLED(alltoall, op));
}
