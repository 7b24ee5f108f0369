/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: LABELS perf */
/*
 * Counts the instructions of a switch between two threads, exactly: a child switches under
 * single-stepping, and the figure is the difference between 2N and N switches. Of the switch itself
 * that is from the call in one thread to the return in the other, arguments and call included.
 * tern_thread_yield() is counted too, with its poll and with the choice of who is next, when nobody
 * is to
 * be preempted and when threads are.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tern/thread.h>

#include "spawn/machine.h"

enum { SKIPPED = 77, TIMES = 50, SWITCH_BUDGET = 30, STACK = 65536 };

#if !defined(__x86_64__)
int main(void)
{
	puts("skipped: single-stepping is written for x86-64");
	return SKIPPED;
}
#else

/* What is counted lies between two calls of mark(). */
__attribute__((noinline)) static void mark(void)
{
	__asm__ volatile("");
}

/* -- The switch ------------------------------------------------------------------------- */

static struct machine here, there;
static _Alignas(16) char stack[STACK];

static void come_back(void *arg)
{
	(void)arg;
	for (;;)
		machine_switch(&there, &here);
}

static void loop_switch(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		machine_switch(&here, &there);
	mark();
}

/* -- Yielding ----------------------------------------------------------------------------- */

static tern *t;

static uint64_t yield_back(tern *e, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	while (word[0] == 0)
		tern_thread_yield(e);
	return 0;
}

static void loop_yield(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_thread_yield(t);
	mark();
}

static void yield_prepare(const char *slice)
{
	setenv("TERN_SLICE", slice, 1);
	if (tern_open_local(1, &t) || tern_thread_on(t, 0, yield_back, NULL) ||
	    tern_spawn(t, 0, 0, NULL, NULL))
		_exit(1);
	while (!tern_thread_self(t).threads)
		tern_thread_yield(t);
}

static void child_run(void)
{
	machine_make(&there, stack, sizeof stack, come_back, NULL);
	machine_switch(&here, &there);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	loop_switch(TIMES);
	loop_switch(2 * TIMES);
	for (int slices = 0; slices < 2; slices++) {
		yield_prepare(slices ? "1000" : "0");
		loop_yield(TIMES);
		loop_yield(2 * TIMES);
	}
	_exit(0);
}

/* -- The parent ------------------------------------------------------------------------------ */

/*
 * On to the next call of mark(): the number of instructions on the way, -1 when the child has
 * ended.
 */
static long steps_to_mark(pid_t child)
{
	struct user_regs_struct regs;
	for (long n = 0;; n++) {
		int status;
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) ||
		    waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
		    ptrace(PTRACE_GETREGS, child, NULL, &regs))
			return -1;
		if (regs.rip == (unsigned long)(uintptr_t)mark)
			return n;
	}
}

/*
 * A switch there, or back: half of what a turn of the loop takes, without the loop's own two
 * instructions.
 */
static double count(pid_t child)
{
	long steps[2];
	for (int twice = 0; twice < 2; twice++) {
		steps_to_mark(child);
		steps[twice] = steps_to_mark(child);
	}
	return ((double)(steps[1] - steps[0]) / TIMES - 2) / 2;
}

int main(void)
{
	pid_t child = fork();
	int status;
	if (child == 0)
		child_run();
	waitpid(child, &status, 0);
	if (!WIFSTOPPED(status)) {
		puts("skipped: this machine does not let a process trace its child");
		return SKIPPED;
	}
	double bare = count(child), yield = count(child), sliced = count(child);
	printf("%-32s %6.2f\n%-32s %6.2f\n%-32s %6.2f\n", "switch", bare,
	       "tern_thread_yield, cooperative", yield, "tern_thread_yield, with slices", sliced);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
	if (bare > 5 && bare <= SWITCH_BUDGET)
		return 0;
	printf("FAIL: a switch takes %.2f instructions; docs/cost.md allows %d\n", bare,
	       SWITCH_BUDGET);
	return 1;
#else
	puts("skipped: the budget is for -O2");
	return SKIPPED;
#endif
}
#endif
