/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication processor: a thread that delivers an endpoint's messages while its program
 * computes. It has the role while messages flow; it naps while the program calls often, since the
 * program then serves itself; it sleeps until a bell rings while nothing happens.
 */
#ifndef TERN_CORE_AGENT_H
#define TERN_CORE_AGENT_H

#include "core/endpoint.h"

/* Makes the thread, which does nothing before agent_begin(). -EAGAIN, -EINVAL with a sentence. */
int agent_open(struct endpoint *e);
void agent_begin(
	struct endpoint *e); /* a thread has the endpoint, and its handlers are registered */
void agent_close(struct endpoint *e); /* by the program, inside; ends the thread */

/*
 * Whether the calling thread is the endpoint's agent, which calls the library only while it has the
 * role.
 */
bool agent_is_me(const struct endpoint *e);
void agent_forget(void); /* in a forked child: the thread that forked is no agent there */

/* The program has come in while the agent sleeps: disarms the bell and lets the agent watch. */
void agent_relieve(struct endpoint *e);

/* Around a sleep of the program's inside a call: the agent need not look at it meanwhile. */
void agent_doze(struct endpoint *e);
void agent_rouse(struct endpoint *e);

#endif

/* cost: protection control */
