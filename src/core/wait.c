/* SPDX-License-Identifier: BSD-3-Clause */
/* How a wait rests: it looks, yields, naps, sleeps; and what it says of itself. */
#include "core/wait.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "core/delivery.h"
#include "core/layers.h"
#include "endpoint/count.h"
#include "endpoint/trace.h"

enum {
	/* Steps that handled something, between two rounds of the other endpoints. */
	SIBLINGS_EVERY = 64,
	STREAM = 8,        /* messages handled at a time that make a stream */
	LINGER = 128,      /* pauses that let it run ahead */
	RUN_LEAST = 2,     /* looks in a row that find something, before the first pause, */
	RUN_MOST = 8,      /* and before the longest */
	LOOKS = 16,        /* between two rounds of the thread's other endpoints */
	YIELD_NS = 300000, /* after looking: how long to yield, */
	NAPS_NS = 1500000, /* and how long to nap before sleeping */
	NAP_NS = 50000,
	LONG_NAP_NS = 500000,
	YIELD_LONG_NS = 1000000, /* a yield that took this long went to another program; */
	YIELD_REST = 16,         /* none follows for so many times as long */
	SLEEP_NS = 100000000, /* a bound, so that even a rank that left without a word is noticed */
	STUCK_LOOKS = 6,      /* at other ranks: each shows its wait now and then */
	STUCK_LOOK_NS = 1000000,
	STUCK_NAMED = 8, /* ranks, before they are only counted */
};

_Thread_local const struct scheduler *wait_scheduler;

/* -- A wait in words -------------------------------------------------------------------------- */

/* "tern_recv 0x7 from rank 2": the call, and the rank if one is meant. */
static void wait_words(const struct wait *w, char *text, size_t room)
{
	char id[24] = "", whom[32] = "";
	if (w->has_id)
		snprintf(id, sizeof id, " %#llx", (unsigned long long)w->id);
	if (w->way)
		snprintf(whom, sizeof whom, w->whom ? " %s rank %u" : " %s any rank", w->way,
			 w->whom - 1);
	snprintf(text, room, "%s%s%s%s%s", w->call ? w->call : "a call", id, whom,
		 w->lack ? ": " : "", w->lack ? w->lack : "");
}

/* As far as it shows: a rank of another machine shows nothing here. */
static bool waits_alike(const struct job *j, uint32_t rank, const char *call)
{
	struct rank_wait p;
	return !job_here(j, rank) || job_rank_state(j, rank) > RANK_OPEN ||
	       (pulse_read(&j->pulse[rank], &p) && strcmp(p.text, call) == 0);
}

/* Which ranks have come, in bits; more of them with each look. */
static void look_around(const struct endpoint *e, const char *call, bool *come)
{
	const struct job *j = &e->group->job;
	for (int i = 0; i < STUCK_LOOKS; i++) {
		for (uint32_t r = 0; r < j->size; r++)
			come[r] |= r == e->t->rank || waits_alike(j, r, call);
		e->world->nap(STUCK_LOOK_NS);
	}
}

/* "; not there: rank 1, 3 and 4 others" */
static void absent_text(const struct endpoint *e, const char *call, char *text, size_t room)
{
	bool come[TERN_RANKS_MAX] = { false };
	uint32_t count = 0;
	size_t used = 0;
	look_around(e, call, come);
	for (uint32_t r = 0; r < e->t->size; r++) {
		if (come[r])
			continue;
		if (count++ < STUCK_NAMED)
			used += (size_t)snprintf(text + used, room - used, "%s %u",
						 used ? "," : "; not there: rank", r);
	}
	if (count > STUCK_NAMED)
		snprintf(text + used, room - used, " and %u others", count - STUCK_NAMED);
}

/*
 * Writes to standard error in which call the rank waits, for whom, and what its layers have under
 * way.
 */
static void stuck_report(struct endpoint *e, const struct wait *w, uint64_t ns)
{
	char call[PULSE_TEXT], absent[160] = "";
	wait_words(w, call, sizeof call);
	if (strcmp(call, "tern_barrier") == 0)
		absent_text(e, call, absent, sizeof absent);
	error_warn("rank %u has waited for %llu s in %s%s; `tern why` shows the other ranks",
		   e->t->rank, (unsigned long long)(ns / 1000000000), call, absent);
	layers_report(e, 2);
	for (unsigned i = 0; i < e->nets; i++)
		if (e->net[i]->ops->report)
			e->net[i]->ops->report(e->net[i]);
}

