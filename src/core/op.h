/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of operations, as the layers that end them see them. */
#ifndef TERN_CORE_OP_H
#define TERN_CORE_OP_H

#include <tern/op.h>

#include "core/scope.h"

/* Tells a handle that one operation has ended. */
void op_end(struct endpoint *e, tern_op *op, int error);
/* The condition of a wait for the handle `op`. */
bool op_ended(struct endpoint *e, void *op);
/*
 * Takes back an operation that did not start; `before` were pending when it was tried. If these
 * have ended meanwhile, it is now that nothing is pending.
 */
void op_withdraw(struct endpoint *e, tern_op *op, uint32_t before);
/* Defers `done`, once however often it is asked for. */
void op_done(struct endpoint *e, tern_op *op);
/* Whether a handle has nobody to tell: an operation that is complete on return leaves it alone. */
static inline bool op_silent(const tern_op *op)
{
	return op && !((uintptr_t)op->flag | (uintptr_t)op->done);
}
/* Tells a handle of an operation that was never pending. */
static inline void op_over(struct endpoint *e, tern_op *op)
{
	if (op_silent(op))
		return;
	op->pending++;
	op_end(e, op, 0);
}
/*
 * Ends a call that starts operations: blocking, with a handle of its own, if it was given none. A
 * call that blocks asks rules_wait() before it starts anything that does not end at once.
 */
int op_finish(tern *t, tern_op *op, tern_op *own, int rc);

#endif
