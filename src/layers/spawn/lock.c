/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks between the threads of a rank. Whoever waits stands in a list, on its own stack, and an
 * unlock hands the lock to the first, so that nobody who comes later is before it. A wait that
 * fails leaves the list. No instruction is locked: the threads of a rank share one kernel thread.
 */
#include <errno.h>

#include "base/error.h"
#include "core/scope.h"
#include "core/wait.h"
#include "spawn/context.h"

struct tern_mutex_waiter {
	tern_mutex *mutex;
	uint64_t who;
	struct tern_mutex_waiter *next;
};

static uint64_t lock_self(void)
{
	const struct context *c = context_self();
	return c ? c->number + 1 : 1;
}

static bool lock_has(struct endpoint *e, void *arg)
{
	(void)e;
	struct tern_mutex_waiter *waiter = arg;
	return waiter->mutex->holder == waiter->who;
}

/*
 * Not inline: compilers would take what is on the caller's stack, and leaves the list before it
 * returns, for lost.
 */
static __attribute__((noinline)) void lock_queue(tern_mutex *m, struct tern_mutex_waiter *waiter)
{
	*(m->last ? &m->last->next : &m->first) = waiter;
	m->last = waiter;
}

static void lock_leave(tern_mutex *m, const struct tern_mutex_waiter *waiter)
{
	struct tern_mutex_waiter **p = &m->first, *before = NULL;
	for (; *p != waiter; p = &(*p)->next)
		before = *p;
	*p = waiter->next;
	if (m->last == waiter)
		m->last = before;
}

static int lock_wait(tern *t, tern_mutex *m)
{
	struct tern_mutex_waiter waiter = { .mutex = m, .who = lock_self() };
	struct wait w = { .call = "tern_mutex_take", .rule = "tern_mutex_take()" };
	lock_queue(m, &waiter);
	int rc = wait_until(t->own, lock_has, &waiter, &w);
	if (rc)
		lock_leave(m, &waiter);
	return rc;
}

int tern_mutex_take(tern *t, tern_mutex *m)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = m->holder ? rules_wait(t->own, "a tern_mutex_take() that has to wait")
			   : rules_program(t->own, "tern_mutex_take()");
	if (rc)
		return rc;
	if (m->holder == lock_self())
		return error_set(-EDEADLK, "thread %llu of rank %u has this lock already",
				 (unsigned long long)m->holder - 1, t->rank);
	if (m->holder)
		return lock_wait(t, m);
	m->holder = lock_self();
	return 0;
}

int tern_mutex_release(tern *t, tern_mutex *m)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_program(t->own, "tern_mutex_release()");
	if (rc)
		return rc;
	if (m->holder != lock_self())
		return error_set(-EPERM, "thread %llu of rank %u does not have this lock",
				 (unsigned long long)lock_self() - 1, t->rank);
	struct tern_mutex_waiter *first = m->first;
	m->holder = first ? first->who : 0;
	if (first)
		m->first = first->next;
	if (!m->first)
		m->last = NULL;
	return 0;
}