/* -- The thread's other endpoints ---------------------------------------------------------- */

/* Whether its own progress thread serves it. */
static bool sibling_apart(const struct endpoint *sibling)
{
	return sibling->progress && !sibling->serves && !attach_is_lent(sibling);
}

/*
 * Before touching it: a signal's handler might do so at the same time, or another thread that
 * shares it. False if that thread does; it is not waited for, since it might be waiting for us.
 */
static bool sibling_enter(struct endpoint *sibling)
{
	if (sibling->shared && !share_try(sibling))
		return false;
	/* Closed meanwhile; its lock orders the two. */
	if (sibling->shared && atomic_load_explicit(&sibling->closed, memory_order_relaxed)) {
		share_unlock(sibling);
		return false;
	}
	if (sibling->shared)
		return true;
	if (!sibling->entered && (sibling->interrupt || sibling->serves) &&
	    !attach_is_lent(sibling))
		sibling->entered = scope_enter(sibling);
	return true;
}

static void sibling_leave(struct endpoint *sibling)
{
	if (sibling->shared)
		share_unlock(sibling);
	if (!sibling->entered)
		return;
	sibling->entered = false;
	scope_leave(sibling);
}

void wait_wanted(struct endpoint *e)
{
	void (*wanted)(struct endpoint *) = atomic_load_explicit(&e->wanted, memory_order_relaxed);
	if (TERN_UNLIKELY(wanted != NULL))
		wanted(e);
}

static unsigned serve_sibling(struct endpoint *sibling, void *arg)
{
	(void)arg;
	wait_wanted(sibling);
	scope_resume(sibling);
	if (sibling_apart(sibling) || !sibling_enter(sibling))
		return 0;
	unsigned handled =
		held(sibling) || in_handler(sibling) ? 0 : poll_once(sibling, KINDS_BOTH);
	sibling_leave(sibling);
	return handled;
}

/*
 * The thread that has it rests in a wait and runs what is deferred itself: such a function may
 * wait for something that the worker's thread does next.
 */
static unsigned serve_main(struct endpoint *main)
{
	if (held(main) || in_handler(main))
		return 0;
	bool before = main->barrier.quiescing;
	main->barrier.quiescing = true;
	unsigned handled = poll_once(main, KINDS_BOTH);
	main->barrier.quiescing = before;
	return handled;
}

bool endpoint_arm(struct endpoint *e, struct sleep *s)
{
	for (unsigned i = 0; i < e->nets; i++)
		if (!e->net[i]->ops->arm(e->net[i], s))
			return false;
	return true;
}

/* False if it cannot be slept on: something is there. */
static bool wait_arm(struct endpoint *e, struct sleep *s)
{
	return !in_handler(e) && !e->work && !e->deferred_count && endpoint_arm(e, s);
}

void endpoint_disarm(struct endpoint *e)
{
	for (unsigned i = 0; i < e->nets; i++)
		net_disarm(e->net[i]);
	e->armed = false;
	e->site.peek = &e->site.bell;
}

/* Nonzero if it cannot be slept on; also if another thread may take it any moment. */
static unsigned arm_sibling(struct endpoint *sibling, void *arg)
{
	/* Light threads its progress thread does not run, and cannot wake us for. */
	if (sibling_apart(sibling))
		return sibling->threaded;
	if (attach_is_lent(sibling) || sibling->shared)
		return 1;
	sibling_enter(sibling);
	return !wait_arm(sibling, arg);
}

static unsigned disarm_sibling(struct endpoint *sibling, void *arg)
{
	(void)arg;
	if (sibling_apart(sibling) || sibling->shared ||
	    ((sibling->interrupt || sibling->serves) && !sibling->entered))
		return 0; /* it was not armed for this sleep, but maybe for calls */
	endpoint_disarm(sibling);
	sibling_leave(sibling);
	return 0;
}

/* -- The rungs ------------------------------------------------------------------------------- */

