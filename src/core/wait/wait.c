/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting: a step serves what has arrived, or rests; a wait takes steps until it is over. */
#include "core/wait.h"

#include <errno.h>

#include "base/cpu.h"
#include "base/error.h"
#include "core/layers.h"
#include "endpoint/trace.h"

enum {
	/* Steps that handled something, between two rounds of the other endpoints. */
	SIBLINGS_EVERY = 64,
	STREAM = 8,    /* messages handled at a time that make a stream */
	LINGER = 128,  /* pauses that let it run ahead */
	RUN_LEAST = 2, /* looks in a row that find something, before the first pause, */
	RUN_MOST = 8,  /* and before the longest */
	LOOKS = 16,    /* between two rounds of the thread's other endpoints */
};

_Thread_local const struct scheduler *wait_scheduler;

void wait_wanted(struct endpoint *e)
{
	void (*wanted)(struct endpoint *) = atomic_load_explicit(&e->wanted, memory_order_relaxed);
	if (TERN_UNLIKELY(wanted != NULL))
		wanted(e);
}

/* -- One step ------------------------------------------------------------------------------- */

/*
 * Looks at the poll set's headers and nothing else, a few times: calling the poll for
 * each look would cost a twentieth of a round trip. True if something is there.
 */
static struct tern_inlet *wait_look(struct endpoint *e, struct wait *w)
{
	int most = wait_scheduler ? 1 : LOOKS; /* others may have something to do meanwhile */
	for (int i = 0; i < most && w->looks < e->waiting.spin && !e->work; i++, w->looks++) {
		struct tern_inlet *in = pollset_find(&e->site, e->site.peek);
		if (in)
			return in;
		cpu_relax();
	}
	return pollset_find(&e->site, e->site.peek);
}

/*
 * Before the next look. A producer is about to write the line that we look at, and each look takes
 * it away; in a stream, the consumer's prefetches also take lines away that are about to be
 * written, for as long as the consumer stays close behind. So a stream is let run ahead, which
 * doubles its rate. Pieces: when the last look left a line of them half read. Whole lines: when
 * messages have come from this inlet each time that we looked; the longer they do, the longer the
 * pause, so that a burst ends late by a part of its length at most. Whoever has what it waited for
 * is not delayed, because this comes before a look and not after a message.
 */
static uint32_t linger_of(const struct endpoint *e, struct wait *w, const struct tern_inlet *in,
			  unsigned handled)
{
	bool streams = in && in == w->from && w->looks <= 1;
	w->from = in;
	w->run = !streams ? 0 : w->run < RUN_MOST ? w->run + 1 : RUN_MOST;
	if (!in || !e->waiting.spin)
		return 0;
	if ((uintptr_t)in->cursor % TERN_LINE)
		return handled < STREAM ? 1 : LINGER;
	return w->run < RUN_LEAST || inlet_arrived(in) ? 0 : 1u << (w->run - RUN_LEAST);
}

/* Whether something has arrived elsewhere. */
static bool linger_ends(const struct endpoint *e, const struct wait *w)
{
	const struct tern_inlet *in = &e->site.bell;
	do {
		if (in != w->from && inlet_arrived(in))
			return true;
	} while ((in = in->next) != &e->site.bell);
	return false;
}

static void wait_linger(const struct endpoint *e, struct wait *w)
{
	for (; w->linger && !linger_ends(e, w); w->linger--)
		cpu_relax();
	w->linger = 0;
}

static enum fetch wait_fetch(const struct wait *w, const struct tern_inlet *there)
{
	if (w->recv_only && !w->looks)
		return FETCH_ALWAYS; /* it lay there: the sender is ahead */
	return there == w->from && w->looks <= 1 ? FETCH_NONE : FETCH_NEXT;
}

