/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may touch an endpoint. One has the role at a time: the program, inside a call or under
 * a hold, or an agent that delivers messages while the program computes. docs/design.md,
 * Delivery, has the protocol; models/role.pml and models/interrupt.pml check it.
 *
 * A call of the library that touches an endpoint begins with
 *
 *     INSIDE struct door door = door_open(t);
 *
 * and has the role until it returns. Doors nest. In an endpoint that is only polled they are
 * a test each.
 */
#ifndef TERN_CORE_DOOR_H
#define TERN_CORE_DOOR_H

#include "core/endpoint.h"

enum alert {
	ALERT_LIBRARY = 1,  /* holds shall come to the library in any case */
	ALERT_CLAIM = 2,    /* the agent is taking the role, or has it */
	ALERT_PENDING = 4,  /* something may have arrived: whoever leaves looks */
	ALERT_ASLEEP = 8,   /* the agent sleeps, and the bell is armed for it */
	ALERT_SLEEPER = 16, /* the program sleeps until CLAIM is gone */
	ALERT_REGAIN = 32,  /* the agent has had the role since the program last had it */
	ALERT_PAUSED = 64,  /* the program keeps the role until its next call; see door_pause() */
	/* what whoever enters must see to */
	ALERT_ENTRY = ALERT_CLAIM | ALERT_ASLEEP | ALERT_REGAIN | ALERT_PAUSED,
};

enum { GUARD_INSIDE = 1, GUARD_MASK = 0xffff };
#define GUARD_ENTRY (INT64_C(1) << 32)
#define GUARD_LIBRARY_HOLD \
	(TERN_GUARD_HOLD * (PULSE_HOLDS_MOST + 1)) /* the upper bits of the holds */

/*
 * The half that says whether the program has the role. guard.R5, acquire; released in
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

/* Holds in force, as far as whoever has the role is concerned. */
static inline uint32_t held(const struct endpoint *e)
{
	if (TERN_UNLIKELY(e->by_agent))
		return e->agent_hold;
	return (uint32_t)(atomic_load_explicit(e->guard, memory_order_relaxed) >> 16) & GUARD_MASK;
}

struct door {
	struct endpoint *e; /* NULL where closing it does nothing */
};

#define INSIDE __attribute__((cleanup(door_close), unused))

bool door_enter(struct endpoint *e); /* false: the caller is the agent, and has the role */
void door_leave(struct endpoint *e);

static inline struct door door_open(tern *t)
{
	struct endpoint *e = t->own;
	return (struct door){ TERN_UNLIKELY(e->guarded) && door_enter(e) ? e : NULL };
}

static inline void door_close(struct door *door)
{
	if (TERN_UNLIKELY(door->e))
		door_leave(door->e);
}

/*
 * Light threads (src/spawn) take turns inside the library. A guard counts the doors of the one that
 * runs: whoever gives the core to another takes its own out, and puts them back when it has its
 * turn. False: it is inside of other endpoints too, or is the handler of a signal, and must stay.
 */
bool door_pass(struct endpoint *e, uint32_t *doors);
bool door_is_free(const struct endpoint *e); /* whether it could pass */
void door_return(struct endpoint *e, uint32_t doors);
/* Leaves and serves nobody: for a short look from another endpoint's call. */
void door_slip(struct endpoint *e);
/*
 * Leaves, and no handler runs before the program's next call: the call returns what handlers may
 * need, and the program has yet to lay it down where they look. Where several threads share the
 * endpoint, another one's call is the next.
 */
void door_pause(struct door *door);
void door_hush(
	struct door *door); /* leaves without serving anybody: the result is in no variable yet */
void door_resume(struct endpoint *e); /* as the next call does */
/* Doors that this kernel thread is inside of, in all endpoints that have a guard. */
extern _Thread_local uint32_t door_depth __attribute__((tls_model("initial-exec")));

/*
 * A hold of the library's own, around a send that must not wait. It is counted apart from the
 * program's, so that whoever looks from outside does not take it for one of those. At most seven
 * nest.
 */
void door_hold_rare(struct endpoint *e, int64_t n);    /* after the guard says that a hold begins */
void door_release_rare(struct endpoint *e, int64_t n); /* after it says that one is over */

static inline void door_hold(struct endpoint *e)
{
	tern_guard_add(e->t, GUARD_LIBRARY_HOLD);
	if (TERN_UNLIKELY(tern_alert(e->t)))
		door_hold_rare(e, GUARD_LIBRARY_HOLD);
}

static inline void door_release(struct endpoint *e)
{
	tern_guard_add(e->t, -GUARD_LIBRARY_HOLD);
	if (TERN_UNLIKELY(tern_alert(e->t)))
		door_release_rare(e, GUARD_LIBRARY_HOLD);
}

/*
 * When a hold is in force: 0, or an error if it is a release too many instead, which is then
 * forgotten.
 */
int door_mend(struct endpoint *e);

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
