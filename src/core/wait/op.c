/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of operations under way: testing them, waiting for them. */
#include "core/layers.h"

#include <errno.h>

#include "base/error.h"
#include "core/wait.h"

/* -- Telling the program that nothing is pending ---------------------------------------------- */

/*
 * Calls `done` of the handles that are queued, but not of those that have come to be pending again:
 * they will be queued again. The last one's link points to itself.
 */
static void ops_tell(tern *t, void *arg)
{
	struct endpoint *e = t->own;
	tern_op *op = e->defer.ops_done, *next;
	(void)arg;
	e->defer.ops_done = e->defer.ops_done_last =
		NULL; /* the next one defers this function again */
	for (; op; op = next) {
		next = op->queued_ == op ? NULL : op->queued_;
		op->queued_ = NULL; /* before the call, which may free the handle */
		if (!op->pending && op->done)
			op->done(t, op);
	}
}

void op_done(struct endpoint *e, tern_op *op)
{
	if (op->queued_)
		return;
	op->queued_ = op;
	if (e->defer.ops_done_last)
		e->defer.ops_done_last->queued_ = op;
	else
		defer_add(e, ops_tell, NULL); /* there is a place for it */
	e->defer.ops_done = e->defer.ops_done ? e->defer.ops_done : op;
	e->defer.ops_done_last = op;
}

void op_end(struct endpoint *e, tern_op *op, int error)
{
	tern_flag *flag = op->flag;
	bool tells = op->done != NULL;
	uint32_t left = op->pending - 1;
	if (error && !op->error)
		__atomic_store_n(&op->error, error, __ATOMIC_RELAXED); /* op_is_set_up() may look */
	/* Without `done`, a program that sees that nothing is pending may use its memory again. */
	__atomic_store_n(&op->pending, left, __ATOMIC_RELEASE);
	if (flag)
		tern_signal(e->t, flag, 1);
	if (TERN_UNLIKELY(tells) && !left)
		op_done(e, op);
}

bool op_ended(struct endpoint *e, void *op)
{
	(void)e;
	return !((const tern_op *)op)->pending;
}

void op_withdraw(struct endpoint *e, tern_op *op, uint32_t before)
{
	op->pending--;
	if (op->done && before && !op->pending)
		op_done(e, op);
}

/* -- Testing and waiting ---------------------------------------------------------------------- */

static int op_take_error(tern_op *op)
{
	int error = op->error;
	op->error = 0;
	return error;
}

static int op_missing(const char *call)
{
	return error_set(-EINVAL, "%s was given a handle that is NULL", call);
}

int tern_op_test(tern *t, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	int rc = rules_forked(t->own);
	if (rc)
		return rc;
	if (!op)
		return op_missing("tern_op_test()");
	rc = tern_poll(t);
	if (rc < 0)
		return rc;
	if (op->pending)
		return 0;
	rc = op_take_error(op);
	return rc ? rc : 1;
}

struct ops {
	tern_op *const *op;
	size_t n, over; /* the index of one that is over, or n */
};

static bool ops_over(struct endpoint *e, void *arg)
{
	struct ops *any = arg;
	(void)e;
	for (any->over = 0; any->over < any->n; any->over++)
		if (any->op[any->over]->pending == 0)
			return true;
	return false;
}

/*
 * Of what needs a certain rank, its layer ends what that rank leaves undone; what needs anyone ends
 * like a wait for a flag.
 */
static int ops_blame(struct endpoint *e, struct wait *w)
{
	const struct ops *any = w->arg;
	if (!w->since || !lost_count(e))
		return 0;
	for (size_t i = 0; i < any->n; i++)
		if (any->op[i]->pending && layers_need_anyone(e, any->op[i]))
			return wait_blame(e, w);
	return 0;
}

static void ops_await(struct endpoint *e, struct wait *w, uint64_t *set)
{
	w->lack = layers_await(e, set);
}

static int ops_wait(struct endpoint *e, struct ops *any, struct wait *w, uint64_t ns)
{
	w->recv_only = true;
	w->stop = ops_blame;
	w->awaits = ops_await;
	int rc = wait_until_limit(e, ops_over, any, w, ns);
	return rc ? rc : op_take_error(any->op[any->over]);
}

static int op_wait(tern *t, tern_op *op, struct wait *w, uint64_t ns)
{
	INSIDE struct scope scope = scope_of_op(&t, op, w->call);
	if (t->own->forked)
		return rules_forked(t->own);
	return op ? ops_wait(t->own, &(struct ops){ &op, 1, 1 }, w, ns) : op_missing(w->rule);
}

int tern_op_wait(tern *t, tern_op *op)
{
	if (TERN_LIKELY(t && op) && t->reach && !op->pending && op_is_set_up(op))
		return op_take_error(op); /* the program's own call, and nothing to wait for */
	return op_wait(t, op, &WAIT_IN("tern_op_wait"), WAIT_FOREVER);
}

int tern_op_wait_for(tern *t, tern_op *op, uint64_t ns)
{
	return op_wait(t, op, &WAIT_IN("tern_op_wait_for"), ns);
}

int op_finish(tern *t, tern_op *op, tern_op *own, int rc)
{
	if (op)
		return rc;
	struct wait w = { .call = "tern_op_wait", .recv_only = true };
	wait_through(t->own, op_ended, own, &w);
	return rc ? rc : own->error;
}

static int ops_check(tern_op *const *ops, size_t n, const char *call)
{
	for (size_t i = 0; i < n; i++) {
		if (!ops || !ops[i])
			return op_missing(call);
		if (!op_is_set_up(ops[i]))
			return error_set(-EINVAL, "%s was given " OP_NOT_SET_UP, call);
	}
	return 0;
}

int tern_op_wait_any(tern *t, tern_op *const *ops, size_t n, size_t *which)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked)
		return rules_forked(t->own);
	struct ops any = { ops, n, n };
	if (!n || !ops)
		return error_set(-EINVAL, "tern_op_wait_any() was given no handle to wait for");
	int rc = ops_check(ops, n, "tern_op_wait_any()");
	if (!rc)
		rc = ops_wait(t->own, &any, &WAIT_IN("tern_op_wait_any"), WAIT_FOREVER);
	if (any.over < n)
		*which = any.over;
	return rc;
}