static unsigned wait_serve(struct endpoint *e, struct wait *w)
{
	wait_linger(e, w);
	if (TERN_UNLIKELY(e->owner.shared))
		share_breathe(e, 0);
	struct tern_inlet *there = wait_look(e, w);
	unsigned handled = 0;
	if (there) { /* one inlet, and what is waited for is looked at again */
		e->site.idle =
			e->waiting.spin; /* where it is 0, whoever we wait for may need this core */
		e->site.fetch = wait_fetch(w, there);
		e->waiting.recv_only = w->recv_only ? w : NULL;
		handled = there == w->takes && w->over(e, w->arg) ? 1 : poll_inlet(e, there);
		e->waiting.recv_only = NULL;
		e->site.fetch = FETCH_ALWAYS;
		e->site.idle = false;
		if (e->work)
			handled += layers_progress(e);
	} else if (w->since || e->work || e->deferred_count) {
		handled = poll_once(e, KINDS_BOTH);
	}
	/*
	 * Also when something lies here that waits for room for its reply: a sibling may have to
	 * make it.
	 */
	if (!handled || ++w->busy % SIBLINGS_EVERY == 0)
		handled += siblings_serve(e);
	if (!handled)
		return 0;
	w->linger = linger_of(e, w, there, handled);
	w->looks = 0;
	w->since = 0;
	w->quiet = 0;
	return handled;
}

void wait_step(struct endpoint *e, struct wait *w)
{
	if (TERN_UNLIKELY(e->trace))
		trace_step(e, w->what, w->call, &w->begun);
	unsigned handled = wait_serve(e, w);
	wait_wanted(e);
	/* In a layer's progress nobody else may run: the layer is in the middle of something. */
	const struct scheduler *threads = e->inner ? NULL : wait_scheduler;
	if (!handled && (!threads || threads->idle(w))) {
		wait_idle(e, w);
		if (TERN_UNLIKELY(e->deferred_count)) /* by a worker that served it meanwhile */
			defer_run(e);
	}
	if (TERN_UNLIKELY(e->trace))
		trace_stepped(e);
	if (TERN_UNLIKELY(threads != NULL) && !held(e))
		threads->pass(e, w, handled);
}

/* -- Waits ----------------------------------------------------------------------------------- */

/* Why it cannot go on; `last`: its limit has passed, and the step after that is taken. */
static int wait_fails(struct endpoint *e, struct wait *w, bool last)
{
	int rc = w->rule ? rules_wait(e, w->rule) : 0;
	if (!rc && w->stop)
		rc = w->stop(e, w);
	if (rc || !last)
		return rc;
	return error_set(-ETIMEDOUT, "%s() has waited for %llu ns, which is its limit", w->call,
			 (unsigned long long)w->limit);
}

int wait_until(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
	       struct wait *w)
{
	w->over = over;
	w->arg = arg;
	for (bool last = false; !over(e, arg);) {
		int rc = wait_fails(e, w, last);
		if (rc)
			return rc;
		last = w->until && e->world->now() >= w->until;
		if (last && !w->since)
			w->since = w->until; /* so that this step asks the networks, too */
		wait_step(e, w);
	}
	return 0;
}

int wait_until_limit(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
		     struct wait *w, uint64_t ns)
{
	if (ns != WAIT_FOREVER) {
		uint64_t now = e->world->now();
		w->limit = ns;
		w->until = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
	}
	return wait_until(e, over, arg, w);
}

/* Takes off the holds in force, or adds those that are owed; how many they were. */
static int holds_suspend(struct endpoint *e)
{
	int holds = (int16_t)held(e);
	for (int i = 0; i < holds; i++)
		tern_release(e->t);
	for (int i = holds; i < 0; i++)
		tern_hold(e->t);
	return holds;
}

static void holds_resume(struct endpoint *e, int holds)
{
	for (; holds > 0; holds--)
		tern_hold(e->t);
	for (; holds < 0; holds++)
		tern_release(e->t);
}

/*
 * A handler that runs in a step may leave a hold. The wait cannot end there: what it waits for goes
 * on, and would write to a handle in the caller's frame, and to the caller's data, after the caller
 * has returned with an error and no handle to tell when it is over. It cannot go on under the hold
 * either, since layers put off under a hold what may have to wait. So the hold begins when the call
 * returns, which is as soon as the program can rely on it.
 */
void wait_through(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
		  struct wait *w)
{
	int holds = 0;
	w->over = over;
	w->arg = arg;
	while (!over(e, arg)) {
		if (TERN_UNLIKELY(held(e)))
			holds += holds_suspend(e);
		if (w->stop)
			w->stop(e, w);
		wait_step(e, w);
	}
	holds_resume(e, holds);
}
