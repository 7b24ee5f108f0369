/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking messages in. A poll goes round the circle and drains each inlet where
 * something has arrived; one comparison tells a plain message from everything
 * else (nothing there, a closed gate, a control line, a payload, garbage).
 *
 * Replies are gated here: a request inlet's `accept` is 0 while a reply to that
 * peer could not be sent at once, so its requests stay where they are, and the
 * common case pays nothing for the promise.
 */
#include <errno.h>

#include "base/error.h"
#include "core/layer.h"
#include "core/trace.h"

enum {
	DRAIN_MOST = 128,       /* messages of one inlet after which the end of its leaf ends its turn */
	DEMOTE_EVERY = 1 << 15, /* inlets looked at in vain between two searches for silent peers */
};

/* What is saved when replies are polled for inside a request handler. */
struct frame {
	struct tern_inlet *inlet;
	const tern_msg *current;
	struct tern_lane *answer;
	struct block *block;
	bool block_kept;
	uint32_t reach;
};

static struct frame frame_enter(struct endpoint *e, struct tern_inlet *in)
{
	tern *t = e->t;
	struct frame f = { e->inlet, t->current, t->answer, e->block, e->block_kept, t->reach };
	e->inlet = in;
	e->block = NULL;
	e->used = true;
	if (t->reach) /* not written while it is 0: another thread may be reading it to attach */
		t->reach = 0;
	t->answer = TERN_UNLIKELY(e->trace) ? &e->refuse : in->answer;
	return f;
}

static void frame_leave(struct endpoint *e, const struct frame *f)
{
	e->inlet = f->inlet;
	e->block = f->block;
	e->block_kept = f->block_kept;
	e->t->current = f->current;
	e->t->answer = f->answer;
	if (f->reach)
		e->t->reach = f->reach;
}

/* Opens the gate if a reply, payload included, could be sent now. */
static bool gate_open(struct endpoint *e, struct tern_inlet *in)
{
	struct peer *p = &e->site.peer[in->peer];
	if (!p->lost && (!lane_ready(&p->answer) || !block_is(p->reserve, BLOCK_FREE)))
		return false;
	in->accept = TERN_HEAD_PLAIN;
	return true;
}

/* Bad input from a peer: say so once, pass it, and let the next poll return the code. */
static void drain_garbage(struct endpoint *e, struct tern_inlet *in, uint64_t head, const char *what)
{
	e->trouble = error_set(-EBADMSG,
			       "rank %u got a message with %s from rank %u (header %016llx); it was dropped",
			       e->t->rank, what, in->peer, (unsigned long long)head);
	error_warn("%s", tern_strerror(e->trouble));
	in->cursor += TERN_LINE - (uintptr_t)in->cursor % TERN_LINE;
}

static void drain_payload(struct endpoint *e, struct tern_inlet *in, uint64_t difference)
{
	const tern_msg *m = inlet_at(in);
	size_t len;
	const char *data = tern_msg_data(m, &len);
	const struct peer *p = &e->site.peer[in->peer];
	bool usual = pool_has(p->pool, block_of(data)) && len <= TERN_PAYLOAD_MAX;
	if (!usual && !p->net->ops->owns(p->net, in->peer, data, len)) {
		drain_garbage(e, in, atomic_load(&m->head), "a payload outside its sender's blocks");
		return;
	}
	in->cursor += TERN_LINE;
	e->block = block_of(data);
	e->block_kept = false;
	e->t->current = m;
	e->t->handler[(difference ^ TERN_HEAD_PAYLOAD) >> TERN_ID_SHIFT](e->t, m);
	if (!e->block_kept)
		block_set(e->block, BLOCK_FREE);
	e->block = NULL;
}

/* Everything but a plain message through an open gate. False when the inlet has had its turn. */
static bool drain_rare(struct endpoint *e, struct tern_inlet *in, uint64_t difference, unsigned *handled)
{
	if (difference >> TERN_LAP_SHIFT)
		return false; /* an older lap: nothing has arrived */
	if (inlet_control(in, difference))
		return *handled < DRAIN_MOST;
	if (difference >= TERN_HEAD_CONTROL) {
		drain_garbage(e, in, difference ^ in->expect, "a bad header");
		return true;
	}
	payload_forget_reply(e);
	if (in->accept == 0)
		return gate_open(e, in);
	drain_payload(e, in, difference);
	*handled += 1;
	return true;
}

/*
 * Handles an inlet's messages until there are none or it has had its turn. The
 * control line that ends a leaf also bounds the turn, so the loop counts nothing
 * but what it returns.
 */
static unsigned inlet_drain(struct endpoint *e, struct tern_inlet *in)
{
	tern *t = e->t;
	struct frame f = frame_enter(e, in);
	unsigned handled = 0;
	for (;;) {
		char *at = in->cursor;
		const tern_msg *m = (const tern_msg *)(const void *)at;
		/* A1, pairs with R1 in tern_line_write(): the words follow the header. */
		uint64_t x = atomic_load_explicit(&m->head, memory_order_acquire) ^ in->expect;
		if (TERN_UNLIKELY(x >= in->accept)) {
			if (!drain_rare(e, in, x, &handled))
				break;
			continue;
		}
		if (x & TERN_HEAD_PIECE) {
			in->cursor = at + TERN_PIECE;
		} else {
			__builtin_prefetch(at + TERN_PREFETCH * TERN_LINE);
			in->cursor = at + TERN_LINE;
		}
		t->current = m;
		t->handler[x >> TERN_ID_SHIFT](t, m);
		handled++;
	}
	payload_forget_reply(e);
	if (TERN_UNLIKELY(e->trace))
		trace_drained(e);
	frame_leave(e, &f);
	e->served += handled;
	return handled;
}

