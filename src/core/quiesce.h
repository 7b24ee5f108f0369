/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a collective call that hands out what handlers may need, such as memory.
 *
 *     params = tern_alloc_all(t, bytes);
 *
 * A rank that has returned may send a message whose handler uses `params`, while its receiver is
 * still in the call, and has yet to lay the result down. So no rank returns before all have stopped
 * running handlers, and none runs one again before it has returned. But a rank that just stops
 * while others still send would deadlock with them: their requests find no room. The call therefore
 * stops in steps, each of which ends when every rank has taken it:
 *
 *   1. All have entered. Until then everything is served, deferred functions and light threads
 *      included: a rank may need this one's answer before it can enter.
 *   2. quiesce_begin(): deferred functions and light threads wait. Nobody waits for them any more,
 *      since every rank is in the call. All ranks say so, and requests precede what says it in each
 *      ring: when all have been heard, no request of a program's is under way, and no new one will
 *      be sent.
 *   3. quiesce_end() passes a barrier, still serving: replies to the last requests have been
 *      handled as well.
 *   4. It passes a silent barrier, in which nothing is handled, nor waited for that would need
 *      another rank to handle anything. Whoever has passed it knows that nobody runs handlers, and
 *      returns.
 *
 * What ranks that have returned send meanwhile lies in the rings, and they wait for room there as
 * they would for a rank that computes.
 */
#ifndef TERN_CORE_QUIESCE_H
#define TERN_CORE_QUIESCE_H

#include "core/endpoint.h"

/* After every rank has entered. */
void quiesce_begin(struct endpoint *e);
/* After every rank has begun; `rc` is what has gone wrong so far, and is returned then, at once. */
int quiesce_end(struct endpoint *e, int rc);

#endif
