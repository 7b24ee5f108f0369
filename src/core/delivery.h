/* SPDX-License-Identifier: BSD-3-Clause */
/* How an endpoint's messages are delivered while its program computes. */
#ifndef TERN_CORE_DELIVERY_H
#define TERN_CORE_DELIVERY_H

#include "endpoint/endpoint.h"

/* -- delivery.c: choosing the way -- */

/* Whether TERN_DELIVERY is understood: 0, or -EINVAL with a sentence. */
int delivery_judge(void);
/* Before anybody has the endpoint. 0, or a code with a sentence. */
int delivery_open(struct endpoint *e, const tern_options *o);
/* The same for a worker, whose own thread polls. */
void delivery_worker(struct endpoint *e);
/*
 * From now on several threads use the endpoint, one call at a time; by the thread that has it, or
 * the first to use it. 0, or why not.
 */
int delivery_share(struct endpoint *e);
/* The calling thread has the endpoint from now on; `t->reach` is set. */
void delivery_begin(struct endpoint *e);
/*
 * Between two calls its program may be preempted by its own threads from now on: calls must open
 * scopes.
 */
void delivery_slice(struct endpoint *e);
/* By the thread that has it, inside; nothing is delivered any more but by polls. */
void delivery_close(struct endpoint *e);

/* -- progress.c: the progress thread -- */

/*
 * Makes the thread, which does nothing before progress_begin(). -EAGAIN, -EINVAL with a sentence.
 */
int progress_open(struct endpoint *e);
/* A thread has the endpoint, and its handlers are registered. */
void progress_begin(struct endpoint *e);
void progress_close(struct endpoint *e); /* by the program, inside; ends the thread */

/*
 * Whether the calling thread is the endpoint's progress thread, which calls the library only while
 * it owns the endpoint.
 */
bool progress_is_me(const struct endpoint *e);
/* In a forked child: the thread that forked is no progress thread there. */
void progress_forget(void);

/* The program has come in while the thread sleeps: disarms the bell and lets the thread watch. */
void progress_relieve(struct endpoint *e);

/* Around a sleep of the program's inside a call: the thread need not look at it meanwhile. */
void progress_doze(struct endpoint *e);
void progress_rouse(struct endpoint *e);

/* -- interrupt.c: handlers run on the thread that computes, from a signal -- */

/*
 * Takes the signal. -EINVAL if none is allotted or it cannot be used, -EBUSY if the program has a
 * handler for it.
 */
int interrupt_open(struct endpoint *e, int signal);
void interrupt_begin(struct endpoint *e); /* by the thread that has the endpoint from now on */
void interrupt_end(struct endpoint *e);   /* by that thread: no handler is run any more */
void interrupt_close(struct endpoint *e);
/* Another thread is interrupted for it than the calling one. */
bool interrupt_elsewhere(const struct endpoint *e);

/* The program has left the library: makes sure that what arrives from now on is noticed. */
void interrupt_left(struct endpoint *e);

/* Whether this thread is in an interrupt right now: what it was doing may hold any lock. */
bool interrupt_active(void);
/*
 * Whether an interrupt runs a handler of this thread's right now: whose, and which. For the debug
 * preset.
 */
bool interrupt_runs(uint32_t *rank, unsigned *handler);

#endif
