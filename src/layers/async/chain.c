/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous sends. Every pair of ranks that uses them has a chain: a channel that the processor
 * of the one fills and that of the other drains. It is made with the first message, offered with a
 * request, and stays. A message goes through four stages, each of which may have to be tried again:
 * its procedure is named in the chain, the other side is told that something has come, the filler
 * fills, the message is ended.
 *
 * The other side is told after the procedure was named, so whoever hears of it finds it; and it is
 * told of every message, so a drainer that finds nothing may go.
 */
#include <errno.h>

#include "async/async.h"
#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"

/* -- Ends ----------------------------------------------------------------------------------- */

/* The first message of the chain is over. */
static void order_end(struct chain *c, int error)
{
	struct order *o = c->first;
	tern_op *op = o->op;
	c->first = o->next;
	if (!c->first)
		c->last = NULL;
	c->stage = STAGE_NAME;
	record_give(&c->a->orders, o);
	op_end(c->a->e, op, error);
}

/* Nobody is there, or nothing can be sent: all messages fail, and the next one tries anew. */
static void chain_fail(struct chain *c, int error)
{
	tern_chan *broken = c->chan;
	c->chan = NULL;
	c->state = CHAIN_MADE;
	while (c->first)
		order_end(c, error);
	if (broken)
		out_close(broken, PIPE_CLOSED); /* swept when the next end is made */
}

/* -- Opening ---------------------------------------------------------------------------------- */

/* 0 when the offer is sent: then nothing can be done until its answer comes. */
static int chain_offer(struct chain *c)
{
	struct endpoint *e = c->a->e;
	int rc = c->chan ? 0 : out_open(chans_of(e->t), CHAIN_NAME, &c->rank, 1, &c->chan);
	if (rc)
		return rc;
	c->chan->fixed = true;
	uint64_t ring[] = { mem_addr(mem_of(e->t), c->chan->pipe), c->chan->serial };
	rc = layer_request(e, c->rank, ASYNC_OPEN, NULL, 0, 2, ring);
	if (!rc)
		c->state = CHAIN_OFFERED;
	return rc;
}

void on_chain_opened(tern *t, const tern_msg *m)
{
	struct async *a = async_of(t);
	struct chain *c = &a->peer[tern_msg_src(m)].chain;
	int code = layer_error(tern_msg_word(m, 0));
	if (c->state != CHAIN_OFFERED)
		return;
	if (code) {
		chain_fail(c, code);
		return;
	}
	c->state = CHAIN_OPEN;
	out_expect(c->chan, 0, tern_msg_word(m, 1));
	queue_push(a, &c->work);
}

/* -- A message --------------------------------------------------------------------------------- */

/* A mirror, which hears of it in messages, wakes it by itself. */
static int stage_tell(struct chain *c)
{
	static const uint64_t none;
	if (c->chan->far)
		return 0;
	return layer_request(c->a->e, c->rank, ASYNC_BEGUN, NULL, 0, 0, &none);
}

static int stage_fill(struct chain *c, tern_out *out)
{
	const struct order *o = c->first;
	int rc = o->fill ? o->fill(c->a->e->t, out, o->arg) : 0;
	c->error = rc < 0 ? rc : 0;
	return turn_goes_on(rc) ? rc : 0;
}

static int stage_try(struct chain *c, tern_out *out)
{
	switch (c->stage) {
	case STAGE_NAME:
		return out_limit(c->chan) ? tern_chan_call(out, c->first->id) : out_gone(c->chan);
	case STAGE_TELL:
		return stage_tell(c);
	case STAGE_FILL:
		return stage_fill(c, out);
	default:
		return tern_chan_end(out);
	}
}

/* Where the chain's end stands, as far as puts are concerned. */
static tern_out chain_place(const struct chain *c, const tern_out *out)
{
	return c->chan->far ? c->chan->real : *out;
}

/* As far as it gets in this turn. */
static int order_turn(struct chain *c)
{
	tern_out out = tern_chan_out(c->chan), before = chain_place(c, &out);
	int rc;
	while ((rc = stage_try(c, &out)) == 0 && c->stage != STAGE_END)
		c->stage++;
	tern_chan_out_back(&out);
	tern_out after = chain_place(c, &out);
	c->a->moved += after.next != before.next || after.at != before.at;
	if (rc)
		return rc;
	order_end(c, c->error);
	return 1;
}

static int chain_turn(tern *t, void *arg)
{
	struct chain *c = arg;
	int rc = c->first ? send_reachable(t->own, c->rank) : 0;
	if (!rc && c->first && c->state == CHAIN_OPEN)
		rc = order_turn(c);
	else if (!rc && c->first && c->state == CHAIN_MADE)
		rc = chain_offer(c);
	if (rc < 0 && rc != -EAGAIN)
		chain_fail(c, rc);
	return c->first ? rc : 0;
}

void chain_lost(struct async *a, uint32_t rank)
{
	if (a->peer[rank].chain.first)
		queue_push(a, &a->peer[rank].chain.work);
}

/* -- Handing over ------------------------------------------------------------------------------ */

static int async_check(struct async *a, uint32_t rank, unsigned id)
{
	int rc = rules_destination(a->e, rank);
	if (!rc)
		rc = rules_number("receive procedure", id, TERN_PROCS_MAX);
	if (!rc && !a->drainer[id].fn)
		rc = error_set(
			-ENXIO,
			"receive procedure %u of rank %u was named, but none is registered under "
			"that number: every rank registers the same ones with tern_async_on()",
			id, rank);
	return rc;
}

static int order_add(struct async *a, uint32_t rank, const struct order *wanted)
{
	struct chain *c = &a->peer[rank].chain;
	struct order *o;
	struct wait wait = { .call = "an asynchronous send" };
	int rc = mem_record(mem_of(a->e->t), &a->orders, &wait, &o);
	if (rc)
		return rc;
	struct record record = o->record;
	*o = *wanted;
	o->record = record;
	*(c->last ? &c->last->next : &c->first) = o;
	c->last = o;
	c->a = a;
	c->rank = rank;
	c->work.fn = chain_turn;
	c->work.arg = c;
	o->op->pending++;
	queue_push(a, &c->work);
	return 0;
}

int tern_async_send_start(tern *t, uint32_t rank, unsigned id, tern_filler *fill, void *arg,
			  tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	tern_op own = TERN_OP;
	struct order o = { .fill = fill, .arg = arg, .id = id, .op = op ? op : &own };
	int rc = async_enter(t->own, op, "tern_async_send_start() without a handle");
	if (!rc)
		rc = async_check(async_of(t), rank, id);
	if (!rc && t->own->site.peer[rank].lost)
		rc = send_reachable(t->own, rank);
	if (!rc)
		rc = order_add(async_of(t), rank, &o);
	return op_finish(t, op, &own, rc);
}
