/* SPDX-License-Identifier: BSD-3-Clause */
/* Entering and leaving an endpoint, holds, and getting ownership back. */
#include "core/scope.h"

#include <errno.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/kernel.h"
#include "core/delivery.h"
#include "endpoint/watchdog.h"
#include "endpoint/watched.h"

enum {
	CLAIM_LOOKS = 2000, /* at the alert, before the program lets others run */
	LEAVE_LOOKS = 4,    /* of a call that ends, at what has arrived */
	CLAIM_YIELDS = 20,  /* of those, before it sleeps */
	/* A bound, in case the progress thread was killed with its process half gone. */
	CLAIM_SLEEP_NS = 100000000,
};

_Thread_local uint32_t scope_depth;

/*
 * Until the progress thread has given ownership back: it looks for us after every few messages.
 * tern_alerted_() acquires what it did (alert.R6). Who changes the alert here is about to sleep, so
 * the order of that is the default.
 */
static void claim_wait(struct endpoint *e)
{
	for (int looks = 0; tern_alerted_(e->t) & ALERT_CLAIM; looks++) {
		if (looks < CLAIM_LOOKS && e->waiting.spin) {
			cpu_relax();
		} else if (looks < CLAIM_LOOKS + CLAIM_YIELDS) {
			e->world->yield();
		} else {
			uint32_t was = tern_alerted_(e->t), asleep = was | ALERT_SLEEPER;
			if (was & ALERT_CLAIM &&
			    atomic_compare_exchange_strong(&e->t->alert, &was, asleep))
				world_wait(&e->t->alert, asleep, CLAIM_SLEEP_NS);
		}
	}
}

static void guard_add(struct endpoint *e, int64_t n)
{
	if (TERN_LIKELY(e->t->guard == e->owner.guard))
		tern_guard_add_(e->t, n);
	else
		atomic_store_explicit(e->owner.guard,
				      atomic_load_explicit(e->owner.guard, memory_order_relaxed) +
					      (uint64_t)n,
				      memory_order_release);
	if (TERN_UNLIKELY(e->owner.fenced))
		atomic_thread_fence(memory_order_seq_cst);
}

void scope_resume(struct endpoint *e)
{
	if (!(tern_alerted_(e->t) & ALERT_PAUSED))
		return;
	alert_drop(e, ALERT_PAUSED);
	guard_add(e, -GUARD_INSIDE);
}

/*
 * The program wants ownership and its guard says so, but there was an alert. If the progress thread
 * has had ownership since the program last had it (REGAIN), the low half was 0 then and is what
 * this entry adds; it is written once more, because handlers on the progress thread may have held
 * and released at the same moment, and of two additions at once one may be lost. Whoever writes the
 * guard looks at the alert afterwards.
 */
static void ownership_regain(struct endpoint *e, uint32_t entry)
{
	scope_resume(e);
	while (tern_alerted_(e->t) & (ALERT_CLAIM | ALERT_REGAIN)) {
		claim_wait(e);
		if (!(alert_drop(e, ALERT_REGAIN) & ALERT_REGAIN))
			continue;
		atomic_store_explicit(e->owner.guard, (uint64_t)guard_entries(e) << 32 | entry,
				      memory_order_release);
		/* The progress thread's membarrier does the rest. */
		atomic_signal_fence(memory_order_seq_cst);
		if (e->owner.fenced)
			atomic_thread_fence(memory_order_seq_cst);
	}
	if (tern_alerted_(e->t) & ALERT_ASLEEP)
		progress_relieve(e);
}

/* What one inlet has, or a round of all where that may be more than messages. */
static unsigned serve_some(struct endpoint *e)
{
	struct tern_inlet *there = e->work ? NULL : pollset_find(&e->site, e->site.peek);
	return there ? poll_inlet(e, there) : poll_once(e, KINDS_BOTH);
}

/*
 * The program has ownership and is about to give it up: some of what has arrived is handled first,
 * and the rest is left to whoever delivers, because the program waits for its call to end. The call
 * that ends may have failed, so its sentence is kept. How many messages it was.
 */
static unsigned ownership_serve(struct endpoint *e)
{
	struct error_kept sentence;
	int saved = errno;
	error_keep(&sentence);
	alert_drop(e, ALERT_PENDING);
	unsigned handled = !in_handler(e) && !held(e) ? serve_some(e) : 0;
	error_restore(&sentence);
	errno = saved;
	return handled;
}

bool scope_enter(struct endpoint *e)
{
	if (progress_is_me(e) || e->forked)
		return false;
	if (TERN_UNLIKELY(e->watched))
		watched_enter();
	if (e->owner.shared)
		share_lock(e);
	guard_add(e, GUARD_ENTRY | GUARD_INSIDE);
	scope_depth++;
	scope_regain(e, GUARD_INSIDE);
	return true;
}

void scope_regain(struct endpoint *e, uint32_t entry)
{
	if (TERN_UNLIKELY(tern_alerted_(e->t) & ALERT_ENTRY))
		ownership_regain(e, entry);
}

/*
 * The guard says that the program is inside before the alert is looked at (tern_guard_add_() keeps
 * the compiler from changing that). The thread raises CLAIM, issues a membarrier and then reads the
 * guard. The membarrier falls before this addition as the processor does it, or behind it. Before:
 * the load of the alert, which is later still, finds CLAIM. Behind: the thread finds the guard
 * busy. So at most one of the two goes on. models/ownership.pml has it with a store buffer.
 */
struct scope scope_open_light(tern *t)
{
	tern_guard_add_(t, GUARD_INSIDE);
	scope_depth++;
	if (TERN_UNLIKELY(tern_alert_(t)))
		scope_regain(t->own, GUARD_INSIDE);
	return (struct scope){ t->own };
}

