/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer itself. */
#include "typed/typed.h"

#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/setting.h"
#include "base/wrap.h"

/* Buffers go with the heap; what this rank had claimed elsewhere is taken back by its owners. */
static void typed_close(void *state)
{
	struct typed *y = state;
	offer_lost(y, UINT32_MAX);
	type_queues_free(y);
	for (uint32_t r = 0; r < y->e->t->size; r++)
		memory_free(y->target[r]);
	pool_free(&y->outgoing);
}

static int typed_open(struct endpoint *e, void *state)
{
	struct typed *y = state;
	y->e = e;
	y->generations = (uint32_t)wrap_first(32, 0);
	y->outgoing =
		(struct pool_of){ .bytes = sizeof(struct outgoing), .most = TERN_BUF_SENDS_MAX };
	TYPED_MESSAGES(LAYER_ON)
	int rc = setting_number(SETTING_CHECK, &y->check);
	return rc ? rc : setting_number(SETTING_SPILL, &y->spill_bytes);
}

void typed_busy(struct typed *y)
{
	layer_work(y->e, LAYER_TYPED, y->waiting || y->moving);
}

void typed_refuse(struct typed *y, uint32_t src, const char *what)
{
	/* A network may bring what it had sent after all that it had was taken back. */
	if (y->e->site.peer[src].lost && !layer_maps(y->e, src))
		return;
	poll_trouble_warn(y->e, error_set(-EBADMSG,
					  "rank %u got a typed message from rank %u %s; it was "
					  "dropped",
					  y->e->t->rank, src, what));
}

/* Takes back what a rank had claimed; what it announced counts, and has been handled. */
static void typed_lost(void *state, uint32_t rank)
{
	struct typed *y = state;
	for (struct type_queue *s = y->open; s; s = s->next)
		type_queue_reclaim(y, s, rank);
	offer_lost(y, rank);
	outgoing_lost(y, rank);
}

static unsigned typed_progress(void *state)
{
	struct typed *y = state;
	return offer_progress(y) + outgoing_progress(y);
}

LAYER_FITS(struct typed, TYPED_ANSWER, TYPED_HANDLERS_END);
const struct layer typed_layer = { .bytes = sizeof(struct typed),
				   .bytes_a_rank = sizeof(struct target *),
				   .open = typed_open,
				   .close = typed_close,
				   .progress = typed_progress,
				   .lost = typed_lost };
