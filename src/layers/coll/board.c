/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange of the call that makes a team of all ranks, where they are on one machine and have
 * no outboxes yet: each has a place in the job's memory, writes what it offers, then a number, and
 * reads the places of all. So no pair of ranks has to begin to talk.
 *
 * A rank has two places, which calls use in turn. It writes to one again two calls later: by then
 * all have come to the call between, and so have read it. The number is stored and loaded in the
 * default order with the bells: a rank that sleeps has said so before it looks at the numbers once
 * more, and the last rank to write looks at the bells afterwards.
 */
#include <string.h>

#include "coll/run.h"

static struct job_offer *offer_of(const struct run *r, uint32_t rank)
{
	return &r->team->coll->e->group->job.rank[rank].offer[r->call % 2];
}

static bool offer_come(const struct run *r, uint32_t rank)
{
	return atomic_load(&offer_of(r, rank)->ready) > r->call;
}

/* How many ranks have come, from the `seen` first ones on. */
static size_t offers_come(const struct run *r, size_t seen)
{
	while (seen < r->team->all.n && offer_come(r, (uint32_t)seen))
		seen++;
	return seen;
}

bool board_ready(const struct run *r, const struct step *s)
{
	return offers_come(r, s->moved) == r->team->all.n;
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
	uint32_t n = r->team->all.n;
	bool came = !s->begun;
	if (came) {
		struct job_offer *own = offer_of(r, r->team->all.me);
		memcpy(own->words, s->from, s->len);
		atomic_store(&own->ready, r->call + 1);
		s->begun = true;
	}
	s->moved = offers_come(r, s->moved);
	if (s->moved < n)
		return false;
	if (came)
		sleepers_ring(r);
	for (uint32_t i = 0; i < n; i++)
		memcpy(s->to + i * s->len, offer_of(r, i)->words, s->len);
	return true;
}