void poll_lost(struct endpoint *e)
{
	for (uint32_t r = 0; r < e->t->size; r++) {
		struct peer *p = &e->site.peer[r];
		if (!p->lost && p->net->ops->check(p->net, r) == 0)
			continue;
		if (!p->lost) {
			p->lost = true;
			layers_lost(e, r);
		}
		e->t->lane[r].limit = NULL; /* brings every send to tern_request_rare() */
		e->t->lane[r].piece = NULL;
		e->t->lane[r].end = NULL;
		/*
		 * What it held is ours again, once its last replies are read: some name our own
		 * blocks. It may have died before it knocked for them.
		 */
		if (p->replies.base && inlet_has(&p->replies))
			circle_add(&e->site, &p->replies);
		else
			p->net->ops->reclaim(p->net, r);
	}
}

uint32_t poll_left(struct endpoint *e)
{
	uint32_t left = 0;
	for (unsigned i = 0; i < e->nets; i++)
		left += e->net[i]->ops->left(e->net[i]);
	return left;
}

static void bell_answer(struct endpoint *e)
{
	for (unsigned i = 0; i < e->nets; i++)
		e->net[i]->ops->answer(e->net[i]);
	if (poll_left(e))
		poll_lost(e);
}

static void poll_deferred(struct endpoint *e);

static unsigned poll_circle(struct endpoint *e, unsigned kinds)
{
	unsigned handled = 0;
	struct tern_inlet *in = &e->site.bell;
	do {
		if (TERN_UNLIKELY(inlet_arrived(in))) {
			if (in->kind == TERN_BELL)
				bell_answer(e);
			else if (kinds & 1u << in->kind)
				handled += inlet_drain(e, in);
		}
		in = in->next;
	} while (in != &e->site.bell);
	return handled;
}

unsigned poll_inlet(struct endpoint *e, struct tern_inlet *in)
{
	unsigned handled = 0;
	e->t->peek = in->next; /* the next look begins behind it, so that all have their turn */
	if (in->kind == TERN_BELL)
		handled = poll_circle(e, KINDS_BOTH); /* whoever knocked has sent something */
	else
		handled = inlet_drain(e, in);
	if (e->deferred_count)
		poll_deferred(e);
	return handled;
}

/* Called after an empty poll; rarely does anything. */
static void poll_empty(struct endpoint *e)
{
	e->vain += e->site.circle;
	if (e->vain < DEMOTE_EVERY)
		return;
	e->vain = 0;
	for (unsigned i = 0; i < e->nets; i++)
		e->net[i]->ops->demote(e->net[i]);
	if (!e->hold)
		e->t->peek = &e->site.bell; /* it may have looked at one that left the circle */
}

static void poll_deferred(struct endpoint *e)
{
	if (e->deferring)
		return;
	e->deferring = true;
	for (uint32_t n = e->deferred_count; n; n--) { /* those that these defer wait for the next poll */
		struct deferred d = e->deferred[e->deferred_first];
		e->deferred_first = (e->deferred_first + 1) % TERN_DEFER_MAX;
		e->deferred_count--;
		d.fn(e->t, d.arg);
	}
	e->deferring = false;
}

int tern_defer(tern *t, void (*fn)(tern *t, void *arg), void *arg)
{
	struct endpoint *e = t->own;
	if (e->deferred_count == TERN_DEFER_MAX)
		return error_set(-EAGAIN,
				 "%d deferred functions are waiting already: let the program poll first",
				 TERN_DEFER_MAX);
	e->deferred[(e->deferred_first + e->deferred_count++) % TERN_DEFER_MAX] =
		(struct deferred){ fn, arg };
	return 0;
}

unsigned poll_once(struct endpoint *e, unsigned kinds)
{
	unsigned handled = poll_circle(e, kinds);
	if (!handled)
		poll_empty(e);
	if (TERN_UNLIKELY(e->work))
		handled += layers_progress(e);
	if (e->deferred_count)
		poll_deferred(e);
	return handled;
}

void tern_arrived(tern *t)
{
	poll_once(t->own, KINDS_BOTH);
}

static int poll_kinds(tern *t, unsigned kinds, const char *what)
{
	struct endpoint *e = t->own;
	if (TERN_UNLIKELY(!t->reach)) {
		int rc = rules_program(e, what);
		if (rc)
			return rc;
	}
	if (TERN_UNLIKELY(e->hold))
		return 0;
	unsigned handled = poll_once(e, kinds);
	if (TERN_UNLIKELY(e->trouble)) {
		int rc = e->trouble;
		e->trouble = 0;
		return rc;
	}
	return (int)handled;
}

int tern_poll(tern *t)
{
	return poll_kinds(t, KINDS_BOTH, "a poll");
}

int tern_poll_requests(tern *t)
{
	return poll_kinds(t, KINDS_REQUESTS, "a poll for requests");
}

int tern_poll_replies(tern *t)
{
	struct endpoint *e = t->own;
	if (attach_is_mine(e) && in_handler(e) && e->inlet->kind == TERN_REQUEST)
		return e->hold ? 0
			       : (int)poll_circle(e,
						  KINDS_REPLIES); /* no deeper: reply handlers do not poll */
	return poll_kinds(t, KINDS_REPLIES, "a poll for replies");
}

void tern_hold(tern *t)
{
	struct endpoint *e = t->own;
	if (!attach_is_mine(e))
		attach_first(e); /* or a thread that waits might borrow it and serve it under the hold */
	if (e->hold++ == 0)
		t->peek = &e->deaf;
}

void tern_release(tern *t)
{
	struct endpoint *e = t->own;
	if (e->hold && --e->hold == 0)
		t->peek = &e->site.bell;
}
