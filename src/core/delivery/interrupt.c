/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delivery by interrupt: handlers run on the thread that computes, as if it had called them,
 * from a signal that the user has allotted. Senders send it to a rank whose bell says so; a
 * timer with the same signal finds out when a program has stopped calling and arms the bell.
 */
#include "core/delivery.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/kernel.h"
#include "core/scope.h"
#include "endpoint/count.h"

enum {
	/* A program that has not called for so long computes: at first, and if it calls often. */
	TICK_LEAST_NS = 100000,
	TICK_MOST_NS = 1000000,
	TURN_NS = 200000, /* the longest an interrupt handles a stream that does not end, */
	REST_NS = 200000, /* and what the program then has to itself */
	SIGNAL_NS = 2000, /* what a signal takes of the program besides its handler */
};

struct interrupt {
	struct interrupt *next; /* of all that this process has had; used again, never freed */
	/* The thread that is interrupted; 0 before that begins, and after it has ended. */
	_Atomic int32_t thread;
	_Atomic bool busy;  /* its handlers run */
	_Atomic bool taken; /* by an endpoint */
	struct endpoint *e;
	int signal;
	timer_t timer;
	bool timed;    /* there is a timer */
	bool ticking;  /* and it has been started */
	uint64_t tick; /* its time */
	/* When the last interrupt was over, and by how much they outweigh the program. */
	uint64_t ended, debt;
	uint32_t entries; /* of the guard, when it was started */
};

/*
 * A signal's handler runs through all of them and serves those of its thread; few processes have
 * more than one. Whoever ends one, maybe from another thread, first takes it from its thread and
 * then waits until it is not busy; the handler says that it is busy and then looks once more whose
 * it is. Both store one word and then load the other, which needs the default order of `thread` and
 * `busy`; the list has the default order too, because its cost disappears beside that of a signal.
 */
static _Atomic(struct interrupt *) all;
/*
 * The one that this thread serves right now; in memory that a signal's handler can touch without
 * allocating it.
 */
static _Thread_local __attribute__((tls_model("initial-exec"))) const struct interrupt *running;

/* -- The timer ------------------------------------------------------------------------------ */

static void tick_start(struct interrupt *i, uint64_t ns)
{
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ns / 1000000000),
						 .tv_nsec = (long)(ns % 1000000000) } };
	i->entries = guard_entries(i->e);
	i->ticking = i->timed; /* first: it may be over before the call is */
	if (i->timed && timer_settime(i->timer, 0, &when, NULL) != 0)
		i->ticking = false;
}

static uint64_t tick_longer(struct interrupt *i)
{
	return i->tick = i->tick * 2 < TICK_MOST_NS ? i->tick * 2 : TICK_MOST_NS;
}

void interrupt_left(struct endpoint *e)
{
	struct interrupt *i = e->owner.interrupt;
	/* No bell rings for work that was handed over, and for what is pending it has rung. */
	bool armed = e->owner.armed && !e->work && !(tern_alerted_(e->t) & ALERT_PENDING);
	if (i && atomic_load_explicit(&i->thread, memory_order_relaxed) && !i->ticking && !armed)
		tick_start(i, i->tick);
}

/* -- The signal ----------------------------------------------------------------------------- */

/*
 * A network wants to be asked by then, though nothing arrives. The timer does not count as started:
 * what the program does next may need it earlier.
 */
static void tick_due(struct interrupt *i, uint64_t due)
{
	uint64_t now = i->e->world->now();
	tick_start(i, due > now ? due - now : 1);
	i->ticking = false;
}

static bool interrupt_arm(struct interrupt *i)
{
	struct endpoint *e = i->e;
	struct sleep s = { .says = BELL_CALL,
			   .signal = i->signal,
			   .thread = atomic_load(&i->thread) };
	if (!endpoint_arm(e, &s))
		return false;
	e->site.peek = &e->site.bell;
	if (s.until)
		tick_due(i, s.until);
	return e->owner.armed = true;
}

/*
 * Handles what there is until nothing comes any more and the bell is armed. A stream without
 * an end is left after a while, to the timer, so that the program gets on too; and so is work that
 * waits for something which rings no bell.
 */
