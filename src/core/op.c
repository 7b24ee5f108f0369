/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/op.h"

#include <errno.h>

#include "base/error.h"
#include "core/layer.h"
#include "core/wait.h"

void op_end(struct endpoint *e, tern_op *op, int error)
{
	if (error && !op->error)
		op->error = error;
	op->pending--;
	if (op->flag)
		tern_signal(e->t, op->flag, 1);
}

static int op_take_error(tern_op *op)
{
	int error = op->error;
	op->error = 0;
	return error;
}

int tern_op_test(tern *t, tern_op *op)
{
	INSIDE struct door door = door_open(t);
	int rc = tern_poll(t);
	if (rc < 0)
		return rc;
	if (op->pending)
		return 0;
	rc = op_take_error(op);
	return rc ? rc : 1;
}

static bool op_over(struct endpoint *e, void *arg)
{
	(void)e;
	return ((tern_op *)arg)->pending == 0;
}

/* Of what needs a certain rank, its layer ends what that rank leaves undone; what needs anyone ends like a wait for a flag. */
static int op_blame(struct endpoint *e, struct ladder *l, tern_op *const *op, size_t n)
{
	if (!l->since || !poll_left(e))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (op[i]->pending && layers_need_anyone(e, op[i]))
			return wait_blame(e, l);
	return 0;
}

int tern_op_wait(tern *t, tern_op *op)
{
	INSIDE struct door door = door_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct endpoint *e = t->own;
	struct ladder l = { .over = op_over, .arg = op, .call = "tern_op_wait" };
	int rc = op->pending ? rules_wait(e, "tern_op_wait()") : 0;
	while (!rc && op->pending) {
		wait_step(e, &l);
		rc = held(e) && op->pending
			     ? rules_wait(e, "tern_op_wait()") /* a handler may have left one */
			     : op_blame(e, &l, &op, 1);
	}
	return rc ? rc : op_take_error(op);
}

int op_finish(tern *t, tern_op *op, tern_op *own, int rc)
{
	if (op)
		return rc;
	int waited = tern_op_wait(t, own);
	return rc ? rc : waited;
}

struct ops {
	tern_op *const *op;
	size_t n, over; /* the index of one that is over, or n */
};

static bool any_over(struct endpoint *e, void *arg)
{
	struct ops *any = arg;
	for (any->over = 0; any->over < any->n; any->over++)
		if (op_over(e, any->op[any->over]))
			return true;
	return false;
}

int tern_op_wait_any(tern *t, tern_op *const *ops, size_t n, size_t *which)
{
	INSIDE struct door door = door_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct endpoint *e = t->own;
	struct ops any = { ops, n, n };
	struct ladder l = { .over = any_over, .arg = &any, .call = "tern_op_wait_any" };
	int rc = n ? 0 : error_set(-EINVAL, "tern_op_wait_any() was given no handle to wait for");
	if (!rc && !any_over(e, &any))
		rc = rules_wait(e, "tern_op_wait_any()");
	while (!rc && !any_over(e, &any)) {
		rc = wait_on(e, &l, "tern_op_wait_any()");
		if (!rc && !any_over(e, &any))
			rc = op_blame(e, &l, ops, n);
	}
	if (rc && any.over == n)
		return rc;
	*which = any.over;
	return op_take_error(ops[any.over]);
}

int tern_op_wait_all(tern *t, tern_op *const *ops, size_t n)
{
	INSIDE struct door door = door_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	int first = 0;
	for (size_t i = 0; i < n; i++) {
		int rc = tern_op_wait(t, ops[i]);
		if (ops[i]->pending)
			return rc; /* it could not be waited for here */
		first = first ? first : rc;
	}
	return first;
}

/* cost: base status */
