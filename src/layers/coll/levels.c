/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of members on several machines, in two levels: near steps bring data to one member of
 * each machine, its agent, agents exchange one message for each pair of machines, and near steps
 * bring it on. The agent is the machine's first member, and on the root's machine the root.
 *
 * What goes between machines is in the order of the team's groups: machine by machine, the members
 * of each in their order.
 */
#include <string.h>

#include "coll/far.h"

static uint32_t group_size(const tern_team *team, uint32_t machine)
{
	return team->group_at[machine + 1] - team->group_at[machine];
}

static uint32_t machine_here(const tern_team *team)
{
	return team->machine[team->all.me];
}

/* The place among the near members of the agent here. */
static uint32_t agent_here(const tern_team *team, uint32_t root)
{
	return team->machine[root] == machine_here(team) ? near_place(team, root) : 0;
}

static const struct members *agents_of(tern_team *team, uint32_t root)
{
	struct members *a = &team->agents;
	memcpy(a->rank, team->heads.rank, team->heads.n * sizeof *a->rank);
	a->rank[team->machine[root]] = team->all.rank[root];
	a->n = team->heads.n;
	a->me = agent_here(team, root) == team->near.me ? machine_here(team) : UINT32_MAX;
	return a;
}

static bool is_agent(const struct members *agents)
{
	return agents->me < agents->n;
}

/* A near step, or the copy that it is for a member who is alone on its machine. */
static void level_near(struct run *r, enum near_kind kind, uint32_t root, const void *in, void *out,
		       size_t len)
{
	near_add(r, kind, root, in, out, len);
	if (r->team->near.n == 1 && in != out)
		step_copy(r, out, in, len);
}

/* -- Gathering and scattering: one message for each machine ------------------------------------ */

static void groups_spread(struct run *r)
{
	const struct step *s = &r->step[r->at];
	const tern_team *team = r->team;
	for (uint32_t i = 0; i < team->all.n && s->len; i++)
		memcpy(s->to + i * s->len, s->from + team->group[i] * s->len, s->len);
}

static void groups_collect(struct run *r)
{
	const struct step *s = &r->step[r->at];
	const tern_team *team = r->team;
	for (uint32_t i = 0; i < team->all.n && s->len; i++)
		memcpy(s->to + team->group[i] * s->len, s->from + i * s->len, s->len);
}

void levels_gather(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	tern_team *team = r->team;
	const struct members *agents = agents_of(team, root);
	bool here = team->all.me == root;
	uint32_t own = team->group_at[machine_here(team)];
	char *all = NULL, *group = NULL;
	if (is_agent(agents)) {
		all = run_scratch(r, (here ? team->all.n : team->near.n) * len);
		if (!all)
			return;
		group = here ? all + own * len : all;
	}
	level_near(r, NEAR_GATHER, agent_here(team, root), in, group, len);
	if (is_agent(agents) && !here)
		step_send(r, team->all.rank[root], 0, all, team->near.n * len);
	for (uint32_t m = 0; here && m < agents->n; m++)
		if (m != agents->me)
			step_recv(r, agents->rank[m], 0, all + team->group_at[m] * len,
				  group_size(team, m) * len);
	step_wait(r);
	if (here)
		step_call(r, groups_spread, out, all, len);
}

void levels_scatter(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	tern_team *team = r->team;
	const struct members *agents = agents_of(team, root);
	bool here = team->all.me == root;
	char *all = NULL;
	if (is_agent(agents)) {
		all = run_scratch(r, (here ? team->all.n : team->near.n) * len);
		if (!all)
			return;
	}
	if (here)
		step_call(r, groups_collect, all, in, len);
	else if (is_agent(agents))
		step_recv(r, team->all.rank[root], 0, all, team->near.n * len);
	for (uint32_t m = 0; here && m < agents->n; m++)
		if (m != agents->me)
			step_send(r, agents->rank[m], 0, all + team->group_at[m] * len,
				  group_size(team, m) * len);
	step_wait(r);
	level_near(r, NEAR_SCATTER, agent_here(team, root),
		   here ? all + team->group_at[agents->me] * len : all, out, len);
}

/* -- Allgather --------------------------------------------------------------------------------- */

/* Where a group begins in a head's memory: its own is the first, and the others follow around. */
static size_t turned_at(const tern_team *team, uint32_t machine)
{
	uint32_t own = team->group_at[machine_here(team)], at = team->group_at[machine];
	return at >= own ? at - own : at + team->all.n - own;
}

static void turned_spread(struct run *r)
{
	const struct step *s = &r->step[r->at];
	const tern_team *team = r->team;
	for (uint32_t i = 0; i < team->all.n && s->len; i++) {
		uint32_t m = team->machine[i];
		size_t at = turned_at(team, m) + team->group[i] - team->group_at[m];
		memcpy(s->to + i * s->len, s->from + at * s->len, s->len);
	}
}

