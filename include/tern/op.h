/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles for operations under way, of whatever layer: transfers, atomics, sends, receives. */
#ifndef TERN_OP_H
#define TERN_OP_H

#include <tern/tern.h>

TERN_BEGIN_

/*
 * A handle for operations under way: any number of them. Zero it before its first
 * use (TERN_OP). When an operation completes, `flag`, if it is set, is signalled
 * with 1, so that tern_wait() can count. When none is pending any more, `done`, if it is set, is
 * called where deferred functions run; until then the handle must stay.
 *
 * A call that begins an operation takes the handle last. Without one, NULL, it waits until the
 * operation is complete.
 *
 * A handle keeps the code of its first error and not the sentence: tern_strerror() has that only
 * until this thread's next error. An operation that needs a rank which has left fails with
 * -EOWNERDEAD or -ESHUTDOWN as soon as this rank knows.
 */
typedef void tern_op_done(tern *t, tern_op *op);
struct tern_op {
	uint32_t pending; /* operations started with it and not complete */
	int error;        /* of the first that failed */
	tern_flag *flag;
	tern_op_done *done;
	void *arg;        /* the program's */
	tern_op *queued_; /* the library's: `done` is to be called */
};

#define TERN_OP                              \
	{                                    \
		0, 0, NULL, NULL, NULL, NULL \
	}

/*
 * Returns 1 when nothing is pending, else 0, and does nothing more: it serves no messages and
 * leaves the error. What the operations have brought can be read then.
 */
TERN_INLINE_ int tern_op_ready(const tern_op *op);
/*
 * Serves messages, once. Returns 1 when nothing is pending, 0 while something is, or the first
 * error (once).
 */
int tern_op_test(tern *t, tern_op *op);
/*
 * Serves messages until nothing is pending; 0 or the first error (once). While a receive from any
 * rank is pending, it gives up as tern_wait() does, and the receive stays pending.
 */
int tern_op_wait(tern *t, tern_op *op);
/*
 * The same for at most `ns` nanoseconds: then -ETIMEDOUT, and what is pending stays so. 0 ns:
 * serves what has arrived, once.
 */
int tern_op_wait_for(tern *t, tern_op *op, uint64_t ns);

/*
 * Serves messages until one of `n` handles has nothing pending, looking at them in order:
 * its index goes to *which, and the result is that handle's.
 */
int tern_op_wait_any(tern *t, tern_op *const *ops, size_t n, size_t *which);

/* -- Sends and receives under way (tern/send.h) --------------------------------------------- */

enum tern_state {
	TERN_STATE_COMPLETE,    /* nothing is pending: it is complete, or none was started */
	TERN_STATE_IN_USE,      /* started, and not matched */
	TERN_STATE_IN_PROGRESS, /* data flow */
};

/*
 * The state of the send or receive that was started with `op`; of several, IN_USE while one of them
 * is. Serves no messages. That a message waits for a receive, tern_probe() tells.
 */
enum tern_state tern_op_state(tern *t, const tern_op *op);

/*
 * Takes back every send and receive of the handle that has not been matched: it completes with
 * -ECANCELED. -EALREADY if data flow for one, or none is under way; a send that its receiver knows
 * of is asked for there.
 */
int tern_op_cancel(tern *t, tern_op *op);

/* -- The inline path ------------------------------------------------------------------------- */

/* The progress thread ends operations, too. */
TERN_INLINE_ int tern_op_ready(const tern_op *op)
{
	return __atomic_load_n(&op->pending, __ATOMIC_ACQUIRE) == 0;
}

TERN_END_

#endif
