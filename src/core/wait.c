/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base control */
#include "core/wait.h"

#include <errno.h>
#include <stdio.h>

#include "base/cpu.h"
#include "base/error.h"
#include "core/layer.h"
#include "core/stats.h"
#include "core/trace.h"

enum {
	SIBLINGS_EVERY = 64, /* steps that handled something, between two rounds of the other endpoints */
	STREAM = 8,          /* messages handled at a time that make a stream */
	LINGER = 128,        /* pauses that let it run ahead */
	LOOKS = 16,          /* between two rounds of the thread's other endpoints */
	YIELD_NS = 300000,   /* after looking: how long to yield, */
	NAPS_NS = 1500000,   /* and how long to nap before sleeping */
	NAP_NS = 50000,
	LONG_NAP_NS = 500000,
	SETTLE_MOST = 1000,   /* steps in which a barrier handles what has arrived */
	SLEEP_NS = 100000000, /* a bound, so that even a rank that left without a word is noticed */
};

static unsigned serve_sibling(struct endpoint *sibling, void *arg)
{
	(void)arg;
	return sibling->hold || in_handler(sibling) ? 0 : poll_once(sibling, KINDS_BOTH);
}

/* Nonzero if it cannot be slept on: something is there, or another thread may take it any moment. */
static unsigned arm_sibling(struct endpoint *sibling, void *arg)
{
	if (attach_is_lent(sibling) || in_handler(sibling) || sibling->work || sibling->deferred_count)
		return 1;
	for (unsigned i = 0; i < sibling->nets; i++)
		if (!sibling->net[i]->ops->arm(sibling->net[i], arg))
			return 1;
	return 0;
}

static unsigned disarm_sibling(struct endpoint *sibling, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < sibling->nets; i++)
		sibling->net[i]->ops->disarm(sibling->net[i]);
	if (!sibling->hold)
		sibling->t->peek = &sibling->site.bell;
	return 0;
}

/* In words, for whoever looks at the job from outside. */
static void wait_show(struct endpoint *e, const struct ladder *l, bool asleep)
{
	char text[PULSE_TEXT], id[24] = "", whom[32] = "";
	if (l->has_id)
		snprintf(id, sizeof id, " %#llx", (unsigned long long)l->id);
	if (l->way)
		snprintf(whom, sizeof whom, l->whom ? " %s rank %u" : " %s any rank", l->way, l->whom - 1);
	snprintf(text, sizeof text, "%s%s%s%s%s", l->call ? l->call : "a call", id, whom, l->lack ? ": " : "",
		 l->lack ? l->lack : "");
	pulse_wait(e->pulse, text, l->whom, l->since, asleep);
}

static void wait_nap(struct endpoint *e, const struct ladder *l, uint64_t ns)
{
	wait_show(e, l, false);
	pulse_add(e, PULSE_NAPS, 1);
	e->world->nap(ns);
}

/* True if it slept: everything was armed, nothing had arrived and the wait was not over. */
static bool wait_sleep(struct endpoint *e, struct ladder *l)
{
	struct sleep s = { .bells = 0 };
	if (e->trace)
		trace_flush(e); /* there is time, and the rank may be killed in its sleep */
	bool quiet = arm_sibling(e, &s) == 0 && attach_each(e, arm_sibling, &s) == 0 && s.bells;
	if (quiet && !(l->over && l->over(e, l->arg))) {
		uint64_t began = e->world->now();
		wait_show(e, l, true);
		e->world->sleep(&s, SLEEP_NS);
		pulse_add(e, PULSE_SLEEPS, 1);
		pulse_add(e, PULSE_SLEPT, e->world->now() - began);
	}
	disarm_sibling(e, NULL);
	attach_each(e, disarm_sibling, NULL);
	return quiet;
}

/*
 * Looks at the circle's headers and nothing else, a few times: calling the poll for
 * each look would cost a twentieth of a round trip. True if something is there.
 */
static struct tern_inlet *wait_look(struct endpoint *e, struct ladder *l)
{
	for (int i = 0; i < LOOKS && l->looks < e->spin && !e->work; i++, l->looks++) {
		struct tern_inlet *in = circle_find(&e->site, e->t->peek);
		if (in)
			return in;
		cpu_relax();
	}
	return circle_find(&e->site, e->t->peek);
}