static void interrupt_serve(struct interrupt *i)
{
	struct endpoint *e = i->e;
	for (uint64_t end = 0;;) {
		bool handled = poll_once(e, KINDS_BOTH) || e->deferred_count;
		if (handled)
			i->tick = TICK_LEAST_NS;
		if (!handled && !e->work && (e->owner.armed || interrupt_arm(i)))
			return;
		uint64_t now = e->world->now();
		end = end ? end : now + TURN_NS;
		if (handled && now < end)
			continue;
		/* That is why it could not be armed; but it may wait for room for its reply. */
		if (!handled && !e->work && now < end && pollset_waits(&e->site))
			continue;
		tick_start(i, handled ? REST_NS : tick_longer(i));
		return;
	}
}

/*
 * Whether the program has called since the timer was started, and so will call again. What has
 * arrived is handled all the same: it may have called under holds.
 */
static bool tick_found_calls(struct interrupt *i)
{
	if (guard_entries(i->e) == i->entries)
		return false;
	poll_once(i->e, KINDS_BOTH);
	tick_start(i, tick_longer(i));
	return true;
}

/*
 * Interrupts that come one after another leave the program nothing. When they have taken so much
 * more time than it had, senders are told not to call, and the timer comes in their place.
 */
static void interrupt_rest(struct interrupt *i, uint64_t began)
{
	struct endpoint *e = i->e;
	uint64_t gap = began - i->ended;
	i->ended = e->world->now();
	i->debt += i->ended - began + SIGNAL_NS;
	i->debt = i->debt > gap ? i->debt - gap : 0;
	if (i->debt < TURN_NS || !e->owner.armed)
		return;
	i->debt = 0;
	endpoint_disarm(e);
	tick_start(i, REST_NS);
}

/* Whether the thread is inside a call, of any of its endpoints. */
static bool thread_inside(int32_t self)
{
	bool inside = false;
	for (struct interrupt *i = atomic_load(&all); i && !inside; i = i->next) {
		if (atomic_load(&i->thread) != self)
			continue;
		atomic_store(&i->busy, true);
		inside = atomic_load(&i->thread) == self && guard_busy(i->e) & GUARD_MASK;
		atomic_store(&i->busy, false);
	}
	return inside;
}

/* Senders will call, and none has. */
static bool armed_in_vain(struct endpoint *e)
{
	return e->owner.armed && !e->work && !e->site.asks && !pollset_waits(&e->site);
}

/*
 * `inside`: the thread is, be it of another endpoint; what a deferred function calls might come
 * back there.
 */
static void interrupt_one(struct interrupt *i, bool tick, bool inside)
{
	struct endpoint *e = i->e;
	/* Or so it may be: signals that meet become one. Starting it twice does no harm. */
	i->ticking = false;
	if (guard_busy(e)) {
		/* Whoever leaves handles it, and starts the timer again. */
		alert_raise(e, ALERT_PENDING);
		return;
	}
	if (inside) {
		if (!armed_in_vain(e))
			tick_start(i, tick_longer(i));
		return;
	}
	tern_guard_add_(e->t, GUARD_INSIDE);
	running = i;
	if (!tick || !tick_found_calls(i)) {
		uint64_t began = e->world->now();
		pulse_add(e, PULSE_INTERRUPTS, 1);
		interrupt_serve(i);
		interrupt_rest(i, began);
	}
	running = NULL;
	tern_guard_add_(e->t, -GUARD_INSIDE);
}

bool interrupt_active(void)
{
	return running != NULL;
}

bool interrupt_runs(uint32_t *rank, unsigned *handler)
{
	const struct interrupt *i = running;
	if (!i || !in_handler(i->e))
		return false;
	*rank = i->e->t->rank;
	*handler = rules_handler(i->e);
	return true;
}

/*
 * As if it had never been: what the program was doing keeps errno, and the sentence of its last
 * error.
 */
