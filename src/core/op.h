/* SPDX-License-Identifier: BSD-3-Clause */
/* What layers do with the handles that programs give them. */
#ifndef TERN_CORE_OP_H
#define TERN_CORE_OP_H

#include <tern/op.h>

#include "core/endpoint.h"

/* Tells a handle that one operation has ended. */
void op_end(struct endpoint *e, tern_op *op, int error);
/* Ends a call that starts operations: blocking, with a handle of its own, if it was given none. */
int op_finish(tern *t, tern_op *op, tern_op *own, int rc);

#endif

/* cost: base status */
