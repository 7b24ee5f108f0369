/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange of the call that makes a team of all ranks, where they are on one machine and have
 * no outboxes yet: each has a place in the job's memory, writes what it offers, then a number, and
 * reads the places of all, where they are. So no pair of ranks has to begin to talk, and nobody
 * needs memory for what all offer.
 *
 * A rank has two places, which calls use in turn. It writes to one again two calls later: by then
 * all have come to the call between, and so have read it. The number is stored and loaded in the
 * default order with the bells: a rank that sleeps has said so before it looks at the numbers once
 * more, and the last rank to write looks at the bells afterwards.
 */
#include <string.h>

#include "coll/run.h"

static struct job_offer *offer_of(const tern_team *team, uint64_t call, uint32_t rank)
{
	return &team->coll->e->group->job.rank[rank].offer[call % 2];
}

const void *board_offer(const tern_team *team, uint64_t call, uint32_t rank)
{
	return offer_of(team, call, rank)->words;
}

static bool offer_come(const struct run *r, uint32_t rank)
{
	return atomic_load(&offer_of(r->team, r->call, rank)->ready) > r->call;
}

bool board_ready(const struct run *r, uint32_t *seen)
{
	while (*seen < r->team->all.n && offer_come(r, *seen))
		++*seen;
	return *seen == r->team->all.n;
}

uint32_t board_lacks(const struct run *r)
{
	for (uint32_t rank = 0; rank < r->team->all.n; rank++)
		if (layer_lost(r->team->coll->e, rank) && !offer_come(r, rank))
			return rank + 1;
	return 0;
}

/* The last one to come wakes those that sleep. */
static void sleepers_ring(const struct run *r)
{
	struct job *job = &r->team->coll->e->group->job;
	for (uint32_t i = 0; i < r->team->all.n; i++)
		if (i != r->team->all.me && atomic_load(&job->rank[i].bell) & BELL_ASLEEP)
			job_ring(job, i);
}

bool board_turn(struct run *r, struct step *s)
{
	struct job_offer *own = offer_of(r->team, r->call, r->team->all.me);
	uint32_t seen = 0;
	if (s->begun)
		return board_ready(r, &seen);
	memcpy(own->words, s->from, s->len);
	atomic_store(&own->ready, r->call + 1);
	s->begun = true;
	if (!board_ready(r, &seen))
		return false;
	sleepers_ring(r);
	return true;
}