/* In words, for whoever looks at the job from outside. */
static void wait_show(struct endpoint *e, struct wait *w, bool asleep)
{
	char text[PULSE_TEXT];
	uint64_t set[PULSE_SET] = { 0 };
	if (w->awaits)
		w->awaits(e, w, set);
	wait_words(w, text, sizeof text);
	pulse_wait(e->pulse, text, w->whom, w->awaits ? set : NULL, w->since, asleep);
}

/* Yields for `ns` 0, naps, or sleeps on `s`. Nothing of the endpoint is touched meanwhile. */
static void wait_rest(struct endpoint *e, const struct sleep *s, uint64_t ns)
{
	const struct world *world = e->world;
	bool lent = attach_rests(e);
	if (s)
		world->sleep(s, ns);
	else if (ns)
		world->nap(ns);
	else
		world->yield();
	if (lent)
		attach_rested(e);
}

/* `ns`, or what is left until the limit of the wait if that is less; at least 1. */
static uint64_t within(const struct wait *w, uint64_t now, uint64_t ns)
{
	if (!w->until || now + ns <= w->until)
		return ns;
	return now < w->until ? w->until - now : 1;
}

static void wait_nap(struct endpoint *e, struct wait *w, uint64_t ns)
{
	wait_show(e, w, false);
	pulse_add(e, PULSE_NAPS, 1);
	if (e->shared)
		share_breathe(e, ns);
	else
		wait_rest(e, NULL, ns);
}

/* Of whoever would sleep with this kernel thread. */
static bool wait_over(struct endpoint *e, const struct wait *w)
{
	return (w->over && w->over(e, w->arg)) || (wait_scheduler && wait_scheduler->over());
}

/* True if it slept: everything was armed, nothing had arrived and the wait was not over. */
static bool wait_sleep(struct endpoint *e, struct wait *w)
{
	struct sleep s = { .says = BELL_ASLEEP, .limited = w->until != 0 };
	if (e->trace)
		trace_flush(e->trace); /* there is time, and the rank may be killed in its sleep */
	bool quiet = wait_arm(e, &s) && attach_each(e, arm_sibling, &s) == 0 && s.bells;
	if (quiet && !wait_over(e, w)) {
		uint64_t began = e->world->now();
		wait_show(e, w, true);
		progress_doze(e);
		wait_rest(e, &s, within(w, began, w->rest_ns ? w->rest_ns : SLEEP_NS));
		progress_rouse(e);
		pulse_add(e, PULSE_SLEEPS, 1);
		pulse_add(e, PULSE_SLEPT, e->world->now() - began);
	}
	endpoint_disarm(e);
	attach_each(e, disarm_sibling, NULL);
	return quiet;
}

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

/* Once in a wait: says what is under way, when it has taken as long as the user wants to bear. */
static void wait_report(struct endpoint *e, struct wait *w, uint64_t now)
{
	if (!e->waiting.stuck_ns || w->told || now - w->since < e->waiting.stuck_ns)
		return;
	w->told = true;
	stuck_report(e, w, now - w->since);
}

/*
 * A program that computes keeps a core that it is given for its slice of some milliseconds, and a
 * rank that yields again and again gets it back that seldom. One that naps or sleeps is preferred
 * when it wakes.
 */
static bool yield_unless_crowded(struct endpoint *e, void (*yield)(struct endpoint *e))
{
	uint64_t began = e->world->now();
	if (began < e->waiting.crowded)
		return false;
	yield(e);
	uint64_t end = e->world->now();
	if (end - began > YIELD_LONG_NS)
		e->waiting.crowded = end + (end - began) * YIELD_REST;
	return true;
}

static void yield_kept(struct endpoint *e)
{
	e->world->yield();
}

static void yield_lent(struct endpoint *e)
{
	wait_rest(e, NULL, 0);
}

bool wait_yield(struct endpoint *e)
{
	return yield_unless_crowded(e, yield_kept);
}

