/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing how messages are delivered, and changing it. */
#include "core/delivery.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "base/text.h"
#include "core/rules.h"
#include "core/scope.h"

static const char *const names[] = {
	[TERN_DELIVERY_POLL] = "poll",
	[TERN_DELIVERY_THREAD] = "thread",
	[TERN_DELIVERY_INTERRUPT] = "interrupt",
};

static int delivery_named(const char *text, enum tern_delivery *d)
{
	for (int i = TERN_DELIVERY_POLL; i <= TERN_DELIVERY_INTERRUPT; i++)
		if (strcmp(text, names[i]) == 0) {
			*d = (enum tern_delivery)i;
			return 0;
		}
	return error_set(
		-EINVAL,
		"TERN_DELIVERY is '%s'; it may be poll, thread or interrupt: did you mean %s?",
		text, nearest_name(text, names + 1, 3));
}

int delivery_judge(void)
{
	enum tern_delivery d;
	return delivery_named(setting_text(SETTING_DELIVERY), &d);
}

/* What the options ask for, or else the environment. */
static int delivery_chosen(const tern_options *o, enum tern_delivery *d)
{
	if (!o || o->delivery == TERN_DELIVERY_DEFAULT)
		return delivery_named(setting_text(SETTING_DELIVERY), d);
	if (o->delivery > TERN_DELIVERY_INTERRUPT)
		return error_set(-EINVAL,
				 "tern_options.delivery is %d, which is no way of delivery",
				 o->delivery);
	*d = o->delivery;
	return 0;
}

static int signal_chosen(const tern_options *o, int *signal)
{
	uint64_t number;
	int rc = setting_number(SETTING_SIGNAL, &number);
	if (!rc)
		*signal = o && o->signal ? o->signal : number < INT32_MAX ? (int)number : -1;
	return rc;
}

/*
 * Whether a thread shall serve memory messages: where a program polls, and some other rank, of
 * another process, is reached over a network that asks. Who has no membarrier would pay for it with
 * each call.
 */
static int serve_wanted(struct endpoint *e, enum tern_delivery d, bool *serves)
{
	uint64_t wanted;
	int rc = setting_number(SETTING_SERVE, &wanted);
	uint32_t far = 0;
	for (uint32_t r = 0; r < e->t->size; r++)
		far += r != e->t->rank && e->site.peer[r].net == e->net[e->nets - 1];
	*serves = !rc && wanted && d == TERN_DELIVERY_POLL && e->site.asks && far &&
		  e->group->size == 1 && e->owner.process_barrier && !e->trace && e->world->ticks;
	return rc;
}

/* Nobody has asked for the thread: without it, memory operations wait until the program polls. */
static void serve_open(struct endpoint *e)
{
	struct error_kept before, why;
	error_keep(&before);
	if (progress_open(e) == 0)
		return;
	error_keep(&why);
	error_restore(&before);
	e->owner.serves = false;
	error_warn("%s; operations of ranks on other machines on its memory wait until it polls "
		   "(TERN_SERVE=0 asks for no thread)",
		   why.text);
}

static int delivery_start(struct endpoint *e, enum tern_delivery d)
{
	int rc = serve_wanted(e, d, &e->owner.serves);
	if (rc)
		return rc;
	if (d == TERN_DELIVERY_THREAD && !e->world->ticks)
		return error_set(
			-ENOTSUP,
			"delivery by thread was asked for at rank %u, which is simulated: its "
			"machine runs one thread at a time; use TERN_DELIVERY=poll (a "
			"controller of the profile handles messages while the program computes)",
			e->t->rank);
	if (d == TERN_DELIVERY_INTERRUPT && e->site.mute)
		return error_set(-ENOTSUP,
				 "delivery by interrupt was asked for at rank %u, "
				 "whose network %s raises no signal; use TERN_DELIVERY=%s",
				 e->t->rank, e->net[e->nets - 1]->ops->name,
				 e->world->ticks ? "thread or poll" : "poll");
	if (d == TERN_DELIVERY_INTERRUPT && e->owner.shared)
		return error_set(
			-EINVAL,
			"rank %u is shared by threads and to be interrupted: a signal goes "
			"to one thread; deliver by thread, or let each thread have an endpoint",
			e->t->rank);
	if (d == TERN_DELIVERY_THREAD)
		rc = progress_open(e);
	else if (e->owner.serves)
		serve_open(e);
	else if (d == TERN_DELIVERY_INTERRUPT)
		rc = interrupt_open(e, e->owner.signal);
	if (!rc)
		e->owner.delivery = d;
	return rc;
}

/* Whether calls must open scopes, and what a hold must do besides. */
static void delivery_guard(struct endpoint *e)
{
	e->owner.guarded = e->owner.delivery != TERN_DELIVERY_POLL || e->owner.shared ||
			   e->owner.checked || e->owner.sliced || e->watched;
	e->owner.scoped = e->owner.guarded || e->owner.serves;
	e->t->guard = e->owner.shared ? &e->owner.scratch : e->owner.guard;
	e->owner.fenced = e->owner.delivery == TERN_DELIVERY_THREAD && !e->owner.process_barrier;
}

