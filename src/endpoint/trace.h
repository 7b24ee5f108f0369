/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recording what an endpoint does, when TERN_TRACE says so.
 *
 * While it is off, `trace` of the endpoint is NULL and nothing here is called: a poll,
 * a slow send and a step of a wait test that pointer. While it is on, every send comes
 * to the library: `reach` stays 0 for requests, and handlers find a lane that refuses for
 * replies; and every handler is called through a function that stands in its place in
 * the table (handler.c). So neither the inline path nor the draining of a ring knows of it.
 *
 * Records go to a buffer that the endpoint's thread alone uses and writes out when it is
 * full, before a sleep, and at the end. What the file does not take stays in the buffer;
 * what the buffer has no room for is dropped and counted.
 */
#ifndef TERN_ENDPOINT_TRACE_H
#define TERN_ENDPOINT_TRACE_H

#include "endpoint/endpoint.h"
#include "endpoint/record.h"

/* What the end of a handler repeats of its beginning. */
struct delivery {
	uint32_t sequence;
	uint16_t peer, handler;
};

/*
 * Before handlers are registered. 0, with or without a trace; else why the file cannot be written.
 */
int trace_open(struct endpoint *e);
void trace_close(struct endpoint *e);
void trace_flush(struct trace *r); /* to the file */

/* What the handler is called. Not needed for anything else, so left out where there is no room. */
void trace_name(struct endpoint *e, unsigned id, const char *name);

/* The rest is called only where there is a trace. */
void trace_send(struct endpoint *e, uint32_t dst, enum record_kind kind, const struct parcel *p);
/* Around a handler. */
struct delivery trace_arrived(struct endpoint *e, const tern_msg *m);
void trace_handled(struct endpoint *e, struct delivery d);
void trace_drained(struct endpoint *e); /* a batch of messages is over */
void trace_barrier(struct endpoint *e, enum record_kind kind);
/* Of a call on a team, or of a light thread: `call` is NULL then. */
void trace_call(struct endpoint *e, enum record_kind kind, const char *call);

/*
 * Around each step of a wait for `what` in `call`, which may be NULL. A wait begins with its first
 * step, which sets `begun`, and is over when its last step was: that is known as soon as anything
 * else is recorded.
 */
void trace_step(struct endpoint *e, enum wait_what what, const char *call, bool *begun);
void trace_stepped(struct endpoint *e);

#endif
