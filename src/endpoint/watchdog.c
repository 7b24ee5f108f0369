/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that tells of handlers and holds that last too long, and ends the job. */
#include "endpoint/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/error.h"
#include "base/kernel.h"
#include "base/process.h"
#include "base/setting.h"
#include "endpoint/handler.h"

enum { LOOKS = 4 }; /* of the watchdog, within the time that it allows */

#define NOTHING (~UINT64_C(0))

/* What the endpoint does: written by whoever has it, read by the watchdog. */
struct deed {
	_Atomic uint64_t serial; /* changes with each handler, or hold */
	_Atomic uint64_t what;   /* the handler's number and whom the message is from, or NOTHING */
	_Atomic int32_t thread;  /* whose it is */
};

/* What the watchdog saw of a deed when it looked last. */
struct seen {
	uint64_t serial;
	uint64_t now, ran; /* the time, and how long the thread had been on a core */
	uint64_t lasted;   /* so far, as far as it counts */
	bool told;
};

struct watchdog {
	struct endpoint *e;
	uint64_t limit_ns;
	void (*end)(tern *t, int status); /* NULL: it only tells */
	pthread_t thread;
	_Atomic uint32_t stop; /* a futex; the default order, once in the life of the thread */
	struct deed handling, holding;
};

/* -- In the endpoint's thread ------------------------------------------------------------------ */

static int32_t thread_self(void)
{
	static _Thread_local int32_t self;
	if (!self)
		self = thread_id();
	return self;
}

