/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks of threads: mapped, with a page below each that nobody may touch. */
#ifndef TERN_SPAWN_STACK_H
#define TERN_SPAWN_STACK_H

#include <stdbool.h>
#include <stddef.h>

struct stack {
	char *base; /* of the guard; the stack follows */
	size_t guard, size;
};

/* -ENOMEM when there is no memory. `size` is rounded up to whole pages. */
int stack_map(struct stack *s, size_t size);
void stack_unmap(struct stack *s);

static inline void *stack_bottom(const struct stack *s)
{
	return s->base + s->guard;
}

/*
 * The stack that this kernel thread runs on, and for whom; NULL: one without a guard. Called when a
 * fault has happened.
 */
typedef const struct stack *stack_who(unsigned *rank, unsigned *id);

/*
 * Has faults in guards reported, in words, before the process ends as it would have; any other
 * fault goes to whoever handled it before. Called by each kernel thread that has threads: it gets a
 * stack to do that on, unless it has one.
 */
void stack_watch(stack_who *who);

#endif
