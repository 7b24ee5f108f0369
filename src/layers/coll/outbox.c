/* SPDX-License-Identifier: BSD-3-Clause */
/* Outboxes: where they lie, and which are free. */
#include <string.h>

#include "coll/outbox.h"
#include "coll/team.h"
#include "mem/mem.h"

/* Whether ranks of this machine map each other's heaps: not under TERN_GRANT. */
static bool outboxes_shared(const struct coll *c)
{
	for (unsigned i = 0; i < c->e->nets; i++)
		if (c->e->net[i]->ops->span == SPAN_MACHINE)
			return c->e->net[i]->provides & PROVIDES_SHARED;
	return false;
}

_Static_assert(sizeof(struct outbox) <= JOB_OUTBOX, "it fits");

/* The first lies beside those of the other ranks. NULL: there is no memory. */
static struct outbox *outbox_new(struct coll *c)
{
	struct job *job = &c->e->group->job;
	size_t at = job_part_at(&job->outbox, c->e->t->rank);
	void *p = job->base + at;
	if (c->outbox_first || job_commit(job, at, JOB_OUTBOX, "the outbox of a team")) {
		if (tern_alloc(c->e->t, sizeof(struct outbox), &p))
			return NULL;
	}
	c->outbox_first = true;
	return memset(p, 0, sizeof(struct outbox)); /* others may have used the memory */
}

struct outbox *outbox_take(struct coll *c, struct place *place)
{
	struct outbox *d = c->outboxes;
	*place = (struct place){ OUTBOX_NONE, 0 };
	if (!outboxes_shared(c))
		return NULL;
	if (d) {
		c->outboxes = d->next;
	} else {
		if (!mem_room(mem_of(c->e->t), sizeof *d + OUTBOX_PLACES * CELL_LONG) ||
		    !(d = outbox_new(c)))
			return NULL;
	}
	place->outbox = (uint64_t)((char *)d - c->e->group->job.base);
	place->round = atomic_load(&d->left);
	return d;
}

void outbox_give(struct coll *c, struct outbox *d)
{
	d->next = c->outboxes;
	c->outboxes = d;
}