static void deed_begin(struct deed *d, uint64_t what)
{
	atomic_store_explicit(&d->thread, thread_self(), memory_order_relaxed);
	atomic_store_explicit(&d->serial,
			      atomic_load_explicit(&d->serial, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&d->what, what, memory_order_release);
}

uint64_t watchdog_handles(struct endpoint *e, const tern_msg *m)
{
	struct deed *d = &e->watchdog->handling;
	uint64_t before = atomic_load_explicit(&d->what, memory_order_relaxed);
	deed_begin(d, (uint64_t)tern_msg_src(m) << 32 | handler_of(m));
	return before;
}

void watchdog_handled(struct endpoint *e, uint64_t before)
{
	deed_begin(&e->watchdog->handling, before);
}

void watchdog_hold(struct endpoint *e)
{
	deed_begin(&e->watchdog->holding, 0);
}

/* -- In the watchdog's --------------------------------------------------------------------- */

/*
 * Ranks whose messages lie unhandled, in words. Read while the endpoint goes on, or does not: each
 * pointer is whole and points into its ring, and a word too many or too few is no harm.
 */
__attribute__((no_sanitize("thread"))) static bool inlet_waits(const struct tern_inlet *in)
{
	const char *at = *(char *volatile const *)&in->cursor;
	uint64_t expect = *(volatile const uint64_t *)&in->expect;
	return at && in->base &&
	       (*(volatile const uint64_t *)(const void *)at ^ expect) >> TERN_LAP_SHIFT == 0;
}

static void list_ranks_waiting(const struct endpoint *e, char *text, size_t room)
{
	size_t used = 0;
	unsigned more = 0;
	*text = '\0';
	for (uint32_t r = 0; r < e->t->size; r++) {
		const struct peer *p = &e->site.peer[r];
		if (!inlet_waits(&p->requests) && !inlet_waits(&p->replies))
			continue;
		if (used + 16 > room)
			more++;
		else
			used += (size_t)snprintf(text + used, room - used, "%s%u", used ? ", " : "",
						 r);
	}
	if (more)
		snprintf(text + used, room - used, " and %u more", more);
}

static void watchdog_tell(struct watchdog *w, const char *what, uint64_t ns)
{
	char waiting[200];
	list_ranks_waiting(w->e, waiting, sizeof waiting);
	error_warn("rank %u: %s for %llu ms; %s%s%s%s", w->e->t->rank, what,
		   (unsigned long long)(ns / 1000000),
		   *waiting ? "messages from rank " : "no message", waiting,
		   *waiting ? " wait behind it" : " waits behind it",
		   w->end ? "; the job ends (TERN_WATCHDOG)" : "");
	if (w->end)
		w->end(w->e->t, EX_SOFTWARE);
}

/* Of the time since the last look, what counts. A simulated world has no cores to wait for. */
static uint64_t seen_add(const struct seen *g, uint64_t now, uint64_t ran, int32_t thread,
			 bool real)
{
	uint64_t passed = now - g->now, on_core = ran - g->ran;
	if (!real || on_core >= passed)
		return passed;
	char state = thread_state(thread);
	return state == 'S' || state == 'D' ? passed : on_core;
}

/* How long the deed has lasted when that is worth telling, else 0. Once for each. */
static uint64_t deed_lasts_too_long(struct watchdog *w, struct seen *g, const struct deed *d,
				    bool lasts)
{
	const struct world *world = w->e->world;
	uint64_t serial = atomic_load_explicit(&d->serial, memory_order_relaxed);
	int32_t thread = atomic_load_explicit(&d->thread, memory_order_relaxed);
	uint64_t now = world->now(), ran = lasts && world->ticks ? thread_ran(thread) : 0;
	if (!lasts || serial != g->serial) {
		*g = (struct seen){ .serial = serial, .now = now, .ran = ran };
		return 0;
	}
	g->lasted += seen_add(g, now, ran, thread, world->ticks);
	g->now = now;
	g->ran = ran;
	if (g->told || g->lasted < w->limit_ns)
		return 0;
	g->told = true;
	return g->lasted;
}

static void watchdog_look_at_handler(struct watchdog *w, struct seen *g)
{
	uint64_t what = atomic_load_explicit(&w->handling.what, memory_order_acquire);
	uint64_t ns = deed_lasts_too_long(w, g, &w->handling, what != NOTHING);
	char text[64 + LABEL_ROOM], label[LABEL_ROOM];
	unsigned id = (unsigned)what, from = (unsigned)(what >> 32);
	if (!ns)
		return;
	snprintf(text, sizeof text, "%s, of a message from rank %u, runs",
		 handler_label(w->e, id, label), from);
	watchdog_tell(w, text, ns);
}

static void watchdog_look_at_hold(struct watchdog *w, struct seen *g)
{
	uint64_t holds =
		atomic_load_explicit(w->e->owner.guard, memory_order_relaxed) >> 16 & GUARD_MASK;
	uint64_t ns = deed_lasts_too_long(w, g, &w->holding, holds != 0);
	if (ns)
		watchdog_tell(w, "its program has held", ns);
}

static void *watchdog_main(void *arg)
{
	struct watchdog *w = arg;
	struct seen handler = { 0 }, hold = { 0 };
	while (!atomic_load(&w->stop)) {
		world_wait(&w->stop, 0, w->limit_ns / LOOKS);
		watchdog_look_at_handler(w, &handler);
		watchdog_look_at_hold(w, &hold);
	}
	return NULL;
}

/* -- Opening and closing ------------------------------------------------------------------- */

static int watchdog_start(struct watchdog *w)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&w->thread, NULL, watchdog_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? error_set(-error, "rank %u's watchdog could not be started: %s",
				 w->e->t->rank, strerror(error))
		     : 0;
}

int watchdog_open(struct endpoint *e, void (*end)(tern *t, int status))
{
	uint64_t ms, ends;
	int rc = setting_number(SETTING_WATCHDOG, &ms);
	if (!rc)
		rc = setting_number(SETTING_WATCHDOG_END, &ends);
	if (rc || !ms)
		return rc;
	struct watchdog *w = calloc(1, sizeof *w);
	if (!w)
		return error_set(-ENOMEM, "rank %u's watchdog: no memory", e->t->rank);
	w->e = e;
	w->limit_ns = ms * 1000000;
	w->end = ends ? end : NULL;
	w->handling.what = NOTHING;
	rc = watchdog_start(w);
	if (rc)
		free(w);
	else
		e->watchdog = w;
	return rc;
}

void watchdog_close(struct endpoint *e)
{
	struct watchdog *w = e->watchdog;
	if (!w)
		return;
	atomic_store(&w->stop, 1);
	futex_wake32(&w->stop);
	pthread_join(w->thread, NULL);
	free(w);
	e->watchdog = NULL;
}
