/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slices, where TERN_SLICE asks for them: a thread that only computes is preempted, so that it
 * keeps neither its rank's messages nor the other threads waiting for good.
 *
 * A timer counts the processor time of the kernel thread, so one that sleeps is left alone, and so
 * are its system calls. Its signal's handler runs on the stack of whatever it interrupts: to
 * preempt is to poll and to switch to the next context from there, and to return from the signal
 * when it is this one's turn again. That is right only where the interrupted code could as well
 * have called tern_thread_yield(). So it happens only when
 *
 * - the thread is inside no call of Tern's and under no hold (the guard of its endpoint says so),
 * - the instruction that comes next is the program's own, and not one of a shared library, which
 *   may hold a lock, as malloc does, that another thread would wait for in vain,
 * - no signal is blocked that was not when this began, as in a handler of the program's,
 * - the kernel thread has one endpoint: others have no guard that counts its calls.
 *
 * Otherwise the next tick tries again.
 */
#ifndef TERN_SPAWN_PREEMPT_H
#define TERN_SPAWN_PREEMPT_H

#include "spawn/spawn.h"

/* Whether this build, and this program, can be preempted at all. */
bool preempt_possible(void);

/*
 * Starts the clock of the calling kernel thread, which has the endpoint; does nothing when it runs,
 * or is not wanted.
 */
void preempt_watch(struct spawn *s);
/* The endpoint is about to close. */
void preempt_end(struct spawn *s);

#endif
