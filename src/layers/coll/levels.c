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

/* A block for each machine, of `each` bytes for each member there. */
static struct blocks blocks_groups(struct run *r, const void *base, size_t each)
{
	const tern_team *team = r->team;
	return blocks_lay(r, base, team->heads.n, team->group_size, 0, each);
}

void levels_barrier(struct run *r)
{
	near_add(r, NEAR_BARRIER, HEAD, NULL, NULL, 0);
	if (is_head(r->team))
		far_barrier(r, &r->team->heads);
	near_add(r, NEAR_BARRIER, HEAD, NULL, NULL, 0);
}

void levels_broadcast(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	tern_team *team = r->team;
	const struct members *agents = agents_of(team, root);
	if (is_agent(agents))
		far_broadcast(r, agents, team->machine[root], out, len);
	near_add(r, NEAR_BROADCAST, agent_here(team, root), in, out, len);
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

/* At an agent, the memory for its machine's part, within that for all where `all` is told. */
static char *group_memory(struct run *r, bool agent, bool whole, size_t len, char **all)
{
	const tern_team *team = r->team;
	*all = agent ? run_scratch(r, (whole ? team->all.n : team->near.n) * len) : NULL;
	return *all && whole ? *all + team->group_at[machine_here(team)] * len : *all;
}

void levels_gather(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	tern_team *team = r->team;
	const struct members *agents = agents_of(team, root);
	bool here = team->all.me == root;
	char *all, *group = group_memory(r, is_agent(agents), here, len, &all);
	if (r->error)
		return;
	level_near(r, NEAR_GATHER, agent_here(team, root), in, group, len);
	if (is_agent(agents))
		far_rooted(r, agents, team->machine[root], blocks_groups(r, all, len), group,
			   team->near.n * len, true);
	if (here)
		step_call(r, groups_spread, out, all, len);
}

void levels_scatter(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	tern_team *team = r->team;
	const struct members *agents = agents_of(team, root);
	bool here = team->all.me == root;
	char *all, *group = group_memory(r, is_agent(agents), here, len, &all);
	if (r->error)
		return;
	if (here)
		step_call(r, groups_collect, all, in, len);
	if (is_agent(agents))
		far_rooted(r, agents, team->machine[root], blocks_groups(r, all, len), group,
			   team->near.n * len, false);
	level_near(r, NEAR_SCATTER, agent_here(team, root), group, out, len);
}

/* Members in the order of the machines need no other memory than the result. */
void levels_allgather(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	const tern_team *team = r->team;
	uint32_t n = team->all.n, i = 0;
	char *all = out, *group = NULL;
	(void)root;
	while (i < n && team->group[i] == i)
		i++;
	if (is_head(team))
		group = i < n ? group_memory(r, true, true, len, &all)
			      : all + team->group_at[machine_here(team)] * len;
	if (r->error)
		return;
	level_near(r, NEAR_GATHER, HEAD, in, group, len);
	if (is_head(team)) {
		struct blocks groups = blocks_groups(r, all, len);
		far_allgather(r, &team->heads, &groups);
		if (i < n)
			step_call(r, groups_spread, out, all, len);
	}
	level_near(r, NEAR_BROADCAST, HEAD, out, out, n * len);
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
		uint32_t m = team->machine[i], at = team->group_at[m], size = team->group_size[m];
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
	size_t row = team->all.n * len, bytes = team->near.n * row, each = team->near.n * len;
	bool head = is_head(team);
	(void)root;
	char *rows = head ? run_scratch(r, 3 * bytes) : NULL;
	if (head && !rows)
		return;
	level_near(r, NEAR_GATHER, HEAD, in, rows, row);
	if (head) {
		struct blocks sent = blocks_groups(r, rows + bytes, each);
		struct blocks got = blocks_groups(r, sent.base + bytes, each);
		step_call(r, rows_to_blocks, sent.base, rows, len);
		far_exchange(r, &team->heads, 0, &sent, &got);
		step_call(r, blocks_to_rows, rows, got.base, len);
	}
	level_near(r, NEAR_SCATTER, HEAD, rows, out, row);
}

/* -- Reductions -------------------------------------------------------------------------------- */

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

void levels_allreduce(struct run *r, const void *in, void *out, size_t n)
{
	const tern_team *team = r->team;
	size_t bytes = n * r->combine.size;
	level_near(r, NEAR_REDUCE, HEAD, in, out, bytes);
	if (is_head(team))
		far_allreduce(r, &team->heads, out, n);
	near_add(r, NEAR_BROADCAST, HEAD, out, out, bytes);
}
