/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread: it delivers an endpoint's messages while its program
 * computes. It owns the endpoint while messages flow; it naps while the program calls often, since
 * the program then serves itself; it sleeps until a bell rings while nothing happens.
 *
 * In an endpoint that is polled the same thread may serve (endpoint.serves): it claims ownership as
 * it does elsewhere, but handles those requests that came over the network and may be served
 * (layer_serve()), and leaves everything else where it lies. It runs none of the program's
 * handlers, so neither holds nor messages of shared memory are its business.
 */
#include "core/delivery.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "core/scope.h"
#include "endpoint/count.h"
#include "endpoint/watched.h"

enum {
	NAP_LEAST_NS = 50000, /* between two looks at whether the program computes, at first, */
	NAP_MOST_NS = 1000000,
	SERVE_NAP_NS = 4000000, /* where memory messages alone may have to wait for it */
	LINGER_NS = 500000,     /* of silence, looking, before a sleep, on a core of its own */
	LOOKS = 64,             /* at the rings between two looks at the clock */
	SLEEP_NS = 100000000, /* a bound, so that even a rank that left without a word is noticed */
};

/* What the thread is to do; a futex. */
enum order { ORDER_WAIT, ORDER_SERVE, ORDER_END };

struct progress {
	pthread_t thread;
	_Atomic uint32_t order;
	_Atomic uint32_t dozing; /* the program sleeps inside a call */
	_Atomic uint32_t parked; /* until it does not any more; a futex */
	bool own_core;
	uint64_t nap;
	struct sleep sleep; /* what it sleeps on; written by the owner */
	int wake;       /* an eventfd that ends its sleep on descriptors; -1: it sleeps on bells */
	uint64_t heard; /* when it last handled something */
};

/*
 * Whose progress thread this thread is. Not a field of struct progress: others ask while that is
 * being closed.
 */
static _Thread_local __attribute__((tls_model("initial-exec"))) const struct endpoint *progress_of;

bool progress_is_me(const struct endpoint *e)
{
	return progress_of == e;
}

void progress_forget(void)
{
	progress_of = NULL;
}

static bool progress_ends(const struct endpoint *e)
{
	return atomic_load_explicit(&e->owner.progress->order, memory_order_acquire) == ORDER_END;
}

/* -- Ownership ------------------------------------------------------------------------------ */

static void progress_disarm(struct endpoint *e)
{
	if (e->owner.serves)
		net_disarm(e->net[e->nets - 1]);
	else
		endpoint_disarm(e);
}

/*
 * Puts `bits` in the place of CLAIM, in one step, and wakes a program that sleeps for that.
 * alert.R6, release; the default order costs no more, since the instruction is locked.
 */
static void claim_end(struct endpoint *e, uint32_t bits)
{
	uint32_t was = tern_alerted_(e->t);
	while (!atomic_compare_exchange_weak(&e->t->alert, &was,
					     (was & ~(ALERT_CLAIM | ALERT_SLEEPER)) | bits))
		;
	if (was & ALERT_SLEEPER)
		futex_wake32(&e->t->alert);
}

/* No handler of the program's ran while it served, so the guard is as the program left it. */
static void ownership_drop(struct endpoint *e, uint32_t bits)
{
	if (!e->owner.serves)
		e->owner.by_progress = false;
	claim_end(e, e->owner.serves ? bits : bits | ALERT_REGAIN);
}

/* What keeps the thread out: calls of the program, and holds if handlers might run. */
static uint32_t program_busy(const struct endpoint *e)
{
	return e->owner.serves ? guard_busy(e) & GUARD_MASK : guard_busy(e);
}

static bool ownership_claim(struct endpoint *e)
{
	alert_raise(e, ALERT_CLAIM);
	if (e->owner.fenced)
		atomic_thread_fence(memory_order_seq_cst);
	else
		barrier_process();
	if (program_busy(e)) {
		claim_end(e, e->owner.serves ? 0 : ALERT_PENDING);
		return false;
	}
	if (!e->owner.serves) {
		e->owner.by_progress = true;
		e->owner.progress_holds = 0;
	}
	pulse_add(e, PULSE_CLAIMS, 1);
	if (alert_drop(e, ALERT_ASLEEP) & ALERT_ASLEEP)
		progress_disarm(e);
	return true;
}

static bool ownership_wanted(const struct endpoint *e)
{
	return program_busy(e) || tern_alerted_(e->t) & ALERT_SLEEPER || progress_ends(e);
}

/* -- Watching ------------------------------------------------------------------------------- */

/*
 * The program sleeps inside a call and serves itself. A bounded wait: closing wakes it, but may
 * come in between.
 */
