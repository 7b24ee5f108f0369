/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delivery by interrupt: handlers run on the thread that computes, as if it had called them,
 * from a signal that the user has allotted. Senders send it to a rank whose bell says so; a
 * timer with the same signal finds out when a program has stopped calling and arms the bell.
 */
#ifndef TERN_CORE_INTERRUPT_H
#define TERN_CORE_INTERRUPT_H

#include "core/endpoint.h"

/*
 * Takes the signal. -EINVAL if none is allotted or it cannot be used, -EBUSY if the program has a
 * handler for it.
 */
int interrupt_open(struct endpoint *e, int signal);
void interrupt_begin(struct endpoint *e); /* by the thread that has the endpoint from now on */
void interrupt_end(struct endpoint *e);   /* by that thread: no handler is run any more */
void interrupt_close(struct endpoint *e);
bool interrupt_elsewhere(
	const struct endpoint *e); /* another thread is interrupted for it than the calling one */

/* The program has left the library: makes sure that what arrives from now on is noticed. */
void interrupt_left(struct endpoint *e);

/*
 * Whether an interrupt runs a handler of this thread's right now: whose, and which. For the debug
 * preset.
 */
bool interrupt_runs(uint32_t *rank, unsigned *handler);

#endif

/* cost: protection control */
