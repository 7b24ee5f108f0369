/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs through the layers of an endpoint. */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/called.h"
#include "core/direct.h"
#include "core/layers.h"
#include "core/long.h"
#include "core/scope.h"

#include "endpoint/handler.h"

/* Counts `i` on to the next layer that the endpoint has; false if there is none. */
static bool layer_next(const struct endpoint *e, unsigned *i)
{
	while (*i < LAYERS_MOST && !e->layer[*i])
		++*i;
	return *i < LAYERS_MOST;
}

static void on_served(tern *t, const tern_msg *m)
{
	(void)t, (void)m; /* what it asked for was done early; see served_poll() */
}

static void on_ask(tern *t, const tern_msg *m)
{
	(void)m;
	layer_reply(t->own, CORE_TOLD, NULL, 0, 0, NULL);
}

int layers_open(struct endpoint *e)
{
	layer_on(e, CORE_SERVED, on_served);
	layer_on(e, CORE_ASK, on_ask);
	layer_serve(e, CORE_ASK, NULL);
	long_register(e);
	layer_on(e, CORE_CALLED, on_called);
	for (unsigned i = 0; i < LAYERS_MOST; i++) {
		const struct layer *l = layer_table[i];
		if (!l)
			continue;
		e->layer[i] = memory_new(1, l->bytes + e->t->size * l->bytes_a_rank);
		int rc = e->layer[i]
				 ? l->open(e, e->layer[i])
				 : error_set(-ENOMEM, "opening rank %u: no memory for its layers",
					     e->t->rank);
		if (rc)
			return rc;
	}
	return 0;
}

void layers_close(struct endpoint *e)
{
	for (unsigned i = LAYERS_MOST; i-- > 0;) {
		if (e->layer[i])
			layer_table[i]->close(e->layer[i]);
		memory_free(e->layer[i]);
	}
	long_close(e);
	memory_free(e->barrier.called);
}

unsigned layers_progress(struct endpoint *e)
{
	unsigned done = 0;
	if (TERN_UNLIKELY(e->work & 1u << LAYERS_DRAINING) && !e->inner && !held(e) &&
	    !in_handler(e))
		done += lost_drain(e);
	if (TERN_UNLIKELY(e->work & 1u << LAYERS_BARRIER) && !held(e) && !in_handler(e))
		done += barrier_progress(e);
	if (TERN_UNLIKELY(e->work & 1u << LAYERS_LONG))
		done += long_progress(e);
	e->inner++;
	for (uint32_t left = e->work & ((1u << LAYERS_MOST) - 1); left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		if (e->work & 1u << i)
			done += layer_table[i]->progress(e->layer[i]);
	}
	e->inner--;
	return done;
}

void layers_lost(struct endpoint *e, uint32_t rank)
{
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (layer_table[i]->lost)
			layer_table[i]->lost(e->layer[i], rank);
}

bool layers_need_anyone(const struct endpoint *e, const tern_op *op)
{
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (layer_table[i]->needs_anyone && layer_table[i]->needs_anyone(e->layer[i], op))
			return true;
	return false;
}

bool layers_busy(const struct endpoint *e, uint32_t but)
{
	if (e->work & ~(1u << but) || e->deferred_count)
		return true;
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (layer_table[i]->busy && layer_table[i]->busy(e->layer[i]))
			return true;
	return false;
}

int layers_flush(struct endpoint *e)
{
	int rc = long_flush(e, false);
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (!rc && e->work & 1u << i && layer_table[i]->flush)
			rc = layer_table[i]->flush(e->layer[i]);
	return rc;
}

int layers_closing(struct endpoint *e)
{
	int rc = 0;
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (!rc && layer_table[i]->closing)
			rc = layer_table[i]->closing(e->layer[i]);
	return rc;
}

void layers_leave(struct endpoint *e)
{
	long_flush(e, true); /* a rank whose request was taken counts on the whole reply */
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (layer_table[i]->leave)
			layer_table[i]->leave(e->layer[i]);
}

void layers_disown(struct endpoint *e)
{
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (layer_table[i]->disown)
			layer_table[i]->disown(e->layer[i]);
}

void layers_report(const struct endpoint *e, int fd)
{
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (layer_table[i]->report)
			layer_table[i]->report(e->layer[i], fd);
}

const char *layers_await(const struct endpoint *e, uint64_t *set)
{
	const char *words = NULL;
	for (unsigned i = 0; layer_next(e, &i); i++)
		if (!words && layer_table[i]->awaits)
			words = layer_table[i]->awaits(e->layer[i], set);
	return words;
}

void layer_on_named(struct endpoint *e, unsigned id, tern_handler *fn, const char *name)
{
	handler_set(e, TERN_HANDLER_MAX + id, fn, name);
}

void layer_serve(struct endpoint *e, unsigned id, bool (*may)(tern *t, const tern_msg *m))
{
	e->handlers.servable[id / 64] |= UINT64_C(1) << id % 64;
	if (may) {
		e->handlers.serve_asks = id;
		e->handlers.serve_may = may;
	}
}

int layer_sent_knock(tern *t, struct tern_lane *lane)
{
	tern_knock_(t, lane);
	tern_look_(t);
	return 0;
}

int layer_sent_look(tern *t)
{
	tern_look_around_(t);
	return 0;
}

int layer_request_now(struct endpoint *e, uint32_t dst, unsigned id, const void *data, size_t len,
		      unsigned n, const uint64_t *words)
{
	library_hold(e);
	int rc = layer_request(e, dst, id, data, len, n, words);
	library_release(e);
	return rc;
}

/* What layer_answer_write() leaves to do. */
int layer_answer_rest(tern *t, enum layer_answered what, unsigned id, uint64_t w0, uint64_t w1)
{
	const uint64_t words[] = { w0, w1 };
	if (what == ANSWER_RARE)
		return layer_reply(t->own, id, NULL, 0, 2, words);
	tern_knock_(t, t->answer);
	return 0;
}