/*
 * The low half has become 0, and the program has nothing else to do here. Bounded: the progress
 * thread asks again with every nap, which may be shorter than a look of a program that a debugger
 * steps through; what is left over it, or the timer, comes back for.
 */
static void ownership_leave(struct endpoint *e)
{
	unsigned handled = 0;
	for (int i = 0;
	     i < LEAVE_LOOKS && !handled && tern_alerted_(e->t) & ALERT_PENDING && !guard_busy(e);
	     i++) {
		guard_add(e, GUARD_INSIDE);
		scope_depth++;
		scope_regain(e, GUARD_INSIDE);
		handled = ownership_serve(e);
		guard_add(e, -GUARD_INSIDE);
		scope_depth--;
	}
	if (e->owner.delivery == TERN_DELIVERY_INTERRUPT)
		interrupt_left(e);
}

static __attribute__((noinline)) void guarded_leave(struct endpoint *e)
{
	/*
	 * A program that calls often needs nobody else to deliver its messages; but not before it
	 * is ready for them.
	 */
	if (guard_busy(e) == GUARD_INSIDE && attach_has_thread(e) && pollset_waits(&e->site))
		ownership_serve(e);
	guard_add(e, -GUARD_INSIDE);
	scope_depth--;
	if (!guard_busy(e))
		ownership_leave(e);
	if (e->owner.shared)
		share_unlock(e);
	if (TERN_UNLIKELY(e->watched))
		watched_leave();
}

/* Whether it is light may change inside: the two ways of leaving do the same to the guard. */
void scope_leave(struct endpoint *e)
{
	if (TERN_UNLIKELY(e->owner.guarded)) {
		guarded_leave(e);
		return;
	}
	tern_guard_add_(e->t, -GUARD_INSIDE);
	scope_depth--;
}

void scope_close_unserved(struct scope *scope)
{
	struct endpoint *e = scope->e;
	scope->e = NULL;
	if (!e)
		return;
	guard_add(e, -GUARD_INSIDE);
	scope_depth--;
	if (e->owner.delivery == TERN_DELIVERY_INTERRUPT && !guard_busy(e))
		interrupt_left(e);
	if (e->owner.shared)
		share_unlock(e);
	if (e->watched)
		watched_leave();
}

void scope_pause(struct scope *scope)
{
	struct endpoint *e = scope->e;
	if (!e || e->owner.delivery == TERN_DELIVERY_POLL || e->owner.shared ||
	    guard_busy(e) != GUARD_INSIDE) {
		scope_close_unserved(scope);
		return;
	}
	scope->e = NULL;
	scope_depth--;
	if (e->watched)
		watched_leave();
	alert_raise(e, ALERT_PAUSED); /* the guard goes on saying that the program is inside */
}

void scope_leave_unserved(struct endpoint *e)
{
	guard_add(e, -GUARD_INSIDE);
	scope_depth--;
	if (TERN_UNLIKELY(e->watched))
		watched_leave();
}

bool scope_can_pass(const struct endpoint *e)
{
	return (guard_busy(e) & GUARD_MASK) == scope_depth;
}

bool scope_pass(struct endpoint *e, uint32_t *scopes)
{
	if (!scope_can_pass(e))
		return false;
	*scopes = scope_depth;
	if (!*scopes)
		return true;
	guard_add(e, -(int64_t)*scopes);
	scope_depth = 0;
	ownership_leave(e);
	return true;
}

void scope_return(struct endpoint *e, uint32_t scopes)
{
	if (!scopes)
		return;
	guard_add(e, GUARD_ENTRY + scopes);
	scope_depth = scopes;
	scope_regain(e, scopes);
}

/* -- Holds -------------------------------------------------------------------------------- */

void hold_rare(struct endpoint *e, int64_t n)
{
	if (progress_is_me(e)) {
		tern_guard_add_(e->t, -n); /* the guard is the program's */
		e->owner.progress_holds++;
		return;
	}
	if (e->owner.shared) {
		share_lock(e);
		guard_add(e, n);
	}
	if (!attach_is_mine(e))
		/* Or a thread that waits might borrow it and serve it under the hold. */
		attach_first(e);
	if (e->owner.fenced)
		atomic_thread_fence(memory_order_seq_cst);
	scope_regain(e, (uint32_t)n);
	if (e->watchdog && held(e) == n / TERN_GUARD_HOLD)
		watchdog_hold(e);
}

void release_rare(struct endpoint *e, int64_t n)
{
	if (progress_is_me(e)) {
		tern_guard_add_(e->t, n);
		e->owner.progress_holds -= e->owner.progress_holds > 0;
		return;
	}
	if (e->owner.shared)
		guard_add(e, -n);
	if (e->owner.fenced)
		atomic_thread_fence(memory_order_seq_cst);
	if (e->owner.guarded && !guard_busy(e))
		ownership_leave(e);
	if (e->owner.shared)
		share_unlock(e);
}

void tern_hold_rare_(tern *t)
{
	hold_rare(t->own, TERN_GUARD_HOLD);
}

void tern_release_rare_(tern *t)
{
	release_rare(t->own, TERN_GUARD_HOLD);
}

int hold_mend(struct endpoint *e)
{
	uint32_t holds = held(e);
	if (holds <= GUARD_MASK / 2) /* below 0 it wraps */
		return 0;
	guard_add(e, (int64_t)(GUARD_MASK + 1 - holds) * TERN_GUARD_HOLD);
	return error_set(-EPERM, "rank %u has called tern_release() more often than tern_hold()",
			 e->t->rank);
}

#undef tern_hold
#undef tern_release

void tern_hold(tern *t)
{
	tern_hold_inline_(given(t));
}

void tern_release(tern *t)
{
	tern_release_inline_(given(t));
}
