/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint that several threads use, one call at a time. The lock is taken by the outermost
 * call or hold of a thread and given back by its end; a call that waits gives it back between
 * its steps, so that other threads get on.
 */
#include "core/core.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"

struct share {
	pthread_mutex_t lock;
	_Atomic uintptr_t holder; /* the token of the thread that has it */
	uint32_t depth;           /* of its calls and holds */
	_Atomic uint32_t queue;   /* threads that want it */
};

int share_open(struct endpoint *e)
{
	e->shared = calloc(1, sizeof *e->shared);
	if (!e->shared)
		return error_set(-ENOMEM, "sharing the endpoint of rank %u: no memory", e->t->rank);
	pthread_mutex_init(&e->shared->lock, NULL);
	return 0;
}

/* Only this thread writes its own token there, so what it reads is never wrong for itself. */
bool share_is_mine(const struct endpoint *e)
{
	return atomic_load_explicit(&e->shared->holder, memory_order_relaxed) == attach_token();
}

static void share_taken(struct share *s)
{
	atomic_store_explicit(&s->holder, attach_token(), memory_order_relaxed);
}

static void share_take(struct share *s)
{
	atomic_fetch_add_explicit(&s->queue, 1, memory_order_relaxed);
	pthread_mutex_lock(&s->lock);
	atomic_fetch_sub_explicit(&s->queue, 1, memory_order_relaxed);
	share_taken(s);
}

static void share_give(struct share *s)
{
	atomic_store_explicit(&s->holder, 0, memory_order_relaxed);
	pthread_mutex_unlock(&s->lock);
}

void share_close(struct endpoint *e)
{
	if (!e->shared)
		return;
	if (share_is_mine(e)) /* by the close itself */
		share_give(e->shared);
}

void share_free(struct endpoint *e)
{
	if (!e->shared)
		return;
	pthread_mutex_destroy(&e->shared->lock);
	free(e->shared);
	e->shared = NULL;
}

void share_lock(struct endpoint *e)
{
	if (!share_is_mine(e))
		share_take(e->shared);
	e->shared->depth++;
}

bool share_try(struct endpoint *e)
{
	if (!share_is_mine(e)) {
		if (pthread_mutex_trylock(&e->shared->lock))
			return false;
		share_taken(e->shared);
	}
	e->shared->depth++;
	return true;
}

void share_unlock(struct endpoint *e)
{
	if (--e->shared->depth == 0)
		share_give(e->shared);
}

void share_breathe(struct endpoint *e, uint64_t ns)
{
	struct share *s = e->shared;
	if (!ns && !atomic_load_explicit(&s->queue, memory_order_relaxed))
		return;
	uint32_t depth = s->depth;
	s->depth = 0;
	share_give(s);
	if (ns)
		e->world->nap(ns);
	else
		e->world->yield(); /* a mutex goes to whoever comes, and that would be us again */
	share_take(s);
	s->depth = depth;
}

/* cost: protection control */
