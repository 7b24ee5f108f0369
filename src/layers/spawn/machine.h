/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread that does not run is: a stack pointer. Everything else that must survive lies on
 * its stack, where whoever switched away from it has put it.
 *
 * A switch is a function call, so the compiler has saved whatever the caller may lose. What is left
 * are the registers that a callee must preserve, and on x86-64 the control words of the two
 * floating-point units, which its ABI counts among them. Twenty-odd instructions, no system call.
 */
#ifndef TERN_SPAWN_MACHINE_H
#define TERN_SPAWN_MACHINE_H

#include <stddef.h>

struct machine {
	void *sp;
};

typedef void machine_entry(void *arg); /* never returns */

/* Makes a machine that will run entry(arg) on the stack when it is first switched to. */
void machine_make(struct machine *m, void *stack, size_t size, machine_entry *entry, void *arg);

/* Goes on where `to` left off; returns when somebody switches to `from`. */
void machine_switch(struct machine *from, const struct machine *to);

#endif
