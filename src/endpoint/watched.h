/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread sanitizer, where it watches the program and this library was not compiled with it. It then
 * does not see what messages order, and would report races that are none. So the library tells it,
 * at every step from the program into the library and back: calls, and handlers. All of them are
 * ordered by one object: what a thread did before a call comes before whatever a thread does after
 * a later step. That is more than a message orders, so some races are not found; but none is
 * reported that is none.
 *
 * In such a program each call opens a scope, as with TERN_CHECK, so all of them pass scope.c; and
 * handlers are called through a function that stands in their places, as with TERN_WATCHDOG. In
 * others nothing is paid.
 */
#ifndef TERN_ENDPOINT_WATCHED_H
#define TERN_ENDPOINT_WATCHED_H

#include "endpoint/endpoint.h"

/* Whether the sanitizer is there; the answer is always the same. */
bool watched(void);

/* The program comes into the library, and goes back. They nest. */
void watched_enter(void);
void watched_leave(void);

/* Where `m` is not the head's `current`: whether it can be replied to all the same. */
bool watched_first(struct endpoint *e, const tern_msg *m);

/* Calls `fn`, which handles `m` for the program or the library. */
void watched_deliver(tern *t, const tern_msg *m, tern_handler *fn);

#endif
