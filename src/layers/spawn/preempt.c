/* SPDX-License-Identifier: BSD-3-Clause */
/* Preemption: a timer and a signal that end the time slice of a light thread. */
#include "spawn/preempt.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "base/error.h"
#include "base/kernel.h"
#include "core/scope.h"
#include "spawn/context.h"

/* The clock of this kernel thread. */
static _Thread_local struct slices {
	struct spawn *home; /* NULL: it does not run */
	timer_t timer;
	sigset_t blocked; /* when it began */
} slices __attribute__((tls_model("initial-exec")));

static int slice_signal; /* 0: there is none */

/* -- The program's own code ----------------------------------------------------------------- */

static uintptr_t text_begin, text_end;

/*
 * The first object is the program. One without an interpreter is linked statically: its libraries
 * are in its text.
 */
static int text_find(struct dl_phdr_info *info, size_t size, void *arg)
{
	bool dynamic = false;
	(void)size, (void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		dynamic |= p->p_type == PT_INTERP;
		if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
			text_begin = info->dlpi_addr + p->p_vaddr;
			text_end = text_begin + p->p_memsz;
		}
	}
	if (!dynamic)
		text_begin = text_end = 0;
	return 1;
}

static uintptr_t interrupted_at(const ucontext_t *u)
{
#if defined(__x86_64__)
	return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#else
	return (uintptr_t)u->uc_mcontext.pc;
#endif
}

bool preempt_possible(void)
{
#if defined(FIBER_THREAD)
	return false; /* thread sanitizer puts signals off until the thread calls something, and
			 switches in none */
#else
	return true;
#endif
}

/* -- The signal ------------------------------------------------------------------------------- */

/*
 * Whether a signal is blocked that was not when the clock began: some handler of the program's is
 * running.
 */
static bool blocked_more(const sigset_t *now)
{
	for (int n = 1; n <= SIGRTMAX; n++)
		if (sigismember(now, n) == 1 && !sigismember(&slices.blocked, n))
			return true;
	return false;
}

static bool preempt_allowed(const ucontext_t *u)
{
	struct spawn *s = slices.home;
	uintptr_t at = interrupted_at(u);
	return s && !scope_depth && !context_is_between() && !guard_busy(s->e) &&
	       at >= text_begin && at < text_end && !blocked_more(&u->uc_sigmask) &&
	       attach_is_alone(s->e);
}

/* As if the program had called tern_thread_yield(), and nothing else of its own had happened. */
static void preempt(struct endpoint *e)
{
	INSIDE struct scope scope = scope_open(e->t);
	context_yield(e);
}

static void slice_over(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	int saved = errno;
	struct error_kept sentence;
	if (!preempt_allowed(context))
		return;
	error_keep(&sentence);
	preempt(slices.home->e);
	error_restore(&sentence);
	errno = saved;
}

/* -- Beginning and ending ---------------------------------------------------------------------- */

static bool signal_free(int number)
{
	struct sigaction now;
	return sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
	       now.sa_handler == SIG_DFL;
}

/*
 * The one that the program has allotted, unless interrupts need it; else the last real-time signal
 * that nobody has a handler for; 0: there is none.
 */
static int signal_find(int allotted)
{
	int number = SIGRTMAX;
	if (allotted && signal_free(allotted))
		return allotted;
	while (number >= SIGRTMIN && !signal_free(number))
		number--;
	return number >= SIGRTMIN ? number : 0;
}

/* It is not blocked while its handler runs (SA_NODEFER): other threads run from there. */
static void signal_take(int allotted)
{
	struct sigaction ours = { .sa_sigaction = slice_over,
				  .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER };
	int number = signal_find(allotted);
	sigemptyset(&ours.sa_mask);
	if (number && sigaction(number, &ours, NULL) == 0)
		slice_signal = number;
}

/* Once in a process, for its first endpoint with threads. */
static void signal_once(const struct endpoint *e)
{
	static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
	static bool taken;
	pthread_mutex_lock(&taking);
	if (!taken) {
		taken = true;
		dl_iterate_phdr(text_find, NULL);
		if (text_end)
			signal_take(e->owner.delivery == TERN_DELIVERY_INTERRUPT ? 0
										 : e->owner.signal);
	}
	pthread_mutex_unlock(&taking);
}

static bool timer_begin(uint64_t ns)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = slice_signal };
	struct timespec slice = { .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
	struct itimerspec every = { .it_interval = slice, .it_value = slice };
	event._sigev_un._tid = thread_id();
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &slices.timer) != 0)
		return false;
	return timer_settime(slices.timer, 0, &every, NULL) == 0;
}

void preempt_watch(struct spawn *s)
{
	if (!s->slice_ns || slices.home || !attach_is_own(s->e))
		return;
	signal_once(s->e);
	pthread_sigmask(SIG_BLOCK, NULL, &slices.blocked);
	if (slice_signal && timer_begin(s->slice_ns))
		slices.home = s;
	else
		s->slice_ns = 0; /* not here: threads have turns when one of them waits */
}

void preempt_end(struct spawn *s)
{
	if (slices.home != s)
		return;
	slices.home = NULL;
	timer_delete(slices.timer);
}
