/* SPDX-License-Identifier: BSD-3-Clause */
/* What is counted of a handler, of a batch of messages and of a call that has no room. */
#include "endpoint/count.h"

/* The processor's ticks, or the nanoseconds of a world whose time is another. */
static uint64_t count_tick(const struct endpoint *e)
{
	return e->world->ticks ? tick_now() : e->world->now();
}

void count_timed(struct endpoint *e, const tern_msg *m, unsigned id)
{
	struct stats_handler *h = &e->stats->handler[id];
	uint64_t began = count_tick(e);
	e->t->handler[id](e->t, m);
	uint64_t ticks = count_tick(e) - began;
	stats_add(&h->timed, 1);
	stats_add(&h->ticks, ticks);
	stats_most(&h->longest, ticks);
}

void count_batch(struct endpoint *e, const struct tern_inlet *in, unsigned handled, uint64_t bytes)
{
	struct stats_peer *p = &e->stats->peer[inlet_source(in)];
	stats_add(in->kind == TERN_KIND_REQUEST ? &p->requests : &p->replies, handled);
	stats_add(&p->bytes, bytes);
	stats_most(&p->most, handled);
	if (in->kind == TERN_KIND_REQUEST && in->peer < e->t->size) /* not a worker's */
		stats_set(&p->requests_at, in->leaf << 32 | (uint64_t)(in->cursor - in->base));
}

void stall_begin(struct endpoint *e, struct stall *s)
{
	if (s->begun)
		return;
	s->begun = true;
	s->tick = e->stats ? count_tick(e) : 0;
}

void stall_end(struct endpoint *e, const struct stall *s, enum pulse_count what)
{
	if (!s->begun)
		return;
	pulse_add(e, what, 1);
	if (e->stats)
		pulse_add(e, what + 1, count_tick(e) - s->tick);
}
