/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: protection control */
#include "core/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/kernel.h"
#include "core/door.h"
#include "core/stats.h"

enum {
	TICK_LEAST_NS = 100000, /* after which a program that has not called again computes, at first, */
	TICK_MOST_NS = 1000000, /* and if it is found to call often */
	TURN_NS = 200000,       /* the longest an interrupt handles a stream that does not end, */
	REST_NS = 200000,       /* and what the program then has to itself */
};

struct interrupt {
	struct endpoint *e;
	struct interrupt *next; /* of the same thread */
	int signal;
	int32_t thread; /* 0 before it begins */
	timer_t timer;
	bool timed;       /* there is a timer */
	bool ticking;     /* and it has been started */
	uint64_t tick;    /* its time */
	uint32_t entries; /* of the guard, when it was started */
};

/* Those that this thread's signals serve. Changed with the signal blocked. */
static _Thread_local struct interrupt *called;

/* -- The timer ------------------------------------------------------------------------------ */

static void tick_start(struct interrupt *i, uint64_t ns)
{
	struct itimerspec when = { .it_value = { .tv_nsec = (long)ns } };
	i->entries = guard_entries(i->e);
	i->ticking = i->timed && timer_settime(i->timer, 0, &when, NULL) == 0;
}

void interrupt_left(struct endpoint *e)
{
	struct interrupt *i = e->interrupt;
	if (i && i->thread && !i->ticking && !e->armed)
		tick_start(i, i->tick);
}

/* -- The signal ----------------------------------------------------------------------------- */

static bool interrupt_arm(struct interrupt *i)
{
	struct endpoint *e = i->e;
	struct sleep s = { .says = BELL_CALL, .signal = i->signal, .thread = i->thread };
	for (unsigned n = 0; n < e->nets; n++)
		if (!e->net[n]->ops->arm(e->net[n], &s))
			return false;
	e->t->peek = &e->site.bell;
	return e->armed = true;
}

/*
 * Handles what there is until nothing comes any more and the bell is armed. A stream without
 * an end is left after a while, to the timer, so that the program gets on too.
 */
static void interrupt_serve(struct interrupt *i)
{
	struct endpoint *e = i->e;
	uint64_t end = 0;
	for (;;) {
		unsigned handled = poll_once(e, KINDS_BOTH);
		bool more = handled || e->work || e->deferred_count;
		if (!more && (e->armed || interrupt_arm(i)))
			return;
		uint64_t now = e->world->now();
		if (!end)
			end = now + TURN_NS;
		if (now > end || (!more && !circle_find(&e->site, &e->site.bell))) {
			tick_start(i, more ? REST_NS : TICK_MOST_NS); /* or this machine has nothing to arm */
			return;
		}
	}
}

/* The timer is over. Whether the program has called since it was started, and so will call again. */
static bool tick_found_calls(struct interrupt *i)
{
	if (guard_entries(i->e) == i->entries)
		return false;
	i->tick = i->tick * 2 < TICK_MOST_NS ? i->tick * 2 : TICK_MOST_NS;
	tick_start(i, i->tick);
	return true;
}

static void interrupt_one(struct interrupt *i, bool tick)
{
	struct endpoint *e = i->e;
	i->ticking =
		false; /* or so it may be: signals that meet become one. Starting it twice does no harm. */
	if (guard_busy(e)) {
		alert_raise(e, ALERT_PENDING); /* whoever leaves handles it, and starts the timer again */
		return;
	}
	if (tick && tick_found_calls(i))
		return;
	tern_guard_add(e->t, GUARD_INSIDE);
	pulse_add(e, PULSE_INTERRUPTS, 1);
	i->tick = TICK_LEAST_NS;
	interrupt_serve(i);
	tern_guard_add(e->t, -GUARD_INSIDE);
}

/* As if it had never been: what the program was doing keeps errno, and the sentence of its last error. */
static void interrupt_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	int saved = errno;
	struct error_kept sentence;
	error_keep(&sentence);
	for (struct interrupt *i = called; i; i = i->next)
		if (i->signal == number)
			interrupt_one(i, info->si_code == SI_TIMER && info->si_value.sival_ptr == i);
	error_restore(&sentence);
	errno = saved;
}

static void signal_block(int number, int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(how, &set, NULL);
}

/* -- Beginning and ending --------------------------------------------------------------------- */

static int signal_refused(struct endpoint *e, int number)
{
	if (number <= 0 || number > SIGRTMAX || number == SIGKILL || number == SIGSTOP)
		return error_set(
			-EINVAL,
			"rank %u is to be interrupted by signal %d, which %s; allot one that nothing else uses, such "
			"as %d, in tern_options or TERN_SIGNAL",
			e->t->rank, number, number ? "cannot be used" : "is none", SIGRTMIN + 4);
	return 0;
}

int interrupt_open(struct endpoint *e, int signal)
{
	struct sigaction before,
		ours = { .sa_sigaction = interrupt_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	int rc = signal_refused(e, signal);
	if (rc)
		return rc;
	sigaction(signal, NULL, &before);
	if (before.sa_handler != SIG_DFL && before.sa_sigaction != interrupt_signal)
		return error_set(
			-EBUSY,
			"signal %d, allotted to interrupts of rank %u, has a handler of the program's",
			signal, e->t->rank);
	e->interrupt = calloc(1, sizeof *e->interrupt);
	if (!e->interrupt)
		return error_set(-ENOMEM, "rank %u's interrupts: no memory", e->t->rank);
	e->interrupt->e = e;
	e->interrupt->signal = signal;
	e->interrupt->tick = TICK_LEAST_NS;
	sigemptyset(&ours.sa_mask);
	sigaction(signal, &ours, NULL);
	return 0;
}

void interrupt_begin(struct endpoint *e)
{
	struct interrupt *i = e->interrupt;
	signal_block(i->signal, SIG_BLOCK);
	i->thread = thread_id();
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = i->signal };
	event.sigev_value.sival_ptr = i;
	event._sigev_un._tid = i->thread;
	i->timed = timer_create(CLOCK_MONOTONIC, &event, &i->timer) == 0;
	if (!i->timed)
		error_warn("rank %u has no timer (%s): messages are delivered when it calls", e->t->rank,
			   strerror(errno));
	i->next = called;
	called = i;
	signal_block(i->signal, SIG_UNBLOCK);
}

void interrupt_end(struct endpoint *e)
{
	struct interrupt *i = e->interrupt;
	if (!i->thread)
		return;
	signal_block(i->signal, SIG_BLOCK);
	for (struct interrupt **at = &called; *at; at = &(*at)->next)
		if (*at == i) {
			*at = i->next;
			break;
		}
	if (i->timed)
		timer_delete(i->timer);
	i->timed = i->ticking = e->armed = false;
	i->thread = 0;
	signal_block(i->signal, SIG_UNBLOCK);
}

void interrupt_close(struct endpoint *e)
{
	if (!e->interrupt)
		return;
	interrupt_end(e);
	free(e->interrupt);
	e->interrupt = NULL;
}