static void interrupt_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	int saved = errno;
	struct error_kept sentence;
	error_keep(&sentence);
	int32_t self = thread_id();
	bool inside = thread_inside(self);
	/* The wire's own: it sends one for each datagram, and one is enough. */
	if (info->si_code > 0)
		signal_forget(number);
	/*
	 * A real-time signal of a timer is that timer's own; others may have met, and are
	 * everybody's.
	 */
	const void *one =
		info->si_code == SI_TIMER && number >= SIGRTMIN ? info->si_value.sival_ptr : NULL;
	for (struct interrupt *i = atomic_load(&all); i; i = i->next) {
		if (atomic_load(&i->thread) != self || (one && one != i))
			continue;
		atomic_store(&i->busy, true);
		if (atomic_load(&i->thread) == self && i->signal == number)
			interrupt_one(i, info->si_code == SI_TIMER && info->si_value.sival_ptr == i,
				      inside);
		atomic_store(&i->busy, false);
	}
	error_restore(&sentence);
	errno = saved;
}

/* -- Beginning and ending --------------------------------------------------------------------- */

/* One that is free, or a new one. */
static struct interrupt *interrupt_take(void)
{
	struct interrupt *i = atomic_load(&all);
	while (i && atomic_exchange(&i->taken, true))
		i = i->next;
	if (i || !(i = calloc(1, sizeof *i)))
		return i;
	atomic_store(&i->taken, true);
	i->next = atomic_load(&all);
	while (!atomic_compare_exchange_weak(&all, &i->next, i))
		;
	return i;
}

int interrupt_open(struct endpoint *e, int signal)
{
	struct sigaction before,
		ours = { .sa_sigaction = interrupt_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	if (signal <= 0 || signal > SIGRTMAX || signal == SIGKILL || signal == SIGSTOP)
		return error_set(-EINVAL,
				 "rank %u is to be interrupted by signal %d, which %s; allot one "
				 "that nothing else uses, such as %d, in tern_options or "
				 "TERN_SIGNAL",
				 e->t->rank, signal, signal ? "cannot be used" : "is none",
				 SIGRTMIN + 4);
	sigaction(signal, NULL, &before);
	if (before.sa_handler != SIG_DFL && before.sa_sigaction != interrupt_signal)
		return error_set(-EBUSY,
				 "signal %d, allotted to interrupts of rank %u, "
				 "has a handler of the program's",
				 signal, e->t->rank);
	struct interrupt *i = e->owner.interrupt = interrupt_take();
	if (!i)
		return error_set(-ENOMEM, "rank %u's interrupts: no memory", e->t->rank);
	i->e = e;
	i->signal = signal;
	i->tick = TICK_LEAST_NS;
	sigemptyset(&ours.sa_mask);
	sigaction(signal, &ours, NULL);
	return 0;
}

void interrupt_begin(struct endpoint *e)
{
	struct interrupt *i = e->owner.interrupt;
	int32_t self = thread_id();
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = i->signal };
	event.sigev_value.sival_ptr = i;
	event._sigev_un._tid = self;
	i->timed = timer_create(CLOCK_MONOTONIC, &event, &i->timer) == 0;
	if (!i->timed)
		error_warn("rank %u has no timer (%s): messages are delivered when it calls",
			   e->t->rank, strerror(errno));
	atomic_store(&i->thread, self);
	tick_start(i, i->tick); /* its next call may be far away */
}

void interrupt_end(struct endpoint *e)
{
	struct interrupt *i = e->owner.interrupt;
	if (!atomic_exchange(&i->thread, 0))
		return;
	while (atomic_load(&i->busy))
		e->world->yield();
	if (i->timed)
		timer_delete(i->timer);
	i->timed = i->ticking = false;
	endpoint_disarm(e);
}

bool interrupt_elsewhere(const struct endpoint *e)
{
	int32_t thread = e->owner.interrupt ? atomic_load(&e->owner.interrupt->thread) : 0;
	return thread && thread != thread_id();
}

void interrupt_close(struct endpoint *e)
{
	if (!e->owner.interrupt)
		return;
	interrupt_end(e);
	atomic_store(&e->owner.interrupt->taken, false);
	e->owner.interrupt = NULL;
}
