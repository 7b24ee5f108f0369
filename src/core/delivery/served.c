/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory messages that a thread serves while the program computes: those of a network, wherever
 * they lie in their ring, and no others. The thread is the owner meanwhile
 * (core/delivery/progress.c), but sends of the program go on: they write to lanes and take blocks
 * of the pool, and read `reach`, so nothing here touches these three.
 */
#include "core/layers.h"
#include "endpoint/count.h"
#include "endpoint/handler.h"

#define SERVED (UINT64_C(0) + TERN_HANDLER_MAX + CORE_SERVED)

/* The handler that a header names, by how it differs from what was expected. */
static unsigned difference_id(uint64_t difference)
{
	return (unsigned)(difference >> TERN_ID_SHIFT) & (TERN_HANDLER_SLOTS - 1);
}

static bool served_may(const struct endpoint *e, uint64_t difference, const tern_msg *m)
{
	unsigned id = difference_id(difference) - TERN_HANDLER_MAX;
	return id < HANDLERS_OWN && e->handlers.servable[id / 64] >> id % 64 & 1 &&
	       (id != e->handlers.serve_asks || !e->handlers.serve_may ||
		e->handlers.serve_may(e->t, m));
}

/*
 * Handles the message where `look` stands, as if it were the next one of `in`. Then it is one that
 * says nothing, over which a drain passes; the ring is this process's own, and nobody else has the
 * endpoint. False if its reply has no room now.
 */
static bool served_message(struct endpoint *e, struct tern_inlet *in, const struct tern_inlet *look)
{
	tern_msg *m = (tern_msg *)(void *)look->cursor;
	struct tern_inlet at = *in;
	const uint64_t what =
		(uint64_t)(TERN_HANDLER_SLOTS - 1) << TERN_ID_SHIFT | TERN_HEAD_PAYLOAD;
	in->cursor = look->cursor;
	in->expect = look->expect;
	e->inlet = in;
	e->block = NULL;
	e->t->answer = in->answer;
	unsigned handled = inlet_handle(e, in);
	payload_forget_reply(e);
	e->inlet = NULL;
	e->t->current = NULL;
	e->t->answer = &e->refuse;
	in->cursor = at.cursor;
	in->expect = at.expect;
	if (!handled)
		return false;
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	atomic_store_explicit(&m->head, (head & ~what) | SERVED << TERN_ID_SHIFT,
			      memory_order_relaxed);
	return true;
}

/* Gives back what lies before the first message that is the program's. */
static void served_pass(struct endpoint *e, struct tern_inlet *in)
{
	unsigned passed = 0;
	for (uint64_t x; inlet_next(in, &x) && difference_id(x) == SERVED; passed++)
		in->cursor += message_bytes(inlet_at(in), x);
	poll_note(e, in, passed);
}

static unsigned served_inlet(struct endpoint *e, struct tern_inlet *in)
{
	struct tern_inlet look = *in; /* a leaf that it passes is not given back */
	_Atomic uint64_t nowhere;
	unsigned served = 0;
	uint64_t x;
	look.freed = look.larger_freed = &nowhere;
	/* Until the program comes. */
	while (!(guard_busy(e) & GUARD_MASK) && inlet_next(&look, &x)) {
		if (served_may(e, x, inlet_at(&look))) {
			if (!served_message(e, in, &look))
				break;
			served++;
		}
		look.cursor += message_bytes(inlet_at(&look), x);
	}
	served_pass(e, in);
	return served;
}

unsigned served_poll(struct endpoint *e, bool look)
{
	struct net *net = e->net[e->nets - 1];
	unsigned served = 0;
	e->site.serving = true;
	if (look)
		net->ops->answer(net);
	for (struct tern_inlet *in = e->site.bell.next; in != &e->site.bell; in = in->next)
		if (in->kind == TERN_KIND_REQUEST && e->site.peer[in->peer].net == net &&
		    inlet_has(in))
			served += served_inlet(e, in);
	net->ops->knock(net, NULL);
	e->site.serving = false;
	return served;
}