int delivery_open(struct endpoint *e, const tern_options *o)
{
	enum tern_delivery d = TERN_DELIVERY_POLL;
	uint64_t shared, check, membarrier;
	int rc = delivery_chosen(o, &d);
	if (!rc)
		rc = signal_chosen(o, &e->owner.signal);
	if (!rc)
		rc = setting_number(SETTING_SHARED, &shared);
	if (!rc)
		rc = setting_number(SETTING_CHECK, &check);
	if (!rc)
		rc = setting_number(SETTING_MEMBARRIER, &membarrier);
	if (rc)
		return rc;
	e->owner.checked = check != 0;
	if (e->owner.checked)
		misuse_watch();
	/* Registered here: that is cheap while there is one thread. */
	e->owner.process_barrier = membarrier && barrier_process_register();
	/* Until a thread has the endpoint; nobody else looks at it yet: any order would do. */
	atomic_store(&e->t->alert, ALERT_LIBRARY);
	if (shared || (o && o->shared))
		rc = share_open(e);
	if (!rc)
		rc = delivery_start(e, d);
	delivery_guard(e);
	return rc;
}

void delivery_worker(struct endpoint *e)
{
	e->owner.checked = e->main->owner.checked;
	e->owner.delivery = TERN_DELIVERY_POLL;
	atomic_store(&e->t->alert, ALERT_LIBRARY); /* as in delivery_open() */
	delivery_guard(e);
}

void delivery_begin(struct endpoint *e)
{
	if (e->owner.interrupt)
		interrupt_begin(e);
	if (!e->owner.shared && !e->owner.fenced && !e->owner.checked && !e->watchdog)
		alert_drop(e, ALERT_LIBRARY);
	/* 0: each send shall come to the library. */
	uint32_t reach = e->trace || e->owner.guarded ? 0 : e->t->size;
	if (reach != e->t->reach) /* not written in vain: threads that share it may be reading */
		e->t->reach = reach;
	if (e->owner.progress)
		progress_begin(e);
}

void delivery_slice(struct endpoint *e)
{
	e->owner.sliced = true;
	delivery_guard(e);
	if (e->t->reach) /* not written while it is 0: another thread may be reading it to attach */
		e->t->reach = 0;
}

void delivery_close(struct endpoint *e)
{
	progress_close(e);
	interrupt_close(e);
}

enum tern_delivery tern_delivery_get(const tern *t)
{
	return given(t)->own->owner.delivery;
}

static int delivery_allowed(struct endpoint *e, const char *call)
{
	int rc = rules_rank(e, call);
	if (!rc)
		rc = rules_outermost(e, call);
	if (!rc && e->threads)
		rc = error_set(-EBUSY,
			       "%s was called while rank %u has %u threads: join them first", call,
			       e->t->rank, e->threads);
	if (!rc && (held(e) || e->defer.running))
		rc = rule_broken(RULE_DELIVERY, "%s was called %s", call,
				 e->defer.running ? "in a deferred function" : "under a hold");
	return rc;
}

/* The old way is closed before the new one is opened, so that nobody but us acts meanwhile. */
static int delivery_change(struct endpoint *e, enum tern_delivery d)
{
	enum tern_delivery before = e->owner.delivery;
	delivery_close(e);
	/* As before a thread had it, and nobody else looks at it: any order would do. */
	atomic_store(&e->t->alert, ALERT_LIBRARY);
	e->owner.delivery = TERN_DELIVERY_POLL;
	int rc = delivery_start(e, d);
	if (rc)
		delivery_start(e, before);
	delivery_guard(e);
	delivery_begin(e);
	return rc;
}

int tern_delivery_set(tern *t, enum tern_delivery d)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = delivery_allowed(t->own, "tern_delivery_set()");
	if (!rc && (d < TERN_DELIVERY_POLL || d > TERN_DELIVERY_INTERRUPT))
		rc = error_set(-EINVAL, "%d is no way of delivery", (int)d);
	return rc || d == t->own->owner.delivery ? rc : delivery_change(t->own, d);
}

static int share_begin(struct endpoint *e)
{
	INSIDE struct scope scope = scope_open(e->t);
	int rc = delivery_allowed(e, "tern_worker_open()");
	if (!rc && (e->threaded || e->owner.delivery == TERN_DELIVERY_INTERRUPT))
		rc = error_set(-ENOTSUP,
			       "opening a worker of rank %u: it reaches others over %s, where "
			       "workers take turns at its endpoint, which %s",
			       e->t->rank, e->net[e->nets - 1]->ops->name,
			       e->threaded ? "starts threads and stays with the one that has it"
					   : "interrupts the one that has it");
	if (!rc)
		rc = share_open(e);
	if (rc)
		return rc;
	if (scope.e)
		share_lock(e); /* as if it had been opened with it: its end gives the lock back */
	return delivery_change(e, e->owner.delivery);
}

int delivery_share(struct endpoint *e)
{
	if (!attach_is_mine(e))
		attach_first(e);
	if (attach_is_mine(e))
		return share_begin(e);
	return error_set(-EPERM,
			 "opening a worker of rank %u: it reaches others over %s, where workers "
			 "take turns at its endpoint; let the thread that has the endpoint open "
			 "the first one",
			 e->t->rank, e->net[e->nets - 1]->ops->name);
}
