/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work handed over to the communication processor: whoever polls an endpoint while its program
 * computes (a thread of the library, an interrupt), or else the program itself in its own polls
 * and waits. The calls here write down what is to be done and return.
 *
 * The processor does it in turns: a function is called, does a bounded part of its work and
 * returns, and is called again until it says that it is over. Between two turns messages are
 * handled. In a turn nothing waits: what would have to (a send without room, a put into a full
 * channel, a get from an empty one) returns -EAGAIN and has done nothing, and the turn returns that
 * in turn, to be called again. All other waits are refused there: -EDEADLK.
 *
 * Conventions are those of <tern/tern.h>. Handles are those of <tern/op.h>; without one
 * (NULL) a call waits until the work is over. With one, all of these calls may be made in the
 * program, in handlers, in turns and under a hold.
 */
#ifndef TERN_ASYNC_H
#define TERN_ASYNC_H

#include <tern/chan.h>
#include <tern/mem.h>
#include <tern/op.h>

TERN_BEGIN_

/* -- The queue ---------------------------------------------------------------------------- */

/*
 * One turn. 1: there is more to do, call again; -EAGAIN: there is, but nothing could be done now;
 * 0: it is over. Any other negative code: it is over, and that is the handle's error.
 */
typedef int tern_async_turn(tern *t, void *arg);

/*
 * Gives fn(t, arg) one turn after another until it is over. Everything in the queue has its turn in
 * a circle, one in each poll, after the messages that have arrived. -EAGAIN
 * when TERN_QUEUE_MAX functions are in the queue. What is not over when the endpoint is closed is
 * dropped.
 */
int tern_async_start(tern *t, tern_async_turn *fn, void *arg, tern_op *op);

/* -- Asynchronous sends --------------------------------------------------------------------- */

/*
 * Fills the chain to a rank: puts, in any number of pieces. Called in turns; its result is that of
 * a turn. What it has put when it fails is delivered, and ends there.
 */
typedef int tern_filler(tern *t, tern_out *out, void *arg);

/* A message that is being received. */
typedef struct tern_incoming {
	tern_in *in;     /* where to get it from, in this turn */
	uint32_t src;    /* the rank that sent it */
	uint64_t own[4]; /* the procedure's own, 0 when the message begins: how far it is, say */
} tern_incoming;

/*
 * Drains a chain. Called in turns; its result is that of a turn. What it leaves of its message is
 * dropped.
 */
typedef int tern_drainer(tern *t, tern_incoming *m, void *arg);

/*
 * Registers a receive procedure; every rank uses the same numbers. They are those of
 * tern_chan_on(): a number has one procedure or the other. It is run by the processor as soon as
 * its message begins to arrive.
 */
int tern_async_on(tern *t, unsigned id, tern_drainer *fn, void *arg);

/*
 * Sends a message to rank `dst`: `fill` fills the chain there, and procedure `id` of that rank
 * drains it. `fill` may be NULL, for a message that says all by coming. Messages to one rank go in
 * the order of these calls. Complete when all is in the chain: `arg`, and what it leads to, is the
 * program's again. When TERN_ASYNC_MAX are waiting, the call serves messages until there is room,
 * or returns -EAGAIN where it may not wait.
 */
int tern_async_send_start(tern *t, uint32_t dst, unsigned id, tern_filler *fill, void *arg,
			  tern_op *op);

/* -- Remote read and write --------------------------------------------------------------------- */

/*
 * Gets from, or puts to, memory of another rank as tern_get_start() and tern_put_start() do, but
 * nothing is moved in the call, which is therefore legal in handlers whatever the memory. The local
 * memory belongs to the operation until it completes; up to 8 bytes are copied. When a write has
 * landed, 1 is added to the 64-bit word at `flag` (memory of the same rank, or TERN_ADDR_NONE), as
 * by tern_signal(): tern_wait() there can count it. Several under way have no order.
 */
int tern_async_get_start(tern *t, void *dst, tern_addr src, size_t len, tern_op *op);
int tern_async_put_start(tern *t, tern_addr dst, const void *src, size_t len, tern_addr flag,
			 tern_op *op);

/* -- The internal buffer ------------------------------------------------------------------- */

/*
 * Two channels between the program and the communication processor of one endpoint: the ends of one
 * side, to send to the other and to receive from it. What runs on the processor is turns,
 * procedures, handlers. All calls of <tern/chan.h> but tern_chan_close() apply.
 *
 * A message to the processor that begins with a procedure (tern_chan_call(), a number of
 * tern_async_on()) is drained by it, as if it came from another rank; `src` is the own one. What
 * begins otherwise is left for turns to get. The program runs procedures that come from the
 * processor with tern_chan_run().
 */
enum tern_async_side { TERN_ASYNC_PROGRAM, TERN_ASYNC_PROCESSOR };
int tern_async_chan(tern *t, enum tern_async_side side, tern_chan **to, tern_chan **from);

enum { TERN_QUEUE_MAX = 256, TERN_ASYNC_MAX = 256 };

TERN_END_

#endif
