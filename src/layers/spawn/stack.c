/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that needs more stack than it has runs into its guard, and the processor says so. The
 * handler of that fault needs a stack of its own, and may call next to nothing (snprintf() takes no
 * memory for numbers): it writes a sentence, and lets the fault happen again with the default
 * action, so that the process ends with the signal, and the core, that it would have had.
 */
#include "spawn/stack.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALTERNATE = 32768 };

int stack_map(struct stack *s, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	s->guard = page;
	s->size = (size + page - 1) / page * page;
	s->base = mmap(NULL, s->guard + s->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (s->base == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(s->base, s->guard, PROT_NONE) == 0)
		return 0;
	stack_unmap(s);
	return -ENOMEM;
}

void stack_unmap(struct stack *s)
{
	munmap(s->base, s->guard + s->size);
}

/* -- The report ------------------------------------------------------------------------ */

static _Atomic(stack_who *) who_runs;
static struct sigaction before;

/* Whether it was a guard that was touched, which is then said. */
static bool fault_overflow(const char *address)
{
	unsigned rank = 0, id = 0;
	const struct stack *s = atomic_load_explicit(&who_runs, memory_order_relaxed)(&rank, &id);
	if (!s || address < s->base || address >= s->base + s->guard)
		return false;
	char line[200];
	int len = snprintf(line, sizeof line,
			   "tern: rank %u: a thread that runs function %u has overflowed its stack "
			   "of %zu bytes; TERN_STACK sets how large stacks are\n",
			   rank, id, s->size);
	ssize_t wrote = write(STDERR_FILENO, line, (size_t)len);
	(void)wrote;
	return true;
}

static void fault(int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	bool overflow = fault_overflow(info->si_addr);
	errno = saved;
	if (!overflow && before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(signal, info, context);
	} else if (!overflow && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(signal);
	} else {
		struct sigaction usual = { .sa_handler = SIG_DFL };
		sigaction(signal, &usual,
			  NULL); /* and the fault, which happens again, ends the process */
	}
}

static void fault_install(void)
{
	struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	sigaction(SIGSEGV, &action, &before);
}

void stack_watch(stack_who *who)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Thread_local bool watched;
	stack_t now, mine = { .ss_size = ALTERNATE };
	if (watched)
		return;
	watched = true;
	atomic_store_explicit(&who_runs, who, memory_order_relaxed); /* always the same one */
	pthread_once(&once, fault_install);
	if (sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
		return;
	mine.ss_sp =
		mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mine.ss_sp != MAP_FAILED)
		sigaltstack(&mine, NULL); /* for as long as this kernel thread lives */
}
