/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs through the layers of an endpoint. */
#include "core/layer.h"

#include "endpoint/handler.h"

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

unsigned layers_progress(struct endpoint *e)
{
	unsigned done = 0;
	if (TERN_UNLIKELY(e->work & 1u << LAYERS_DRAINING) && !e->inner && !held(e) &&
	    !in_handler(e))
		done += lost_drain(e);
	if (TERN_UNLIKELY(e->work & 1u << LAYERS_BARRIER) && !held(e) && !in_handler(e))
		done += barrier_progress(e);
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

bool layers_busy(const struct endpoint *e, uint32_t but)
{
	if (e->work & ~(1u << but) || e->deferred_count)
		return true;
	for (int i = 0; i < LAYERS; i++)
		if (e->layers[i]->busy && e->layers[i]->busy(e->layer[i]))
			return true;
	return false;
}

int layers_flush(struct endpoint *e)
{
	int rc = 0;
	for (int i = 0; i < LAYERS && !rc; i++)
		if (e->work & 1u << i && e->layers[i]->flush)
			rc = e->layers[i]->flush(e->layer[i]);
	return rc;
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

const char *layers_await(const struct endpoint *e, uint64_t *set)
{
	const char *words = NULL;
	for (int i = 0; i < LAYERS && !words; i++)
		if (e->layer[i] && e->layers[i]->awaits)
			words = e->layers[i]->awaits(e->layer[i], set);
	return words;
}

void layer_on_named(struct endpoint *e, unsigned id, tern_handler *fn, const char *name)
{
	handler_set(e, TERN_HANDLER_MAX + id, fn, name);
}

int layer_sent_knock(tern *t, struct tern_lane *lane)
{
	tern_knock(t, lane);
	tern_look(t);
	return 0;
}

int layer_sent_look(tern *t)
{
	tern_look_around(t);
	return 0;
}

/* What layer_answer_write() leaves to do. */
int layer_answer_rest(tern *t, enum layer_answered what, unsigned id, uint64_t w0, uint64_t w1)
{
	const uint64_t words[] = { w0, w1 };
	if (what == ANSWER_RARE)
		return layer_reply(t->own, id, NULL, 0, 2, words);
	tern_knock(t, t->answer);
	return 0;
}
