/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint knows of its surroundings: the ranks that share memory with it, and the time. */
#include "endpoint/misuse.h"

int tern_near_is(const tern *t, uint32_t rank)
{
	t = given(t);
	return rank < t->size && (t->own->site.peer[rank].net->ops->provides & PROVIDES_SHARED);
}

/* How many of the ranks below `end` are near. */
static unsigned near_below(const tern *t, uint32_t end)
{
	unsigned n = 0;
	for (uint32_t r = 0; r < end; r++)
		n += tern_near_is(t, r) != 0;
	return n;
}

unsigned tern_near_count(const tern *t)
{
	t = given(t);
	return near_below(t, t->size);
}

unsigned tern_near_self(const tern *t)
{
	t = given(t);
	return near_below(t, t->rank);
}

uint32_t tern_near_rank(const tern *t, unsigned i)
{
	t = given(t);
	for (uint32_t r = 0; r < t->size; r++)
		if (tern_near_is(t, r) && i-- == 0)
			return r;
	return UINT32_MAX;
}

uint64_t tern_time(const tern *t)
{
	const struct world *w = given(t)->own->world;
	return w ? w->now() : 0;
}
