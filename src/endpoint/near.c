/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint knows of its surroundings: who is where, and the time. */
#include "endpoint/misuse.h"

int tern_near_is(const tern *t, uint32_t rank)
{
	t = given(t);
	return rank < t->size && (t->own->site.peer[rank].net->ops->provides & PROVIDES_SHARED);
}

uint32_t tern_machines(const tern *t)
{
	const struct group *g = given(t)->own->group;
	return g ? g->job.head->machines : 0;
}

uint32_t tern_machine(const tern *t, uint32_t rank)
{
	t = given(t);
	return rank < t->size ? t->own->group->job.rank[rank].machine : UINT32_MAX;
}

uint64_t tern_time(const tern *t)
{
	const struct world *w = given(t)->own->world;
	return w ? w->now() : 0;
}
