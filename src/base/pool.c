/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of one kind, made in batches, with names that can travel. */
#include "base/pool.h"

#include <string.h>

#include "base/memory.h"
#include "base/wrap.h"

static struct record *pool_record(const struct pool_of *p, uint32_t i)
{
	return (struct record *)(void *)(p->batch[i / POOL_BATCH] + i % POOL_BATCH * p->bytes);
}

static void pool_grow(struct pool_of *p)
{
	char *batch = p->made < p->most ? memory_new(POOL_BATCH, p->bytes) : NULL;
	if (!batch)
		return;
	p->batch[p->made / POOL_BATCH] = batch;
	for (uint32_t i = POOL_BATCH; i--;) { /* so that they are taken in order */
		struct record *r = (struct record *)(void *)(batch + i * p->bytes);
		r->index = (uint16_t)(p->made + i);
		r->generation = (uint16_t)wrap_first(16, 0);
		r->next_free = p->free;
		p->free = r;
	}
	p->made += POOL_BATCH;
}

void *record_take(struct pool_of *p)
{
	if (!p->free)
		pool_grow(p);
	struct record *r = p->free;
	if (!r)
		return NULL;
	p->free = r->next_free;
	p->used++;
	memset(r + 1, 0, p->bytes - sizeof *r);
	r->generation += r->generation == UINT16_MAX ? 2 : 1; /* never 0, so that no name is 0 */
	r->used = true;
	return r;
}

void record_give(struct pool_of *p, void *record)
{
	struct record *r = record;
	r->used = false;
	r->next_free = p->free;
	p->free = r;
	p->used--;
}

uint32_t record_name(const void *record)
{
	const struct record *r = record;
	return (uint32_t)r->generation << 16 | r->index;
}

void *record_at(const struct pool_of *p, uint32_t i)
{
	struct record *r = i < p->made ? pool_record(p, i) : NULL;
	return r && r->used ? r : NULL;
}

void *record_next(const struct pool_of *p, const void *record)
{
	uint32_t i = record ? ((const struct record *)record)->index + 1U : 0;
	while (i < p->made && !record_at(p, i))
		i++;
	return record_at(p, i);
}

void *record_named(const struct pool_of *p, uint32_t name)
{
	struct record *r = record_at(p, name & 0xffff);
	return r && r->generation == (uint16_t)(name >> 16) ? r : NULL;
}

void pool_free(struct pool_of *p)
{
	for (uint32_t i = 0; i < p->made; i += POOL_BATCH)
		memory_free(p->batch[i / POOL_BATCH]);
}
