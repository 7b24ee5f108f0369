/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may touch an endpoint. It has one owner at a time: the program, inside a call or under
 * a hold, or whoever delivers messages while the program computes (a progress thread, a signal's
 * handler). docs/design.md, Delivery, has the protocol; models/ownership.pml and
 * models/interrupt.pml check it.
 *
 * A call of the library that touches an endpoint begins with
 *
 *     INSIDE struct scope scope = scope_open(t);
 *
 * which has ownership until it returns. Scopes nest. In an endpoint that is only polled they
 * are a test each. Where a thread serves memory besides (endpoint.serves), they are light: the
 * program alone writes the guard, with plain additions, and the thread pays for the barrier.
 * Handlers that may be served open none: the thread that runs them would write the guard, too.
 */
#ifndef TERN_CORE_SCOPE_H
#define TERN_CORE_SCOPE_H

#include <tern/op.h>

#include "core/core.h"

enum { OP_PENDING_MOST = 1 << 24 };

struct scope {
	struct endpoint *e; /* NULL where closing it does nothing */
};

#define INSIDE __attribute__((cleanup(scope_close), unused))

bool scope_enter(struct endpoint *e); /* false: the caller is the progress thread, and the owner */
void scope_leave(struct endpoint *e);
/* After an entry, or a hold, has added `entry` to the guard: sees to what the alert says. */
void scope_regain(struct endpoint *e, uint32_t entry);

/* Scopes that this kernel thread is inside of, in all endpoints that have a guard. */
extern _Thread_local uint32_t scope_depth __attribute__((tls_model("initial-exec")));

/* Out of line: calls where nothing is to be entered must not pay for what these need. */
struct scope scope_open_light(tern *t);

static inline struct scope scope_open(tern *t)
{
	struct endpoint *e = t->own;
	if (TERN_LIKELY(!e->owner.scoped))
		return (struct scope){ NULL };
	if (TERN_LIKELY(!e->owner.guarded))
		return scope_open_light(t);
	return (struct scope){ scope_enter(e) ? e : NULL };
}

/* The same of what a program gives: `t` may be NULL or closed, and is then one that refuses. */
#define scope_given(t) scope_of(&(t), __func__)
static inline struct scope scope_of(tern **t, const char *call)
{
	if (TERN_UNLIKELY(!*t || (*t)->own->forked))
		*t = misuse_given(*t, call);
	return scope_open(*t);
}

/*
 * The same with a handle, which was set up as far as one can tell: what a stack or malloc() leaves
 * in memory has a count or a code that no handle has. NULL is for who calls to judge.
 */
#define scope_given_op(t, op) scope_of_op(&(t), op, __func__)
static inline bool op_is_set_up(const tern_op *op)
{
	if (!op)
		return true;
	/* The thread that serves the rank may be ending an operation. */
	uint32_t pending = __atomic_load_n(&op->pending, __ATOMIC_RELAXED);
	int error = __atomic_load_n(&op->error, __ATOMIC_RELAXED);
	return pending < OP_PENDING_MOST && (unsigned)-error < 4096 &&
	       (uintptr_t)op->flag % sizeof *op->flag == 0;
}
#define OP_NOT_SET_UP "a handle that was not set up; begin with tern_op op = TERN_OP"
static inline struct scope scope_of_op(tern **t, const tern_op *op, const char *call)
{
	if (TERN_UNLIKELY(!op_is_set_up(op)))
		*t = misuse_of(call, OP_NOT_SET_UP);
	return scope_of(t, call);
}

static inline void scope_close(struct scope *scope)
{
	struct endpoint *e = scope->e;
	if (TERN_LIKELY(!e))
		return;
	scope_leave(e);
}

/*
 * Several light threads may be inside the library, of which one runs. A guard counts its scopes:
 * whoever gives the core to another takes its own out, and puts them back when it runs again.
 * False: it is inside of other endpoints too, or is the handler of a signal, and must stay.
 */
bool scope_pass(struct endpoint *e, uint32_t *scopes);
bool scope_can_pass(const struct endpoint *e); /* whether it could pass */
void scope_return(struct endpoint *e, uint32_t scopes);
/* Leaves and serves nobody: for a short look from another endpoint's call. */
void scope_leave_unserved(struct endpoint *e);
/*
 * Leaves, and no handler runs before the program's next call: the call returns what handlers may
 * need, and the program has yet to lay it down where they look. Where several threads share the
 * endpoint, another one's call is the next.
 */
void scope_pause(struct scope *scope);
/* Leaves without serving anybody: the result is in no variable yet. */
void scope_close_unserved(struct scope *scope);
void scope_resume(struct endpoint *e); /* as the next call does */

/*
 * A hold of the library's own, around a send that must not wait. It is counted apart from the
 * program's, so that whoever looks from outside does not take it for one of those. At most seven
 * nest.
 */
void hold_rare(struct endpoint *e, int64_t n);    /* after the guard says that a hold begins */
void release_rare(struct endpoint *e, int64_t n); /* after it says that one is over */

static inline void library_hold(struct endpoint *e)
{
	tern_guard_add_(e->t, GUARD_LIBRARY_HOLD);
	if (TERN_UNLIKELY(tern_alert_(e->t)))
		hold_rare(e, GUARD_LIBRARY_HOLD);
}

static inline void library_release(struct endpoint *e)
{
	tern_guard_add_(e->t, -GUARD_LIBRARY_HOLD);
	if (TERN_UNLIKELY(tern_alert_(e->t)))
		release_rare(e, GUARD_LIBRARY_HOLD);
}

/*
 * When a hold is in force: 0, or an error if it is a release too many instead, which is then
 * forgotten.
 */
int hold_mend(struct endpoint *e);

#endif