/* Once in a wait: says what is under way, when it has taken as long as the user wants to bear. */
static void wait_report(struct endpoint *e, struct ladder *l, uint64_t now)
{
	if (!e->stuck_ns || l->told || now - l->since < e->stuck_ns)
		return;
	l->told = true;
	error_warn("rank %u has waited for %llu s", e->t->rank,
		   (unsigned long long)((now - l->since) / 1000000000));
	layers_report(e, 2);
}

static void wait_idle(struct endpoint *e, struct ladder *l)
{
	const struct world *w = e->world;
	if (l->looks++ < e->spin) /* counts here too: what is there may be waiting for room for its reply */
		return;
	uint64_t now = w->now();
	if (!l->since) {
		l->since = now;
		pulse_add(e, PULSE_WAITS, 1);
	}
	wait_report(e, l, now);
	if (poll_left(e))
		poll_lost(e); /* a rank that never talked with us leaves without ringing */
	if (now - l->since < YIELD_NS) {
		pulse_add(e, PULSE_YIELDS, 1);
		w->yield();
		return;
	}
	if (now - l->since < NAPS_NS)
		wait_nap(e, l, NAP_NS);
	else if (l->bounded || !wait_sleep(e, l))
		wait_nap(e, l, LONG_NAP_NS);
	pulse_go(e->pulse); /* after each step: only this call knows when the wait is over */
}

/*
 * Before the next look, when the last one left a line of pieces half read. The producer
 * is filling that line, and each look takes it away; in a stream, the consumer's
 * prefetcher also takes lines away that are about to be written, for as long as the
 * consumer stays close behind. So a stream is let run ahead, which doubles its rate;
 * whoever has what it waited for is not delayed, because this comes before a look and
 * not after a message.
 */
static uint32_t linger_of(const struct endpoint *e, const struct tern_inlet *in, unsigned handled)
{
	if (!in || (uintptr_t)in->cursor % TERN_LINE == 0 || !e->spin)
		return 0;
	return handled < STREAM ? 1 : LINGER;
}

static void wait_linger(struct ladder *l)
{
	for (; l->linger; l->linger--)
		cpu_relax();
}

static void wait_once(struct endpoint *e, struct ladder *l)
{
	wait_linger(l);
	struct tern_inlet *there = wait_look(e, l);
	unsigned handled = 0;
	if (there && !e->work)
		handled = poll_inlet(e, there);
	else if (l->since || e->work || e->deferred_count)
		handled = poll_once(e, KINDS_BOTH);
	/* Also when something lies here that waits for room for its reply: a sibling may have to make it. */
	if (!handled || ++l->busy % SIBLINGS_EVERY == 0)
		handled += attach_each(e, serve_sibling, NULL);
	if (!handled) {
		wait_idle(e, l);
		return;
	}
	l->linger = linger_of(e, there, handled);
	l->looks = 0;
	l->since = 0;
	l->quiet = 0;
}

void wait_step(struct endpoint *e, struct ladder *l)
{
	if (TERN_UNLIKELY(e->trace))
		trace_step(e, l);
	wait_once(e, l);
	if (TERN_UNLIKELY(e->trace))
		trace_stepped(e);
}

int wait_on(struct endpoint *e, struct ladder *l, const char *what)
{
	wait_step(e, l);
	return e->hold ? rules_wait(e, what) : 0;
}

/*
 * A dead rank that this endpoint has not forgiven; -1 if there is none. Ranks that
 * left well are missed only when no other is there any more to send anything.
 */
static int wait_missing(struct endpoint *e)
{
	bool alone = poll_left(e) + 1 >= e->t->size;
	for (uint32_t r = 0; r < e->t->size; r++)
		if (e->site.peer[r].lost && !e->site.peer[r].forgiven) {
			struct net *net = e->site.peer[r].net;
			if (alone || net->ops->check(net, r) == -EOWNERDEAD)
				return (int)r;
		}
	return -1;
}

int wait_blame(struct endpoint *e, struct ladder *l)
{
	if (!l->since || !poll_left(e))
		return 0;
	poll_lost(e);
	int missing = wait_missing(e);
	if (missing < 0)
		return 0;
	uint64_t now = e->world->now();
	if (!l->quiet)
		l->quiet = now;
	if (now - l->quiet < e->grace_ns)
		return 0;
	struct peer *p = &e->site.peer[missing];
	return p->net->ops->check(p->net, (uint32_t)missing);
}

