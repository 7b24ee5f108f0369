/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/layer.h"
#include "core/label.h"

#include <errno.h>

#include "base/error.h"
#include "core/trace.h"
#include "core/watchdog.h"

int layers_open(struct endpoint *e)
{
	for (int i = 0; i < LAYERS; i++) {
		int rc = e->layers[i]->open(e, &e->layer[i]);
		if (rc)
			return rc;
	}
	return 0;
}

void layers_close(struct endpoint *e)
{
	for (int i = LAYERS - 1; i >= 0; i--)
		if (e->layer[i])
			e->layers[i]->close(e->layer[i]);
}

/* -- Ranks that have left ------------------------------------------------------------------ */

enum {
	DRAINING = LAYERS, /* a bit of the endpoint's work, behind those of the layers */
	FAR_LOOKS = 2      /* packets may be on their way from the network to their inlet */
};

void layers_lost(struct endpoint *e, uint32_t rank)
{
	e->site.peer[rank].draining = layer_maps(e, rank) ? 1 : FAR_LOOKS;
	e->work |= 1u << DRAINING;
}

/* Whether something is left to be handled. The rank may have died before it knocked for it. */
static bool inlet_left(struct endpoint *e, struct tern_inlet *in)
{
	if (!in->base || !inlet_has(in))
		return false;
	pollset_add(&e->site, in);
	return true;
}

/* One look at what a lost rank had sent. */
static void peer_drain(struct endpoint *e, uint32_t rank)
{
	struct peer *p = &e->site.peer[rank];
	bool requests = inlet_left(e, &p->requests), replies = inlet_left(e, &p->replies);
	if (requests || replies || --p->draining)
		return;
	e->inner++;
	for (int i = 0; i < LAYERS; i++)
		if (e->layer[i])
			e->layers[i]->lost(e->layer[i], rank);
	e->inner--;
}

/*
 * A rank may have died between a knock and its ring, so whoever has knocked is let in without
 * one. The ring may also have meant that others have left.
 */
static void layers_drain(struct endpoint *e)
{
	for (unsigned i = 0; i < e->nets; i++)
		e->net[i]->ops->answer(e->net[i]);
	poll_lost(e);
	e->work &= ~(1u << DRAINING);
	for (uint32_t r = 0; r < e->t->size; r++) {
		if (e->site.peer[r].draining)
			peer_drain(e, r);
		if (e->site.peer[r].draining)
			e->work |= 1u << DRAINING;
	}
}

unsigned layers_progress(struct endpoint *e)
{
	unsigned done = 0;
	if (TERN_UNLIKELY(e->work & 1u << DRAINING) && !e->inner && !held(e) && !in_handler(e))
		layers_drain(e);
	e->inner++;
	for (int i = 0; i < LAYERS; i++)
		if (e->work & 1u << i)
			done += e->layers[i]->progress(e->layer[i]);
	e->inner--;
	return done;
}

bool layers_need_anyone(const struct endpoint *e, const tern_op *op)
{
	for (int i = 0; i < LAYERS; i++)
		if (e->layers[i]->needs_anyone && e->layers[i]->needs_anyone(e->layer[i], op))
			return true;
	return false;
}

int layers_closing(struct endpoint *e)
{
	int rc = 0;
	for (int i = 0; i < LAYERS && !rc; i++)
		if (e->layers[i]->closing)
			rc = e->layers[i]->closing(e->layer[i]);
	return rc;
}

void layers_leave(struct endpoint *e)
{
	for (int i = 0; i < LAYERS; i++)
		if (e->layer[i] && e->layers[i]->leave)
			e->layers[i]->leave(e->layer[i]);
}

void layers_disown(struct endpoint *e)
{
	for (int i = 0; i < LAYERS; i++)
		if (e->layer[i] && e->layers[i]->disown)
			e->layers[i]->disown(e->layer[i]);
}

void layers_report(const struct endpoint *e, int fd)
{
	for (int i = 0; i < LAYERS; i++)
		if (e->layer[i] && e->layers[i]->report)
			e->layers[i]->report(e->layer[i], fd);
}

void layer_on_named(struct endpoint *e, unsigned id, tern_handler *fn, const char *name)
{
	e->t->handler[TERN_HANDLER_MAX + id] = trace_handler(
		e, TERN_HANDLER_MAX + id, watchdog_handler(e, TERN_HANDLER_MAX + id, fn));
	e->t->known[TERN_HANDLER_MAX + id] = 1;
	label_set(e, TERN_HANDLER_MAX + id, name);
}

/* cost: base control */
