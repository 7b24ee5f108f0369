/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers, and the end of collective calls, in which no handler runs any more. */
#include <errno.h>

#include "base/cpu.h"
#include "base/error.h"
#include "core/called.h"
#include "core/layers.h"
#include "core/wait.h"
#include "endpoint/trace.h"

enum {
	SETTLE_MOST = 1000,   /* steps for room for replies before a silent barrier */
	SILENT_YIELDS = 1000, /* of a silent barrier before it naps, */
	SILENT_NAP_NS = 50000
};

/* The last network's is everybody's: it includes those of the others. */
static struct net *barrier_net(const struct endpoint *e)
{
	return e->net[e->nets - 1];
}

static bool barrier_passed(struct endpoint *e, void *ticket)
{
	struct net *net = barrier_net(e);
	return net->ops->passed(net, *(uint64_t *)ticket, NET_ALL);
}

/*
 * A barrier needs everybody, so whoever has left before it ends it at once. `ticket`: of one that
 * is under way; whoever passed it and left raised the generation first.
 */
static int barrier_missing(struct endpoint *e, uint64_t *ticket)
{
	struct net *all = barrier_net(e);
	if (!lost_count(e))
		return 0;
	for (uint32_t r = 0; r < e->t->size; r++) {
		struct net *net = e->site.peer[r].net;
		int rc = net->ops->check(net, r);
		if (rc && !(ticket && all->ops->passed(all, *ticket, r)))
			return ticket && barrier_passed(e, ticket) ? 0 : rc;
	}
	return 0;
}

/*
 * Handles what was sent here before the barrier: it has all arrived, though
 * requests may still wait for room for their replies. Peers that are past the barrier may send
 * without end: of what comes later, a turn of each inlet is handled at most.
 *
 * It has no bound, and cannot deadlock: room comes when the sender of the request takes replies in.
 * Every call that waits does that, and so does a barrier that is settling, so no circle of ranks
 * waits for each other in calls of Tern. A sender that computes delays this rank as it delays
 * whoever sends to it, and one that leaves needs no replies. The exception is the silent barrier at
 * the end of a collective call, which handles nothing: ranks before it settle for a bounded time.
 * No request of the program's is under way there.
 */
static void barrier_settle(struct endpoint *e)
{
	struct wait w = { .bounded = true,
			  .call = "tern_barrier",
			  .lack = "replies to requests sent before it have no room" };
	poll_mark(e);
	for (int i = 0; poll_is_due(e) && (!e->barrier.quiescing || i < SETTLE_MOST);)
		if (!poll_once(e, KINDS_BOTH)) {
			wait_step(e, &w);
			i++;
		}
}

static int barrier_stop(struct endpoint *e, struct wait *w)
{
	return w->since ? barrier_missing(e, w->arg) : 0;
}

static int barrier_pass(struct endpoint *e)
{
	struct net *net = barrier_net(e);
	uint64_t ticket = net->ops->arrive(net);
	struct wait w = { .call = "tern_barrier", .stop = barrier_stop };
	int rc = wait_until(e, barrier_passed, &ticket, &w);
	if (!rc)
		barrier_settle(e);
	return rc;
}

/* Between two looks at it: not as other waits do, because nobody else may run meanwhile. */
static void silent_rest(struct endpoint *e, uint32_t looks)
{
	if (looks < e->waiting.spin)
		cpu_relax();
	else if (looks - e->waiting.spin < SILENT_YIELDS)
		e->world->yield();
	else
		e->world->nap(SILENT_NAP_NS);
}

/*
 * A barrier in which no handler runs, and nothing that could call one. It needs no other rank to
 * handle anything: ranks that are past it may send here without end, and those that are not need no
 * reply.
 */
