/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication processor: a thread that delivers an endpoint's messages while its program
 * computes. It owns the endpoint while messages flow; it naps while the program calls often, since
 * the program then serves itself; it sleeps until a bell rings while nothing happens.
 */
#ifndef TERN_CORE_PROGRESS_H
#define TERN_CORE_PROGRESS_H

#include "core/endpoint.h"

/* Makes the thread, which does nothing before progress_begin(). -EAGAIN, -EINVAL with a sentence.
 */
int progress_open(struct endpoint *e);
void progress_begin(
	struct endpoint *e); /* a thread has the endpoint, and its handlers are registered */
void progress_close(struct endpoint *e); /* by the program, inside; ends the thread */

/*
 * Whether the calling thread is the endpoint's progress thread, which calls the library only while
 * it owns the endpoint.
 */
bool progress_is_me(const struct endpoint *e);
void progress_forget(
	void); /* in a forked child: the thread that forked is no progress thread there */

/* The program has come in while the thread sleeps: disarms the bell and lets the thread watch. */
void progress_relieve(struct endpoint *e);

/* Around a sleep of the program's inside a call: the thread need not look at it meanwhile. */
void progress_doze(struct endpoint *e);
void progress_rouse(struct endpoint *e);

#endif

/* cost: protection control */
