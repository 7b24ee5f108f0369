/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts, and who runs in them when.
 *
 * A kernel thread has a rota of contexts, a circle in which each has its turn. The program's own
 * stack is one; each other belongs to an endpoint that the kernel thread has, and runs the threads
 * that are created there, one after another. A context that waits, in whatever call, gives the core
 * to the next of the rota after each step of its wait (core/wait.h), and looks again at what it
 * waits for when it is its turn. Nobody keeps lists of who waits for what: a round costs a look for
 * each context, of which there are few.
 *
 * When a whole round has found nothing to do, the one whose turn it is backs off: it yields, naps,
 * sleeps, for all of them. What they wait for then changes only by messages that this kernel thread
 * handles, or is `bounded`, or is asked about before a sleep (over), so nothing is missed.
 *
 * A context without a thread is parked: outside the rota, at the top of its loop.
 */
#ifndef TERN_SPAWN_CONTEXT_H
#define TERN_SPAWN_CONTEXT_H

#include "core/wait.h"
#include "spawn/fiber.h"
#include "spawn/spawn.h"

struct context {
	struct machine machine;
	struct context *next, *prev; /* of the rota */
	struct wait *wait;           /* what it waits for; NULL: it could go on */
	struct endpoint *waits_in;
	struct spawn *home; /* NULL: the program itself */
	struct creation creation;
	uint64_t number; /* of its thread; 0: it has none */
	struct stack stack;
	struct fiber fiber;
	struct context *spare, *older; /* lists of its home: those parked, all */
};

/* The context that calls; NULL in a kernel thread that has never had another. */
struct context *context_self(void);

/* The number of the thread that calls; 0: it is the program. */
uint64_t context_number(void);

/* Whether this kernel thread is in the middle of a switch. */
bool context_is_between(void);

/* Something is in the inbox: the kernel thread that has the endpoint is to run it. */
void context_wanted(struct spawn *s);

/* Gives the core to the next of the rota; as struct scheduler has it. */
void context_pass(struct endpoint *e, struct wait *l, unsigned handled);

/* A poll, and then the others run. */
void context_yield(struct endpoint *e);

/* All contexts of an endpoint; they are parked. */
void context_free(struct spawn *s);

#endif
