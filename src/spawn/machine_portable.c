/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch for every other processor: <ucontext.h>, which keeps its record on the stack that it
 * leaves.
 */
#include <stdint.h>
#include <ucontext.h>

#include "spawn/machine.h"

/* makecontext() passes ints, so a pointer travels in two. */
struct start {
	ucontext_t record;
	machine_entry *entry;
	void *arg;
};

static void portable_start(unsigned high, unsigned low)
{
	struct start *s = (struct start *)((uintptr_t)high << 16 << 16 | low);
	s->entry(s->arg);
}

void portable_make(struct machine *m, void *stack, size_t size, machine_entry *entry, void *arg)
{
	struct start *s = (struct start *)(((uintptr_t)stack + size) & ~(uintptr_t)63) - 1;
	getcontext(&s->record);
	s->entry = entry;
	s->arg = arg;
	s->record.uc_link = NULL;
	s->record.uc_stack.ss_sp = stack;
	s->record.uc_stack.ss_size = (size_t)((char *)s - (char *)stack) & ~(size_t)63;
	uintptr_t self = (uintptr_t)s;
	makecontext(&s->record, (void (*)(void))portable_start, 2, (unsigned)(self >> 16 >> 16),
		    (unsigned)self);
	m->sp = &s->record;
}

void portable_switch(struct machine *from, const struct machine *to)
{
	ucontext_t here;
	from->sp = &here;
	swapcontext(&here, to->sp);
}

/* cost: base control */
