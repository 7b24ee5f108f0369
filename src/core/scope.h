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

#include "core/core.h"

struct scope {
	struct endpoint *e; /* NULL where closing it does nothing */
};

#define INSIDE __attribute__((cleanup(scope_close), unused))

bool scope_enter(struct endpoint *e); /* false: the caller is the progress thread, and the owner */
void scope_leave(struct endpoint *e);
void scope_regain(struct endpoint *e); /* in a light scope, after an alert */

/* Scopes that this kernel thread is inside of, in all endpoints that have a guard. */
extern _Thread_local uint32_t scope_depth __attribute__((tls_model("initial-exec")));

/* Out of line: calls where nothing is to be entered must not pay for what these need. */
struct scope scope_open_light(tern *t);
void scope_close_entered(struct endpoint *e);

static inline struct scope scope_open(tern *t)
{
	struct endpoint *e = t->own;
	if (TERN_LIKELY(!e->scoped))
		return (struct scope){ NULL };
	if (TERN_LIKELY(!e->guarded))
		return scope_open_light(t);
	return (struct scope){ scope_enter(e) ? e : NULL };
}

static inline void scope_close(struct scope *scope)
{
	struct endpoint *e = scope->e;
	if (TERN_LIKELY(!e))
		return;
	scope_close_entered(e);
}

/*
 * Light threads (src/spawn) take turns inside the library. A guard counts the scopes of the one
 * that runs: whoever gives the core to another takes its own out, and puts them back when it has
 * its turn. False: it is inside of other endpoints too, or is the handler of a signal, and must
 * stay.
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
	tern_guard_add(e->t, GUARD_LIBRARY_HOLD);
	if (TERN_UNLIKELY(tern_alert(e->t)))
		hold_rare(e, GUARD_LIBRARY_HOLD);
}

static inline void library_release(struct endpoint *e)
{
	tern_guard_add(e->t, -GUARD_LIBRARY_HOLD);
	if (TERN_UNLIKELY(tern_alert(e->t)))
		release_rare(e, GUARD_LIBRARY_HOLD);
}

/*
 * When a hold is in force: 0, or an error if it is a release too many instead, which is then
 * forgotten.
 */
int hold_mend(struct endpoint *e);

#endif

/* cost: protection control */
