/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handler that does not return, or a hold that is not released, stops a rank and in the end its
 * job. Where TERN_WATCHDOG says how long either may last, a thread looks at each endpoint now and
 * then, says which handler it is, since when, and who waits behind it, and ends the job.
 *
 * Time counts while the thread that handles is on a core, or sleeps. While it waits for a core, or
 * a debugger has stopped it, that is no fault of the handler's.
 *
 * While it is off, `watchdog` of the endpoint is NULL and nothing is paid. While it is on, each
 * handler is called through a function that stands in its place in the table (handler.c) and notes
 * that it has begun, and holds come to the library.
 */
#ifndef TERN_ENDPOINT_WATCHDOG_H
#define TERN_ENDPOINT_WATCHDOG_H

#include "endpoint/endpoint.h"

/*
 * Before handlers are registered. 0, with or without a watchdog, or a code with a sentence. `end`
 * ends the job, and is called by the watchdog's thread.
 */
int watchdog_open(struct endpoint *e, void (*end)(tern *t, int status));
void watchdog_close(struct endpoint *e);

/* Around a handler. They nest: one of a request may poll for replies. */
uint64_t watchdog_handles(struct endpoint *e, const tern_msg *m);
void watchdog_handled(struct endpoint *e, uint64_t before);

/* A hold has begun, where there is a watchdog. */
void watchdog_hold(struct endpoint *e);

#endif
