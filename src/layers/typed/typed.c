/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer itself. */
#include "typed/typed.h"

#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/setting.h"
#include "base/wrap.h"

static void routes_free(struct typed *y)
{
	for (uint32_t r = 0; y->route && r < y->e->t->size; r++) {
		for (unsigned i = 0; y->route[r] && i < KEYS; i++)
			memory_free(y->route[r]->target[i]);
		if (y->route[r])
			memory_free(y->route[r]->landings);
		memory_free(y->route[r]);
	}
	memory_free(y->route);
}

static void typed_close(void *state)
{
	struct typed *y = state;
	/*
	 * Buffers go with the heap; what this rank had claimed elsewhere is taken back by its
	 * owners.
	 */
	order_free(y);
	type_queues_free(y);
	routes_free(y);
	memory_free(y->late);
	memory_free(y->outgoing);
	memory_free(y);
}

static int typed_open(struct endpoint *e, void **state)
{
	struct typed *y = memory_new(1, sizeof *y);
	if (!y)
		return error_set(-ENOMEM, "opening rank %u: no memory for typed messages",
				 e->t->rank);
	y->e = e;
	y->idle_ns = TYPED_IDLE_NS;
	y->generations = (uint32_t)wrap_first(32, 0);
	*state = y; /* from here on it is closed with the endpoint, however much of it there is */
	y->route = memory_new(e->t->size, sizeof *y->route);
	y->late = memory_new(e->t->size, sizeof *y->late);
	if (!y->route || !y->late)
		return error_set(-ENOMEM, "opening rank %u: no memory for typed messages",
				 e->t->rank);
	target_register(e);
	arrive_register(e);
	credit_register(e);
	far_register(e);
	int rc = setting_number(SETTING_CHECK, &y->check);
	return rc ? rc : setting_number(SETTING_SPILL, &y->spill_bytes);
}

void typed_busy(struct typed *y)
{
	layer_work(y->e, LAYER_TYPED, y->due || y->watched || y->moving);
}

void typed_refuse(struct typed *y, uint32_t src, const char *what)
{
	/* A network may bring what it had sent after all that it had was taken back. */
	if (y->e->site.peer[src].lost && !layer_maps(y->e, src))
		return;
	poll_trouble(y->e, error_set(-EBADMSG,
				     "rank %u got a typed message from rank %u %s; it was dropped",
				     y->e->t->rank, src, what));
	error_warn("%s", tern_strerror(y->e->trouble));
}

/* Takes back what a rank had claimed; what it announced counts, and has been handled. */
static void typed_lost(void *state, uint32_t rank)
{
	struct typed *y = state;
	for (unsigned i = 0; i < y->queues; i++)
		type_queue_reclaim(y, y->sorted[i], rank);
	credit_lost(y, rank);
	order_lost(y, rank);
	far_lost(y, rank);
}

static unsigned typed_progress(void *state)
{
	struct typed *y = state;
	return credit_progress(y) + far_progress(y) + outgoing_progress(y);
}

const struct layer typed_layer = {
	.open = typed_open, .close = typed_close, .progress = typed_progress, .lost = typed_lost
};
