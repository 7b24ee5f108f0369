/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may touch an endpoint. It has one owner at a time: the program, inside a call or under
 * a hold, or whoever delivers messages while the program computes (a progress thread, a signal's
 * handler). docs/design.md,
 * Delivery, has the protocol; models/ownership.pml and models/interrupt.pml check it.
 *
 * A call of the library that touches an endpoint begins with
 *
 *     INSIDE struct scope scope = scope_open(t);
 *
 * which has ownership until it returns. Scopes nest. In an endpoint that is only polled they
 * are a test each.
 */
#ifndef TERN_CORE_SCOPE_H
#define TERN_CORE_SCOPE_H

#include "core/endpoint.h"

enum alert {
	ALERT_LIBRARY = 1,  /* holds shall come to the library in any case */
	ALERT_CLAIM = 2,    /* the progress thread is taking ownership, or has it */
	ALERT_PENDING = 4,  /* something may have arrived: whoever leaves looks */
	ALERT_ASLEEP = 8,   /* the progress thread sleeps, and the bell is armed for it */
	ALERT_SLEEPER = 16, /* the program sleeps until CLAIM is gone */
	ALERT_REGAIN = 32, /* the progress thread has had ownership since the program last had it */
	ALERT_PAUSED = 64, /* the program keeps ownership until its next call; see scope_pause() */
	/* what whoever enters must see to */
	ALERT_ENTRY = ALERT_CLAIM | ALERT_ASLEEP | ALERT_REGAIN | ALERT_PAUSED,
};

enum { GUARD_INSIDE = 1, GUARD_MASK = 0xffff };
#define GUARD_ENTRY (INT64_C(1) << 32)
#define GUARD_LIBRARY_HOLD \
	(TERN_GUARD_HOLD * (PULSE_HOLDS_MOST + 1)) /* the upper bits of the holds */

/*
 * The half that says whether the program has ownership. guard.R5, acquire; released in
 * tern_guard_add().
 */
static inline uint32_t guard_busy(const struct endpoint *e)
{
	return (uint32_t)atomic_load_explicit(e->guard, memory_order_acquire);
}

/* How often the program came in; wraps. */
static inline uint32_t guard_entries(const struct endpoint *e)
{
	return (uint32_t)(atomic_load_explicit(e->guard, memory_order_relaxed) >> 32);
}

/* Holds in force, as far as the owner is concerned. */
static inline uint32_t held(const struct endpoint *e)
{
	if (TERN_UNLIKELY(e->by_progress))
		return e->progress_holds;
	return (uint32_t)(atomic_load_explicit(e->guard, memory_order_relaxed) >> 16) & GUARD_MASK;
}

struct scope {
	struct endpoint *e; /* NULL where closing it does nothing */
};

#define INSIDE __attribute__((cleanup(scope_close), unused))

bool scope_enter(struct endpoint *e); /* false: the caller is the progress thread, and the owner */
void scope_leave(struct endpoint *e);

static inline struct scope scope_open(tern *t)
{
	struct endpoint *e = t->own;
	return (struct scope){ TERN_UNLIKELY(e->guarded) && scope_enter(e) ? e : NULL };
}

static inline void scope_close(struct scope *scope)
{
	if (TERN_UNLIKELY(scope->e))
		scope_leave(scope->e);
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
void scope_close_unserved(
	struct scope *scope); /* leaves without serving anybody: the result is in no variable yet */
void scope_resume(struct endpoint *e); /* as the next call does */
/* Scopes that this kernel thread is inside of, in all endpoints that have a guard. */
extern _Thread_local uint32_t scope_depth __attribute__((tls_model("initial-exec")));

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

/*
 * Sets and clears bits of the alert; returns what it was. Clearing releases what was done before
 * (alert.R6).
 */
static inline uint32_t alert_raise(struct endpoint *e, uint32_t bits)
{
	return atomic_fetch_or(&e->t->alert, bits);
}

static inline uint32_t alert_drop(struct endpoint *e, uint32_t bits)
{
	return atomic_fetch_and(&e->t->alert, ~bits);
}

#endif

/* cost: protection control */
