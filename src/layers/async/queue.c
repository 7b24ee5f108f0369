/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue: who has the next turn. */
#include <errno.h>

#include "async/async.h"
#include "base/error.h"

static void work_append(struct async *a, struct work *w)
{
	w->next = NULL;
	*(a->last ? &a->last->next : &a->first) = w;
	a->last = w;
	a->works++;
	layer_work(a->e, LAYER_ASYNC, true);
}

static struct work *work_take(struct async *a)
{
	struct work *w = a->first;
	a->first = w->next;
	if (!a->first)
		a->last = NULL;
	a->works--;
	layer_work(a->e, LAYER_ASYNC, a->works != 0);
	return w;
}

void queue_push(struct async *a, struct work *w)
{
	if (w->queued)
		return;
	w->queued = true;
	a->vain = 0;
	work_append(a, w);
}

/*
 * Under a hold, so that no handler runs and no send waits; `turn` makes channels and waits come
 * back.
 */
static int work_turn(struct async *a, struct work *w)
{
	struct endpoint *e = a->e;
	library_hold(e);
	e->turn = true;
	int rc = w->fn(e->t, w->arg);
	e->turn = false;
	library_release(e);
	return rc;
}

static void task_over(struct async *a, struct task *k, int rc)
{
	tern_op *op = k->op;
	record_give(k->pool, k);
	op_end(a->e, op, rc < 0 ? rc : 0);
}

/*
 * One turn. Something was done unless every thing in the queue has had its turn in vain: then
 * whoever waits may nap, because it is for other ranks to make room.
 */
unsigned queue_progress(void *state)
{
	struct async *a = state;
	if (!a->first || a->e->turn)
		return 0;
	struct work *w = work_take(a);
	int rc = work_turn(a, w);
	a->vain = rc == -EAGAIN ? a->vain + 1 : 0;
	w->queued = turn_goes_on(rc);
	if (w->queued)
		work_append(a, w);
	else if (w->task)
		task_over(a, w->task, rc);
	return a->vain == 0 || a->vain < a->works;
}

void task_begin(struct async *a, struct pool_of *p, struct task *k, tern_async_turn *fn, void *arg,
		tern_op *op)
{
	k->pool = p;
	k->work = (struct work){ .fn = fn, .arg = arg, .task = k };
	k->op = op;
	op->pending++;
	queue_push(a, &k->work);
}

static int task_add(struct async *a, tern_async_turn *fn, void *arg, tern_op *op)
{
	if (!fn)
		return error_set(-EINVAL, "tern_async_start() was given no function");
	struct task *k = record_take(&a->tasks);
	if (!k)
		return error_set(-EAGAIN,
				 "%u functions are in the queue of rank %u: let it poll first",
				 a->tasks.used, a->e->t->rank);
	task_begin(a, &a->tasks, k, fn, arg, op);
	return 0;
}

int tern_async_start(tern *t, tern_async_turn *fn, void *arg, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	tern_op own = TERN_OP;
	int rc = async_enter(t->own, op, "tern_async_start() without a handle");
	if (!rc)
		rc = task_add(async_of(t), fn, arg, op ? op : &own);
	return op_finish(t, op, &own, rc);
}