static void wait_idle(struct endpoint *e, struct wait *w)
{
	/* Counts here too: what is there may be waiting for room for its reply. */
	if (w->looks++ < e->waiting.spin)
		return;
	uint64_t now = e->world->now();
	if (!w->since) {
		w->since = now;
		pulse_add(e, PULSE_WAITS, 1);
	}
	wait_report(e, w, now);
	if (TERN_UNLIKELY(w->until && now >= w->until))
		return; /* its last step rests no more */
	lost_look(e);   /* a rank that never talked with us leaves without ringing */
	if (now - w->since < YIELD_NS && yield_unless_crowded(e, yield_lent)) {
		pulse_add(e, PULSE_YIELDS, 1);
		return;
	}
	if (now - w->since < NAPS_NS && !w->rest_ns)
		wait_nap(e, w, within(w, now, NAP_NS));
	else if (w->bounded || e->shared || /* what is shared another thread may answer */
		 (wait_scheduler && wait_scheduler->bounded()) || !wait_sleep(e, w))
		wait_nap(e, w, within(w, now, LONG_NAP_NS));
	pulse_go(e->pulse); /* after each step: only this call knows when the wait is over */
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
	if (TERN_UNLIKELY(e->shared))
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
		handled += attach_each(e, serve_sibling, NULL) + attach_main(e, serve_main);
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

int wait_until(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
	       struct wait *w)
{
	w->over = over;
	w->arg = arg;
	while (!over(e, arg)) {
		int rc = w->rule ? rules_wait(e, w->rule) : 0;
		if (!rc && w->stop)
			rc = w->stop(e, w);
		if (rc)
			return rc;
		wait_step(e, w);
	}
	return 0;
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

int wait_until_limit(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
		     struct wait *w, uint64_t ns)
{
	uint64_t now = e->world->now();
	w->over = over;
	w->arg = arg;
	w->until = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
	for (bool last = false; !over(e, arg);) {
		int rc = w->rule ? rules_wait(e, w->rule) : 0;
		if (!rc && w->stop)
			rc = w->stop(e, w);
		if (!rc && last)
			rc = error_set(-ETIMEDOUT,
				       "%s() has waited for %llu ns, which is its limit", w->call,
				       (unsigned long long)ns);
		if (rc)
			return rc;
		last = e->world->now() >= w->until;
		if (last && !w->since)
			w->since = w->until; /* so that this step asks the networks, too */
		wait_step(e, w);
	}
	return 0;
}

int wait_unreachable(struct endpoint *e, struct wait *w)
{
	lost_look(e); /* it may have left without a word, having never heard our knock */
	return send_reachable(e, w->whom - 1);
}

int wait_stalled(struct endpoint *e, struct wait *w, uint64_t moved)
{
	uint64_t now = e->world->now();
	if (!w->moved_at || moved != w->moved) {
		w->moved_at = now;
		w->moved = moved;
	}
	return now - w->moved_at > e->waiting.grace_ns ? -ETIMEDOUT : 0;
}

/*
 * A rank that is dead, or cannot be talked with, and that this endpoint has not forgiven; -1 if
 * there is none. Ranks that left well, and those that are forgiven, are missed only when no other
 * is there any more to send anything.
 */
static int wait_missing(struct endpoint *e)
{
	bool alone = lost_count(e) + 1 >= e->t->size;
	int missing = -1;
	for (uint32_t r = 0; r < e->t->size; r++)
		if (e->site.peer[r].lost) {
			struct net *net = e->site.peer[r].net;
			int rc = net->ops->check(net, r);
			bool gone = rc == -EOWNERDEAD || rc == -EPROTO || rc == -EHOSTUNREACH;
			if (gone && !e->site.peer[r].forgiven)
				return (int)r;
			if (alone && missing < 0)
				missing = (int)r;
		}
	return missing;
}

int wait_blame(struct endpoint *e, struct wait *w)
{
	if (!w->since || !lost_count(e))
		return 0;
	lost_find(e);
	int missing = wait_missing(e);
	if (missing < 0) {
		w->quiet = 0; /* whoever dies next can be forgiven in time, too */
		return 0;
	}
	uint64_t now = e->world->now();
	if (!w->quiet ||
	    w->served != endpoint_served(e)) { /* another thread's wait may have served some */
		w->quiet = now;
		w->served = endpoint_served(e);
	}
	if (now - w->quiet < e->waiting.grace_ns)
		return 0;
	struct peer *p = &e->site.peer[missing];
	return p->net->ops->check(p->net, (uint32_t)missing);
}

int tern_forgive(tern *t, uint32_t rank)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_destination(t->own, rank);
	if (!rc)
		t->own->site.peer[rank].forgiven = true;
	return rc;
}