/* Members of `count` groups from a machine on, around. */
static size_t groups_members(const tern_team *team, uint32_t machine, uint32_t count)
{
	size_t n = 0;
	for (uint32_t k = 0; k < count; k++)
		n += group_size(team, (machine + k) % team->heads.n);
	return n;
}

/* Each round doubles the groups that a head has. */
static void groups_double(struct run *r, char *all, size_t len)
{
	const tern_team *team = r->team;
	const struct members *p = &team->heads;
	uint32_t n = p->n;
	for (uint32_t have = 1, tag = 0; have < n; tag++) {
		uint32_t more = have < n - have ? have : n - have, from = (p->me + have) % n;
		step_recv(r, p->rank[from], tag, all + turned_at(team, from) * len,
			  groups_members(team, from, more) * len);
		step_send(r, p->rank[(p->me + n - have) % n], tag, all,
			  groups_members(team, p->me, more) * len);
		step_wait(r);
		have += more;
	}
}

void levels_allgather(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	const tern_team *team = r->team;
	bool head = is_head(team);
	(void)root;
	char *all = head ? run_scratch(r, team->all.n * len) : NULL;
	if (head && !all)
		return;
	level_near(r, NEAR_GATHER, 0, in, all, len);
	if (head) {
		groups_double(r, all, len);
		step_call(r, turned_spread, out, all, len);
	}
	level_near(r, NEAR_BROADCAST, 0, out, out, team->all.n * len);
}

/* -- All-to-all of few bytes ------------------------------------------------------------------- */

/*
 * At a head: from the rows of the near members, a part for each member of the team, to a block for
 * each machine, in which the parts of one sender follow each other.
 */
static void rows_to_blocks(struct run *r)
{
	const struct step *s = &r->step[r->at];
	const tern_team *team = r->team;
	uint32_t near = team->near.n, n = team->all.n;
	for (uint32_t i = 0; i < n && s->len; i++) {
		uint32_t m = team->machine[i], at = team->group_at[m], size = group_size(team, m);
		for (uint32_t a = 0; a < near; a++)
			memcpy(s->to + (at * near + a * size + team->group[i] - at) * s->len,
			       s->from + (a * n + i) * s->len, s->len);
	}
}

/* And back: from the blocks of all machines to a row for each near member. */
static void blocks_to_rows(struct run *r)
{
	const struct step *s = &r->step[r->at];
	const tern_team *team = r->team;
	uint32_t near = team->near.n, n = team->all.n;
	for (uint32_t i = 0; i < n && s->len; i++)
		for (uint32_t b = 0; b < near; b++)
			memcpy(s->to + (b * n + i) * s->len,
			       s->from + (team->group[i] * near + b) * s->len, s->len);
}

void levels_alltoall(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	const tern_team *team = r->team;
	const struct members *p = &team->heads;
	size_t row = team->all.n * len, bytes = team->near.n * row, each = team->near.n * len;
	bool head = is_head(team);
	(void)root;
	char *rows = head ? run_scratch(r, 3 * bytes) : NULL;
	if (head && !rows)
		return;
	level_near(r, NEAR_GATHER, 0, in, rows, row);
	if (head) {
		char *sent = rows + bytes, *got = sent + bytes;
		step_call(r, rows_to_blocks, sent, rows, len);
		for (uint32_t m = 0; m < p->n; m++)
			if (m != p->me)
				step_recv(r, p->rank[m], 0, got + team->group_at[m] * each,
					  group_size(team, m) * each);
		for (uint32_t k = 1; k < p->n; k++) {
			uint32_t m = (p->me + k) % p->n;
			step_send(r, p->rank[m], 0, sent + team->group_at[m] * each,
				  group_size(team, m) * each);
		}
		step_copy(r, got + team->group_at[p->me] * each,
			  sent + team->group_at[p->me] * each, group_size(team, p->me) * each);
		step_wait(r);
		step_call(r, blocks_to_rows, rows, got, len);
	}
	level_near(r, NEAR_SCATTER, 0, rows, out, row);
}

/* -- Reduction to a root ----------------------------------------------------------------------- */

void levels_reduce(struct run *r, uint32_t root, const void *in, void *out, size_t n)
{
	tern_team *team = r->team;
	const struct members *agents = agents_of(team, root);
	size_t bytes = n * r->combine.size;
	char *sum = is_agent(agents) ? run_scratch(r, bytes) : NULL;
	if (is_agent(agents) && !sum)
		return;
	level_near(r, NEAR_REDUCE, agent_here(team, root), in, sum, bytes);
	if (is_agent(agents))
		far_reduce(r, agents, team->machine[root], sum, out, n);
}
