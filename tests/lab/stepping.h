/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests that count instructions: what a tracer does with a process that calls mark(). */
#ifndef TERN_TESTS_STEPPING_H
#define TERN_TESTS_STEPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

enum { STEPPING_BREAKPOINT = 0xcc };

/* What is counted lies between two calls of this. */
__attribute__((noinline)) static void mark(void)
{
	__asm__ volatile("");
}

/* Lets it go on, by one instruction or to its next stop; false when it has ended. */
static inline bool resume(pid_t traced, int how, struct user_regs_struct *regs)
{
	int status;
	return ptrace(how, traced, NULL, NULL) == 0 && waitpid(traced, &status, __WALL) == traced &&
	       WIFSTOPPED(status) && ptrace(PTRACE_GETREGS, traced, NULL, regs) == 0;
}

/* To where it enters mark(), at full speed: what lies before that is not counted. */
static inline void run_to_mark(pid_t traced)
{
	struct user_regs_struct regs;
	void *at = (void *)(uintptr_t)mark;
	if (!resume(traced, PTRACE_SINGLESTEP, &regs)) /* off the mark, if it stands there */
		return;
	long text = ptrace(PTRACE_PEEKTEXT, traced, at, NULL);
	ptrace(PTRACE_POKETEXT, traced, at, (void *)((text & ~0xffL) | STEPPING_BREAKPOINT));
	if (!resume(traced, PTRACE_CONT, &regs))
		return;
	ptrace(PTRACE_POKETEXT, traced, at, (void *)text);
	regs.rip = (unsigned long)(uintptr_t)at;
	ptrace(PTRACE_SETREGS, traced, NULL, &regs);
}

/* Steps until it enters mark(); the number of instructions on the way, -1 when it ended. */
static inline long steps_to_mark(pid_t traced)
{
	struct user_regs_struct regs;
	for (long n = 0; resume(traced, PTRACE_SINGLESTEP, &regs); n++)
		if (regs.rip == (unsigned long)(uintptr_t)mark)
			return n;
	return -1;
}

#endif