struct flag {
	_Atomic uint64_t *value;
	uint64_t n;
};

static bool flag_reached(struct endpoint *e, void *arg)
{
	(void)e;
	struct flag *f = arg;
	return atomic_load_explicit(f->value, memory_order_acquire) >= f->n;
}

int tern_wait(tern *t, _Atomic uint64_t *value, uint64_t n)
{
	struct endpoint *e = t->own;
	struct flag f = { value, n };
	struct ladder l = { .what = WAIT_FLAG, .over = flag_reached, .arg = &f, .call = "tern_wait" };
	int rc = rules_wait(e, "tern_wait()");
	while (!rc && !flag_reached(e, &f)) {
		wait_step(e, &l);
		rc = e->hold ? rules_wait(e, "tern_wait()")
			     : wait_blame(e, &l); /* a handler may have left a hold */
	}
	if (rc)
		return rc;
	/* Not locked: handlers that signal run on this thread. */
	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) - n,
			      memory_order_relaxed);
	return 0;
}

int tern_forgive(tern *t, uint32_t rank)
{
	int rc = rules_destination(t->own, rank);
	if (!rc)
		t->own->site.peer[rank].forgiven = true;
	return rc;
}

/* -- Barrier ------------------------------------------------------------------------ */

struct tickets {
	uint64_t ticket[NETS_MAX];
};

static bool barrier_passed(struct endpoint *e, void *arg)
{
	struct tickets *k = arg;
	for (unsigned i = 0; i < e->nets; i++)
		if (!e->net[i]->ops->passed(e->net[i], k->ticket[i]))
			return false;
	return true;
}

/* Whether `rank` has been through the barrier that the tickets are for; nobody has, without any. */
static bool barrier_behind(struct endpoint *e, uint32_t rank, const struct tickets *k)
{
	struct net *net = e->site.peer[rank].net;
	for (unsigned i = 0; k && i < e->nets; i++)
		if (e->net[i] == net)
			return net->ops->had_passed && net->ops->had_passed(net, rank, k->ticket[i]);
	return false;
}

/* A barrier needs everybody, so whoever has left before it ends it at once. */
static int barrier_missing(struct endpoint *e, const struct tickets *k)
{
	if (!poll_left(e))
		return 0;
	for (uint32_t r = 0; r < e->t->size; r++) {
		struct net *net = e->site.peer[r].net;
		int rc = net->ops->check(net, r);
		if (rc && !barrier_behind(e, r, k))
			return rc;
	}
	return 0;
}

/*
 * Handles what was sent here before the barrier: it has all arrived, though
 * requests may still wait for room for their replies. Bounded, because peers that
 * are past the barrier may send without end.
 */
static void barrier_settle(struct endpoint *e)
{
	struct ladder l = { .bounded = true, .call = "tern_barrier" };
	for (int i = 0; i < SETTLE_MOST && circle_waits(&e->site); i++)
		if (!poll_once(e, KINDS_BOTH))
			wait_step(e, &l);
}

static int barrier_pass(struct endpoint *e)
{
	struct tickets k;
	struct ladder l = { .over = barrier_passed, .arg = &k, .call = "tern_barrier" };
	for (unsigned i = 0; i < e->nets; i++)
		k.ticket[i] = e->net[i]->ops->arrive(e->net[i]);
	while (!barrier_passed(e, &k)) {
		wait_step(e, &l);
		if (!l.since || barrier_passed(e, &k))
			continue;
		int rc = barrier_missing(e, &k);
		if (rc && !barrier_passed(e, &k)) /* whoever passed and left raised the generation first */
			return rc;
	}
	barrier_settle(e);
	return 0;
}

int tern_barrier(tern *t)
{
	struct endpoint *e = t->own;
	int rc = rules_wait(e, "tern_barrier()");
	if (!rc)
		rc = barrier_missing(e, NULL); /* before taking a ticket: it could complete a later round */
	if (rc)
		return rc;
	if (TERN_UNLIKELY(e->trace))
		trace_barrier(e, RECORD_BARRIER);
	rc = barrier_pass(e);
	if (TERN_UNLIKELY(e->trace))
		trace_barrier(e, RECORD_PASSED);
	return rc;
}