static int silent_barrier(struct endpoint *e)
{
	struct net *net = barrier_net(e);
	e->site.silent = true;
	uint64_t ticket = net->ops->arrive(net);
	e->site.silent = false;
	for (uint32_t looks = 0; !barrier_passed(e, &ticket); looks++) {
		poll_networks(e);
		silent_rest(e, looks);
		int rc = looks < e->waiting.spin ? 0 : barrier_missing(e, &ticket);
		if (rc)
			return rc;
	}
	return 0;
}

int barrier_busy(const struct endpoint *e, const char *call)
{
	if (!e->barrier.inside)
		return 0;
	return error_set(-EBUSY,
			 "%s was called while rank %u is in a barrier already: "
			 "a rank takes part once, whatever the number of its threads",
			 call, e->t->rank);
}

/* Whether the endpoint may enter one now. */
static int barrier_check(struct endpoint *e, const char *call)
{
	int rc = barrier_missing(
		e, NULL); /* before taking a ticket: it could complete a later round */
	return rc ? rc : barrier_busy(e, call);
}

static void barrier_enter(struct endpoint *e)
{
	if (TERN_UNLIKELY(e->trace))
		trace_barrier(e, RECORD_BARRIER);
	e->barrier.inside = true;
	e->barrier.round++;
	if (e->work)
		layers_progress(e); /* what they have put off was done before the barrier */
	if (e->owner.checked && !e->barrier.quiescing)
		called_tell(e);
}

static int barrier_leave(struct endpoint *e, int rc)
{
	e->barrier.inside = false;
	if (TERN_UNLIKELY(e->trace))
		trace_barrier(e, RECORD_PASSED);
	return rc ? rc : called_compare(e);
}

int tern_barrier(tern *t)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	int rc = rules_rank_waits(e, "tern_barrier()");
	if (!rc)
		rc = barrier_check(e, "tern_barrier()");
	if (!rc && e->work)
		rc = layers_flush(e);
	if (rc)
		return rc;
	barrier_enter(e);
	return barrier_leave(e, barrier_pass(e));
}

/* -- In two phases ---------------------------------------------------------------------------- */

static unsigned barrier_end(struct endpoint *e, int rc)
{
	tern_op *op = e->barrier.op;
	e->barrier.op = NULL;
	e->work &= ~(1u << LAYERS_BARRIER);
	op_end(e, op, barrier_leave(e, rc));
	return 1;
}

unsigned barrier_progress(struct endpoint *e)
{
	if (!e->barrier.passed && !barrier_passed(e, &e->barrier.ticket)) {
		int rc = barrier_missing(e, &e->barrier.ticket);
		return rc ? barrier_end(e, rc) : 0;
	}
	if (!e->barrier.passed)
		poll_mark(e);
	e->barrier.passed = true;
	return poll_is_due(e) ? 0 : barrier_end(e, 0); /* polls handle what is due */
}

int tern_barrier_start(tern *t, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct endpoint *e = t->own;
	if (!op)
		return tern_barrier(t);
	int rc = rules_rank(e, "tern_barrier_start()");
	if (!rc)
		rc = rules_program(e, "tern_barrier_start()");
	if (!rc)
		rc = barrier_check(e, "tern_barrier_start()");
	if (rc)
		return rc;
	e->barrier.op = op;
	barrier_enter(e);
	e->barrier.passed = false;
	e->barrier.ticket = barrier_net(e)->ops->arrive(barrier_net(e));
	op->pending++;
	e->work |= 1u << LAYERS_BARRIER;
	return 0;
}

/* -- The end of a collective call -------------------------------------------------------------- */

/*
 * The end of a collective call that hands out what handlers may need, such as memory.
 *
 *     tern_alloc_all(t, bytes, &params);
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
void quiesce_begin(struct endpoint *e)
{
	e->barrier.quiescing = true;
	e->inner++; /* as in a layer's turn: light threads have none */
}

int quiesce_end(struct endpoint *e, int rc)
{
	if (!rc)
		rc = tern_barrier(e->t);
	if (!rc)
		rc = silent_barrier(e);
	e->inner--;
	e->barrier.quiescing = false;
	return rc;
}
