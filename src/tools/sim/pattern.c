/* SPDX-License-Identifier: BSD-3-Clause */
/* The patterns: who sends to whom in which step, and what it waits for. */
#include "tools/sim/pattern.h"

#include <string.h>

enum { WINDOW = 8 }; /* requests of `random` without an answer */

static struct step step_send(uint32_t dst, uint32_t slot)
{
	return (struct step){ .dst = dst, .slot = slot, .await = NOTHING };
}

static struct step step_await(uint32_t slot, uint32_t need)
{
	return (struct step){ .dst = NOTHING, .await = slot, .need = need };
}

static const struct step step_none = { .dst = NOTHING, .await = NOTHING };

/* -- All to all: in step k to the node k + 1 behind, so that no node is everybody's next ------ */

static uint32_t alltoall_steps(const struct play *p)
{
	uint64_t most = PACKETS_MOST / p->nodes, all = p->nodes - 1;
	return (uint32_t)(all < most ? all : most + !most);
}

static struct step alltoall_step(const struct play *p, uint32_t node, uint32_t k, uint32_t round)
{
	(void)round;
	return step_send((node + k + 1) % p->nodes, 0);
}

/*
 * -- Allreduce: recursive doubling, as Tern's between machines ------------------------------------
 *
 * The nodes from the largest power of two on hand their part to a node below, and get the result
 * from it. The slot is the step.
 */

static uint32_t doublings(const struct play *p)
{
	return 31 - (uint32_t)__builtin_clz(p->nodes);
}

static uint32_t allreduce_steps(const struct play *p)
{
	return doublings(p) + 2;
}

static struct step allreduce_step(const struct play *p, uint32_t node, uint32_t k, uint32_t round)
{
	uint32_t most = 1u << doublings(p), last = doublings(p) + 1;
	if (node >= most) {
		if (k == 0)
			return step_send(node - most, 0);
		return k == last ? step_await(last, round + 1) : step_none;
	}
	bool helped = node + most < p->nodes;
	if (k == 0)
		return helped ? step_await(0, round + 1) : step_none;
	if (k == last)
		return helped ? step_send(node + most, last) : step_none;
	struct step s = step_send(node ^ 1u << (k - 1), k);
	s.await = k;
	s.need = round + 1;
	return s;
}

/* -- Halo: to the four neighbours in a closed grid, and then on when all four have come ------- */

static struct step halo_step(const struct play *p, uint32_t node, uint32_t k, uint32_t round)
{
	uint32_t w = p->width, h = p->nodes / w, x = node % w, y = node / w;
	const uint32_t next[4] = { y * w + (x + 1) % w, y * w + (x + w - 1) % w,
				   (y + 1) % h * w + x, (y + h - 1) % h * w + x };
	return k < 4 ? step_send(next[k], k) : step_await(k - 4, round + 1);
}

/* -- Random: requests to any node, with answers, a few at a time ------------------------------ */

static struct step random_step(const struct play *p, uint32_t node, uint32_t k, uint32_t round)
{
	struct chance c = { p->seed ^
			    ((uint64_t)node << 32 | round) * UINT64_C(0x9e3779b97f4a7c15) };
	uint32_t dst = chance_below(&c, p->nodes - 1);
	if (k == 0)
		return step_await(0, round + 1 > WINDOW ? round + 1 - WINDOW : 0);
	return (struct step){
		.dst = dst + (dst >= node), .slot = 1, .reply = true, .await = NOTHING
	};
}

const struct pattern pattern_table[] = {
	{ "alltoall", "every node sends one packet to every other", .slots = 1,
	  .many_steps = alltoall_steps, .step = alltoall_step },
	{ "allreduce", "recursive doubling: log2 N packets from each node, one behind the other",
	  .many_steps = allreduce_steps, .step = allreduce_step },
	{ "halo", "to the four neighbours in a closed grid, then wait for theirs", .steps = 8,
	  .slots = 4, .step = halo_step },
	{ "random", "requests to nodes at random, each with an answer, 8 at a time", .steps = 2,
	  .slots = 2, .step = random_step },
	{ 0 },
};

const struct pattern *pattern_named(const char *name)
{
	for (const struct pattern *p = pattern_table; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}