static void progress_park(struct endpoint *e)
{
	struct progress *a = e->owner.progress;
	/*
	 * Either we see that it sleeps no more, or it sees, having woken, that we are parked. Both
	 * store one word and then load the other: that needs the default order.
	 */
	atomic_store(&a->parked, 1);
	if (atomic_load(&a->dozing))
		world_wait(&a->parked, 1, SLEEP_NS);
	atomic_store(&a->parked, 0);
}

/* The next nap is longer. */
static void progress_nap_longer(const struct endpoint *e)
{
	struct progress *a = e->owner.progress;
	uint64_t most = e->owner.serves ? SERVE_NAP_NS : NAP_MOST_NS;
	a->nap = a->nap * 2 < most ? a->nap * 2 : most;
}

/* Grows when the program calls; where memory alone is served, when it asks the network. */
static uint64_t program_came(const struct endpoint *e)
{
	return e->owner.serves ? stats_get(&e->pulse->count[PULSE_BELLS]) : guard_entries(e);
}

/* Returns when the program has not come for a whole nap, and is not inside: it computes. */
static void progress_watch(struct endpoint *e)
{
	struct progress *a = e->owner.progress;
	for (uint64_t entries = program_came(e); !progress_ends(e);) {
		e->world->nap(a->nap);
		uint64_t now = program_came(e);
		if (now == entries && !program_busy(e))
			break;
		/* It may only hold and release, and something may have arrived. */
		if (!e->owner.serves)
			alert_raise(e, ALERT_PENDING);
		if (now == entries && atomic_load(&a->dozing))
			progress_park(e);
		entries = now;
		progress_nap_longer(e);
	}
}

/* -- Serving -------------------------------------------------------------------------------- */

/* A handler that leaves a hold would keep the program's messages from it. */
static void progress_end_holds(struct endpoint *e)
{
	if (!e->owner.progress_holds)
		return;
	e->owner.progress_holds = 0;
	poll_trouble_warn(e, error_set(-EPERM,
				       "a handler of rank %u left a hold, "
				       "which ends with the handler in thread delivery",
				       e->t->rank));
}

/* Looks for a while; true as soon as something is there, or somebody wants ownership. */
static bool progress_linger(struct endpoint *e)
{
	/* A bell wakes sooner than a core that was yielded comes back. */
	if (!e->owner.progress->own_core)
		return false;
	if (e->site.asks) /* to look is to poll */
		return e->world->now() - e->owner.progress->heard < LINGER_NS;
	uint64_t end = e->world->now() + LINGER_NS;
	do {
		for (int i = 0; i < LOOKS; i++) {
			if (pollset_find(&e->site, &e->site.bell))
				return true;
			cpu_relax();
		}
		if (ownership_wanted(e))
			return true;
	} while (e->world->now() < end);
	return false;
}

static bool progress_arm(struct endpoint *e)
{
	struct net *asking = e->net[e->nets - 1];
	struct progress *a = e->owner.progress;
	a->sleep = (struct sleep){ .says = BELL_ASLEEP | BELL_PROGRESS,
				   .serving = e->owner.serves,
				   .wake = a->wake < 0 ? NULL : &a->wake };
	bool armed =
		e->owner.serves ? asking->ops->arm(asking, &a->sleep) : endpoint_arm(e, &a->sleep);
	if (!armed)
		progress_disarm(e);
	else if (!e->owner.serves)
		e->site.peek = &e->site.bell;
	return armed;
}

/*
 * With the bell armed: until it rings, or the program has come in. True if ownership was claimed
 * after that.
 */
static bool progress_sleep(struct endpoint *e)
{
	struct progress *a = e->owner.progress;
	eventfd_t count;
	ownership_drop(e, ALERT_ASLEEP);
	e->world->sleep(&a->sleep, SLEEP_NS);
	if (a->wake >= 0)
		eventfd_read(a->wake, &count);
	return tern_alerted_(e->t) & ALERT_ASLEEP && ownership_claim(e);
}

/* Takes in what has arrived; true if more may have by now. */
static bool progress_look(struct endpoint *e)
{
	unsigned handled = e->owner.serves ? served_poll(e, true) : poll_once(e, KINDS_BOTH);
	progress_end_holds(e);
	if (handled) {
		e->owner.progress->nap = NAP_LEAST_NS;
		e->owner.progress->heard = e->world->now();
	}
	return handled || (!e->owner.serves && (e->deferred_count || progress_linger(e)));
}

/*
 * Serves from a claim until somebody else wants ownership, sleeping while there is nothing to do.
 */
static void progress_serve(struct endpoint *e)
{
	bool serves = e->owner.serves;
	while (!ownership_wanted(e)) {
		if (progress_look(e))
			continue;
		/* Not if a layer waits for room; nor has every machine such a sleep. */
		bool armed = (serves || !e->work) && progress_arm(e);
		/* Arming looks at the network once more: what that brought is served first. */
		if (serves && served_poll(e, false)) {
			progress_disarm(e);
			continue;
		}
		if (!armed && !serves && pollset_waits(&e->site))
			continue;
		if (armed && progress_sleep(e))
			continue;
		if (serves || !armed) /* the program may come often, though not for the network */
			progress_nap_longer(e);
		if (armed) /* somebody else has ownership */
			return;
		break;
	}
	ownership_drop(e, 0);
}

