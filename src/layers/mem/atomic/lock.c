/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of all ranks: the queue of Mellor-Crummey and Scott. Every rank has a `tern_lock` at the
 * same place. That of one rank, its home, has the last of the queue; in its own each rank finds who
 * comes after it, and waits there. So a lock goes to whoever asked first, and a rank
 * that waits looks at its own memory.
 *
 * When a rank dies that has the lock or waits for it, the queue is broken: whoever comes after it
 * tells the next one, and the last one leaves LAST_BROKEN at the home, for all who ask later.
 */
#include <errno.h>
#include <tern/lock.h>

#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"

enum { LOCK_NONE, LOCK_WAITS, LOCK_HAS, LOCK_BROKEN };
#define LAST_BROKEN UINT64_MAX /* else a rank plus 1, or 0 of a free lock */

/* One call on one lock. */
struct lock {
	tern *t;
	tern_lock *own;
	uint32_t home;
};

/* Where this rank may have the lock (`has`), or not. */
static int lock_open(struct lock *l, tern *t, tern_lock *own, const char *call, bool has)
{
	int rc = rules_rank_waits(t->own, call);
	if (rc)
		return rc;
	if ((uintptr_t)own % sizeof(uint64_t) || tern_addr_at(t, t->rank, own) == TERN_ADDR_NONE)
		return error_set(-EFAULT,
				 "%s was given %p, which is not memory of tern_alloc_all()", call,
				 (void *)own);
	/* Locks that lie apart have their homes at different ranks. */
	*l = (struct lock){ t, own, (uint32_t)(heap_offset(mem_of(t), own) / TERN_LINE % t->size) };
	if (has ? own->turn == LOCK_HAS : own->turn == LOCK_NONE)
		return 0;
	return error_set(has ? -EPERM : -EDEADLK, "%s was called by rank %u, which %s", call,
			 t->rank, has ? "does not have the lock" : "has the lock or waits for it");
}

static tern_addr lock_last(const struct lock *l)
{
	return tern_addr_at(l->t, l->home, &l->own->last);
}

/* Stores to a word of the lock at `rank`, for which that rank may wait. */
static int lock_tell(const struct lock *l, uint32_t rank, const uint64_t *word, uint64_t value)
{
	const tern_change store = { tern_addr_at(l->t, rank, word), TERN_AMO_STORE, value };
	return tern_put_signal(l->t, TERN_ADDR_NONE, NULL, 0, &store);
}

static int lock_broken(const struct lock *l)
{
	return error_set(
		-EOWNERDEAD,
		"the lock at offset %llu of rank %u's heap is broken: a rank has died that "
		"had it, or waited for it, or was its home; set it to zero at every rank "
		"to use it again",
		(unsigned long long)heap_offset(mem_of(l->t), l->own), l->t->rank);
}

/* Somebody stands behind us and has not said so: it may have died before that. */
static int next_stop(struct endpoint *e, struct wait *w)
{
	return w->since && lost_count(e) ? wait_stalled(e, w, 0) : 0;
}

/* Gives the lock to the next one in the queue, or breaks it there; without one, `last` is left. */
static int lock_pass(const struct lock *l, uint64_t state, uint64_t last)
{
	uint64_t me = l->t->rank + 1, was = 0;
	struct wait w = { .call = "tern_lock_release",
			  .rule = "tern_lock_release()",
			  .stop = next_stop };
	int rc = tern_cas(l->t, lock_last(l), me, last, &was);
	if (rc || was == me)
		return rc;
	rc = word_await(mem_of(l->t), &l->own->next, TERN_WORD_NE, 0, &w, UINT64_MAX);
	if (rc)
		return rc == -ETIMEDOUT ? lock_broken(l) : rc;
	return lock_tell(l, (uint32_t)l->own->next - 1, &l->own->turn, state);
}

/* This rank stands in the queue no more. Whom it cannot tell finds out by itself. */
static int lock_give_up(const struct lock *l)
{
	(void)!lock_pass(l, LOCK_BROKEN, LAST_BROKEN);
	l->own->turn = LOCK_NONE;
	return lock_broken(l);
}

/* The rank before us would give us the lock, and the home (`id`) keeps the queue. */
static int lock_stop(struct endpoint *e, struct wait *w)
{
	bool left = layer_lost(e, w->whom - 1) || layer_lost(e, (uint32_t)w->id);
	return w->since && left ? -EOWNERDEAD : 0;
}

static int lock_wait(const struct lock *l, uint32_t before)
{
	struct wait w = { .call = "tern_lock_take",
			  .rule = "tern_lock_take()",
			  .way = "from",
			  .whom = before + 1,
			  .id = l->home,
			  .stop = lock_stop };
	const uint64_t *state = &l->own->turn;
	int rc = lock_tell(l, before, &l->own->next, l->t->rank + 1);
	if (!rc)
		rc = word_await(mem_of(l->t), state, TERN_WORD_NE, LOCK_WAITS, &w, UINT64_MAX);
	/* It may have given us the lock and left before the wait looked at the word again. */
	return __atomic_load_n(state, __ATOMIC_ACQUIRE) == LOCK_HAS ? 0 : lock_give_up(l);
}

/* Asks for the lock, and waits for it or not. */
static int lock_ask(tern *t, tern_lock *lock, bool waits, const char *name, const char *call)
{
	INSIDE struct scope scope = scope_of(&t, name);
	struct lock l;
	uint64_t last = 0;
	int rc = lock_open(&l, t, lock, call, false);
	if (rc)
		return rc;
	lock->next = 0;
	lock->turn = waits ? LOCK_WAITS : LOCK_NONE;
	rc = waits ? tern_amo(t, lock_last(&l), TERN_AMO_SWAP, t->rank + 1, &last)
		   : tern_cas(t, lock_last(&l), 0, t->rank + 1, &last);
	if (rc || !last) {
		lock->turn = rc ? LOCK_NONE : LOCK_HAS;
		return rc;
	}
	if (waits)
		return last == LAST_BROKEN ? lock_give_up(&l) : lock_wait(&l, (uint32_t)last - 1);
	return last == LAST_BROKEN
		       ? lock_broken(&l)
		       : error_set(-EAGAIN, "the lock is taken; rank %u was the last to ask for it",
				   (uint32_t)last - 1);
}

int tern_lock_take(tern *t, tern_lock *lock)
{
	return lock_ask(t, lock, true, __func__, "tern_lock_take()");
}

int tern_lock_try(tern *t, tern_lock *lock)
{
	return lock_ask(t, lock, false, __func__, "tern_lock_try()");
}

int tern_lock_release(tern *t, tern_lock *lock)
{
	INSIDE struct scope scope = scope_given(t);
	struct lock l;
	int rc = lock_open(&l, t, lock, "tern_lock_release()", true);
	if (rc)
		return rc;
	rc = lock_pass(&l, LOCK_HAS, 0);
	lock->turn = LOCK_NONE;
	return rc;
}
