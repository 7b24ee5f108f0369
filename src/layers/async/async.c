/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer itself. */
#include "async/async.h"

#include <stdio.h>

#include "core/wait.h"

int async_enter(struct endpoint *e, const tern_op *op, const char *what)
{
	int rc = rules_rank(e, "work that is handed over");
	if (rc)
		return rc;
	if (!op)
		return rules_wait(e, what);
	if (!attach_is_mine(e))
		attach_first(e); /* another thread may be giving it turns */
	return rules_forked(e);
}

static int async_open(struct endpoint *e, void *state)
{
	struct async *a = state;
	a->e = e;
	a->tasks = (struct pool_of){ .bytes = sizeof(struct task), .most = TERN_QUEUE_MAX };
	a->orders = (struct pool_of){ .bytes = sizeof(struct order), .most = TERN_ASYNC_MAX };
	a->writes = (struct pool_of){ .bytes = sizeof(struct write), .most = TERN_ASYNC_MAX };
	ASYNC_MESSAGES(LAYER_ON)
	return 0;
}

/* Its channels are the channel layer's, which closes them. */
static void async_close(void *state)
{
	struct async *a = state;
	pool_free(&a->tasks);
	pool_free(&a->orders);
	pool_free(&a->writes);
}

static void async_lost(void *state, uint32_t rank)
{
	chain_lost(state, rank);
	intake_look(state, rank);
}

static bool async_over(struct endpoint *e, void *arg)
{
	const struct async *a = arg;
	return !a->orders.used && !a->writes.used && !chans_of(e->t)->owes;
}

static int async_stop(struct endpoint *e, struct wait *w)
{
	return wait_stalled(e, w, ((const struct async *)w->arg)->moved);
}

/* What was handed over to be sent is sent, as long as those it goes to take it. */
static void async_leave(void *state)
{
	struct async *a = state;
	struct wait w = { .bounded = true,
			  .call = "tern_close",
			  .lack = "what was handed over",
			  .rule = "tern_close()",
			  .stop = async_stop };
	wait_until(a->e, async_over, a, &w);
}

static void async_report(const void *state, int fd)
{
	const struct async *a = state;
	if (!a->works && !a->tasks.used && !a->orders.used && !a->writes.used)
		return;
	dprintf(fd,
		"rank %u: %u in the queue, %u of them functions; %u asynchronous sends, %u "
		"writes\n",
		a->e->t->rank, a->works, a->tasks.used, a->orders.used, a->writes.used);
}

LAYER_FITS(struct async, ASYNC_RAISE, ASYNC_HANDLERS_END);
const struct layer async_layer = { .bytes = sizeof(struct async),
				   .bytes_a_rank = sizeof(struct async_peer),
				   .open = async_open,
				   .close = async_close,
				   .progress = queue_progress,
				   .lost = async_lost,
				   .leave = async_leave,
				   .report = async_report };