static void *progress_main(void *arg)
{
	struct endpoint *e = arg;
	struct progress *a = e->owner.progress;
	progress_of = e;
	if (e->watched)
		watched_enter();
	prctl(PR_SET_NAME, e->owner.serves ? "tern-serve" : "tern-progress");
	prctl(PR_SET_TIMERSLACK, 1L);
	while (atomic_load(&a->order) == ORDER_WAIT)
		world_wait(&a->order, ORDER_WAIT, SLEEP_NS);
	while (!progress_ends(e)) {
		progress_watch(e);
		if (progress_ends(e) || !ownership_claim(e))
			continue;
		progress_serve(e);
	}
	if (e->watched)
		watched_leave();
	return NULL;
}

/* -- For the program ------------------------------------------------------------------------- */

void progress_relieve(struct endpoint *e)
{
	const struct progress *a = e->owner.progress;
	if (!(alert_drop(e, ALERT_ASLEEP) & ALERT_ASLEEP))
		return;
	progress_disarm(e);
	if (a->wake >= 0)
		eventfd_write(a->wake, 1);
	for (unsigned i = 0; a->wake < 0 && i < a->sleep.bells; i++)
		futex_wake(a->sleep.bell[i]);
}

void progress_doze(struct endpoint *e)
{
	if (e->owner.progress)
		atomic_store(&e->owner.progress->dozing, 1);
}

void progress_rouse(struct endpoint *e)
{
	struct progress *a = e->owner.progress;
	if (!a)
		return;
	atomic_store(&a->dozing, 0);
	if (atomic_exchange(&a->parked, 0))
		futex_wake32(&a->parked);
}

static int progress_core(int *core)
{
	uint64_t wanted;
	*core = -1;
	if (!*setting_text(SETTING_AGENT_CORE))
		return 0;
	int rc = setting_number(SETTING_AGENT_CORE, &wanted);
	if (!rc && wanted >= CPU_SETSIZE)
		rc = error_set(-EINVAL, "TERN_AGENT_CORE=%s is not the number of a core",
			       setting_text(SETTING_AGENT_CORE));
	if (!rc)
		*core = (int)wanted;
	return rc;
}

/* All signals are the program's. */
static int progress_start(struct endpoint *e, int core)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	cpu_set_t cores;
	pthread_attr_init(&attributes);
	if (core >= 0) {
		CPU_ZERO(&cores);
		CPU_SET((unsigned)core, &cores);
		pthread_attr_setaffinity_np(&attributes, sizeof cores, &cores);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&e->owner.progress->thread, &attributes, progress_main, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (!error)
		return 0;
	char where[24] = "";
	if (core >= 0)
		snprintf(where, sizeof where, " on core %d", core);
	return error_set(-error, "rank %u's progress thread could not be started%s: %s", e->t->rank,
			 where, strerror(error));
}

static void progress_free(struct endpoint *e)
{
	if (e->owner.progress->wake >= 0)
		close(e->owner.progress->wake);
	free(e->owner.progress);
	e->owner.progress = NULL;
}

int progress_open(struct endpoint *e)
{
	int core;
	int rc = progress_core(&core);
	if (rc)
		return rc;
	const struct job_head *head = e->group->job.head;
	struct progress *a = e->owner.progress = calloc(1, sizeof *a);
	if (!a)
		return error_set(-ENOMEM, "starting the progress thread of rank %u: no memory",
				 e->t->rank);
	a->nap = NAP_LEAST_NS;
	a->own_core = core >= 0 || (head->cores >= 2 * head->here && cpu_count() > 1);
	/* Where a network is asked, sleeps are on descriptors. */
	a->wake = e->site.asks ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (e->site.asks && a->wake < 0)
		rc = error_set(-errno, "starting the progress thread of rank %u: %s", e->t->rank,
			       strerror(errno));
	else
		rc = progress_start(e, core);
	if (rc)
		progress_free(e);
	return rc;
}

/* The default order: once in the life of the thread. */
static void progress_order(struct progress *a, enum order order)
{
	atomic_store(&a->order, order);
	futex_wake32(&a->order);
}

void progress_begin(struct endpoint *e)
{
	progress_order(e->owner.progress, ORDER_SERVE);
}

void progress_close(struct endpoint *e)
{
	if (!e->owner.progress)
		return;
	progress_order(e->owner.progress, ORDER_END);
	progress_rouse(e);
	progress_relieve(e);
	pthread_join(e->owner.progress->thread, NULL);
	progress_free(e);
}
