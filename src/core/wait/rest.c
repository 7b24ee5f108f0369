/* SPDX-License-Identifier: BSD-3-Clause */
/* How a wait rests that has found nothing: it yields, naps, and sleeps. */
#include "core/delivery.h"
#include "core/wait.h"
#include "endpoint/count.h"
#include "endpoint/trace.h"

enum {
	YIELD_NS = 300000, /* after looking: how long to yield, */
	NAPS_NS = 1500000, /* and how long to nap before sleeping */
	NAP_NS = 50000,
	LONG_NAP_NS = 500000,
	YIELD_LONG_NS = 1000000, /* a yield that took this long went to a program that computes; */
	YIELD_LONG_MOST = 4,     /* in a row; none follows 0, 1, 3, 7, then 15 times as long */
	SLEEP_NS = 100000000, /* a bound, so that even a rank that left without a word is noticed */
};

bool endpoint_arm(struct endpoint *e, struct sleep *s)
{
	for (unsigned i = 0; i < e->nets; i++)
		if (!e->net[i]->ops->arm(e->net[i], s))
			return false;
	return true;
}

bool wait_arm(struct endpoint *e, struct sleep *s)
{
	return !in_handler(e) && !e->work && !e->deferred_count && endpoint_arm(e, s);
}

void endpoint_disarm(struct endpoint *e)
{
	for (unsigned i = 0; i < e->nets; i++)
		net_disarm(e->net[i]);
	e->owner.armed = false;
	e->site.peek = &e->site.bell;
}

/* In words, for whoever looks at the job from outside. */
static void wait_show(struct endpoint *e, struct wait *w, bool asleep)
{
	char text[PULSE_TEXT];
	uint64_t set[PULSE_SET] = { 0 };
	if (w->awaits)
		w->awaits(e, w, set);
	wait_words(e, w, text, sizeof text);
	pulse_wait(e->pulse, text, wait_rank(e, w), w->awaits ? set : NULL, w->since, asleep);
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
	if (e->owner.shared)
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
	bool quiet = wait_arm(e, &s) && siblings_arm(e, &s) && s.bells;
	if (quiet && !wait_over(e, w)) {
		uint64_t began = e->world->now(), longest = w->rest_ns ? w->rest_ns : SLEEP_NS;
		if (wait_scheduler)
			longest = wait_scheduler->rest(longest);
		wait_show(e, w, true);
		progress_doze(e);
		wait_rest(e, &s, within(w, began, longest));
		progress_rouse(e);
		pulse_add(e, PULSE_SLEEPS, 1);
		pulse_add(e, PULSE_SLEPT, e->world->now() - began);
	}
	endpoint_disarm(e);
	siblings_disarm(e);
	return quiet;
}

/*
 * A program that computes keeps a core that it is given for its slice of some milliseconds, and a
 * rank that yields again and again gets it back that seldom. One that naps or sleeps is preferred
 * when it wakes.
 */
static bool yield_unless_crowded(struct endpoint *e, bool lend)
{
	uint64_t began = e->world->now();
	if (began < e->waiting.crowded)
		return false;
	if (lend)
		wait_rest(e, NULL, 0);
	else
		e->world->yield();
	uint64_t end = e->world->now();
	if (end - began < YIELD_LONG_NS) {
		e->waiting.long_yields = 0;
	} else {
		e->waiting.crowded =
			end + ((end - began) << e->waiting.long_yields) - (end - began);
		if (e->waiting.long_yields < YIELD_LONG_MOST)
			e->waiting.long_yields++;
	}
	return true;
}

bool wait_yield(struct endpoint *e)
{
	return yield_unless_crowded(e, false);
}

void wait_idle(struct endpoint *e, struct wait *w)
{
	/* Counts here too: what is there may be waiting for room for its reply. */
	if (w->looks++ < e->waiting.spin)
		return;
	uint64_t now = e->world->now();
	bool crowded = now < e->waiting.crowded;
	if (!w->since) {
		w->since = now;
		pulse_add(e, PULSE_WAITS, 1);
		if (crowded) /* a collective call's `stop` tells others, before we sleep */
			return;
	}
	stuck_report(e, w, now - w->since);
	if (TERN_UNLIKELY(w->until && now >= w->until))
		return; /* its last step rests no more */
	lost_look(e);   /* a rank that never talked with us leaves without ringing */
	if (now - w->since < YIELD_NS && yield_unless_crowded(e, true)) {
		pulse_add(e, PULSE_YIELDS, 1);
		return;
	}
	if (now - w->since < NAPS_NS && !w->rest_ns && !crowded)
		wait_nap(e, w, within(w, now, NAP_NS));
	else if (w->bounded || e->owner.shared || /* what is shared another thread may answer */
		 (wait_scheduler && wait_scheduler->bounded()) || !wait_sleep(e, w))
		wait_nap(e, w, within(w, now, LONG_NAP_NS));
	pulse_go(e->pulse); /* after each step: only this call knows when the wait is over */
}
