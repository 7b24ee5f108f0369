/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking messages in. A poll goes round the poll set and drains each inlet where
 * something has arrived; one comparison tells a plain message from everything
 * else (nothing there, a closed gate, a control line, a payload, garbage).
 *
 * Replies are gated here: a request inlet's `accept` is 0 while a reply to that
 * peer could not be sent at once, so its requests stay where they are, and the
 * common case pays nothing for the promise.
 */
#include <errno.h>

#include "base/error.h"
#include "core/layers.h"
#include "core/wait.h"
#include "endpoint/count.h"
#include "endpoint/handler.h"
#include "endpoint/trace.h"

enum {
	NEAR = 4,         /* messages in a row that show that the sender is some lines ahead */
	DRAIN_MOST = 128, /* messages of one inlet after which the end of its leaf ends its turn */
	DEMOTE_EVERY = 1 << 15, /* inlets looked at in vain between two searches for silent peers */
};
#define ALL UINT64_MAX /* messages */

/* What is saved when replies are polled for inside a request handler. */
struct frame {
	struct tern_inlet *inlet;
	const tern_msg *current;
	struct tern_lane *answer;
	struct block *block;
	bool block_kept;
	const tern_msg *carrying;
	uint32_t reach;
};

static struct frame frame_enter(struct endpoint *e, struct tern_inlet *in)
{
	tern *t = e->t;
	struct frame f = { e->inlet,      t->current,  t->answer, e->block,
			   e->block_kept, e->carrying, t->reach };
	e->inlet = in;
	e->block = NULL;
	e->carrying = NULL;
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
	e->carrying = f->carrying;
	e->t->current = f->current;
	e->t->answer = f->answer;
	if (f->reach)
		e->t->reach = f->reach;
}

/* Opens the gate if a reply, payload included, could be sent now, however long it is. */
static bool gate_open(struct endpoint *e, struct tern_inlet *in)
{
	struct peer *p = &e->site.peer[in->peer];
	if (!reserve_find(&e->site, in->peer) ||
	    (!p->lost && (!lane_ready(&p->answer) || p->owing)))
		return false;
	in->accept = TERN_HEAD_PLAIN;
	pulse_add(e, PULSE_GATES, 1);
	return true;
}

/* Bad input from a peer: say so once, pass it, and let the next poll return the code. */
static void drain_garbage(struct endpoint *e, struct tern_inlet *in, uint64_t head,
			  const char *what)
{
	poll_trouble_warn(e,
			  error_set(-EBADMSG,
				    "rank %u got a message with %s from rank "
				    "%u (header %016llx); it was dropped",
				    e->t->rank, what, inlet_source(in), (unsigned long long)head));
	in->cursor += TERN_LINE - (uintptr_t)in->cursor % TERN_LINE;
}

/*
 * Whether the payload of a message that is not the usual one lies where it may. Only messages of a
 * program are longer than a short block.
 */
static __attribute__((noinline)) bool payload_fair(const struct endpoint *e,
						   const struct tern_inlet *in, uint64_t difference)
{
	size_t len;
	const char *data = tern_msg_data(inlet_at(in), &len);
	unsigned id = (unsigned)((difference ^ TERN_HEAD_PAYLOAD) >> TERN_ID_SHIFT);
	return (id < TERN_HANDLER_MAX || len <= TERN_PAYLOAD_MAX) &&
	       net_owns(e->site.peer[in->peer].net, in->peer, data, len);
}

static inline __attribute__((always_inline)) void handler_call(struct endpoint *e,
							       const tern_msg *m,
							       uint64_t difference, size_t len,
							       struct tally *y)
{
	e->t->current = m; /* cost: protection setup */
	difference ^= TERN_HEAD_PAYLOAD;
	if (y) {
		stats_add(&e->stats->handler[difference >> TERN_ID_SHIFT].payload, len);
		y->bytes += len;
		count_handler(e, m, difference, y);
	} else
		e->t->handler[difference >> TERN_ID_SHIFT](e->t, m); /* cost: base call */
}

/*
 * Whether the gate is open, read anew: compilers would keep it for this in a register, at one more
 * instruction for every plain message.
 */
static inline bool gate_is_open(const struct tern_inlet *in)
{
	return *(const volatile uint64_t *)&in->accept != 0;
}

/*
 * A message with its payload behind it; false if this is not it, or it would end behind the ring.
 * Its lines come one behind another, as the processor expects: to fetch those of a later message
 * takes longer than it saves.
 */
static inline __attribute__((always_inline)) bool
drain_carried(struct endpoint *e, struct tern_inlet *in, uint64_t difference, struct tally *y)
{
	const tern_msg *m = inlet_at(in);
	if (!message_carries(m, difference) || !gate_is_open(in))
		return false;
	size_t len = m->payload & ((1 << TERN_LEN_BITS) - 1);
	const char *next = (const char *)m + carry_bytes(len);
	if (TERN_UNLIKELY(next > in->base + RING_LEAVES * in->leaf_lines * TERN_LINE))
		return false;
	payload_forget_reply(e);
	in->cursor = (char *)(uintptr_t)next; /* cost: order read */
	e->carrying = m;
	handler_call(e, m, difference, len, y);
	e->carrying = NULL;
	message_clear(m, next); /* cost: buffer control */
	return true;
}

/* `lines` is a constant: how many the message has. */
static inline __attribute__((always_inline)) void drain_payload(struct endpoint *e,
								struct tern_inlet *in,
								uint64_t difference,
								struct tally *y, unsigned lines)
{
	const tern_msg *m = inlet_at(in);
	size_t len;
	const char *data = tern_msg_data(m, &len);
	const struct peer *p = &e->site.peer[in->peer];
	bool usual = pool_has(p->pool, block_of(data)) && len <= TERN_PAYLOAD_MAX;
	if (!usual && !payload_fair(e, in, difference)) {
		drain_garbage(e, in, difference ^ in->expect,
			      "a payload outside its sender's blocks");
		return;
	}
	in->cursor += lines * TERN_LINE; /* cost: order read */
	e->block = block_of(data);       /* cost: buffer setup */
	e->block_kept = false;           /* cost: buffer setup */
	handler_call(e, m, difference, len, y);
	if (!e->block_kept) /* cost: buffer control */
		block_set(e->block, BLOCK_FREE);
	e->block = NULL;
}

/* A message of two lines and no payload, likewise. */
static inline __attribute__((always_inline)) bool
drain_words(struct endpoint *e, struct tern_inlet *in, uint64_t difference, struct tally *y)
{
	const tern_msg *m = inlet_at(in);
	if (!head_double(difference) || !gate_is_open(in))
		return false;
	payload_forget_reply(e);
	in->cursor += 2 * TERN_LINE; /* cost: order read */
	e->t->current = m;           /* cost: protection setup */
	difference ^= TERN_HEAD_CONTROL;
	if (y)
		count_handler(e, m, difference, y);
	else
		e->t->handler[difference >> TERN_ID_SHIFT](e->t, m); /* cost: base call */
	return true;
}

/* Messages of several lines that need no more care than that. */
static inline __attribute__((always_inline)) bool
drain_lines(struct endpoint *e, struct tern_inlet *in, uint64_t difference, struct tally *y)
{
	if (difference >= TERN_HEAD_CONTROL + TERN_HEAD_PAYLOAD) /* cost: order status */
		return false;
	return difference < TERN_HEAD_CONTROL ? drain_carried(e, in, difference, y)
					      : drain_words(e, in, difference, y);
}

/* A message of two lines with a payload, or garbage. False when the inlet has had its turn. */
static __attribute__((noinline)) bool drain_double(struct endpoint *e, struct tern_inlet *in,
						   uint64_t difference, unsigned *handled,
						   struct tally *y)
{
	if (!head_double(difference)) { /* cost: protection control */
		if (inlet_grown(in, difference))
			return *handled < DRAIN_MOST;
		drain_garbage(e, in, difference ^ in->expect, "a bad header");
		return true;
	}
	payload_forget_reply(e);
	if (in->accept == 0) /* cost: flow status */
		return gate_open(e, in);
	drain_payload(e, in, difference ^ TERN_HEAD_CONTROL, y, 2);
	*handled += 1;
	return true;
}

/* Everything but a plain message through an open gate. False when the inlet has had its turn. */
static inline __attribute__((always_inline)) bool drain_rare(struct endpoint *e,
							     struct tern_inlet *in,
							     uint64_t difference, unsigned *handled,
							     struct tally *y)
{
	if (difference >> TERN_LAP_SHIFT)  /* cost: order status */
		return false;              /* an older lap: nothing has arrived */
	if (inlet_control(in, difference)) /* cost: flow control */
		return *handled < DRAIN_MOST;
	if (difference >= TERN_HEAD_CONTROL) /* cost: protection control */
		return drain_double(e, in, difference, handled, y);
	payload_forget_reply(e);
	if (in->accept == 0) /* cost: flow status */
		return gate_open(e, in);
	drain_payload(e, in, difference, y, 1);
	*handled += 1;
	return true;
}

/*
 * Handles an inlet's messages until there are none or it has had its turn. The
 * control line that ends a leaf also bounds the turn, so the loop counts nothing
 * but what it returns. Where nothing is counted, `y` is NULL and a constant: a rank
 * that counts has a loop of its own, and the other loop knows nothing of it. The same goes for
 * `most`, when its turn ends, `handled` of before included: ALL in both of these. ALL
 * fetches lines ahead always.
 */
static inline __attribute__((always_inline)) unsigned drain_loop(struct endpoint *e,
								 struct tern_inlet *in,
								 struct tally *y, unsigned handled,
								 uint64_t most)
{
	tern *t = e->t;
	while (most == ALL || handled < most) {
		char *at = in->cursor; /* cost: base read */
		const tern_msg *m = (const tern_msg *)(const void *)at;
		/* ring.R1, acquire; released in tern_line_write_(): the words follow the header. */
		uint64_t head = atomic_load_explicit(&m->head,
						     memory_order_acquire); /* cost: base status */
		uint64_t x = head ^ in->expect;                             /* cost: order status */
		if (TERN_UNLIKELY(x >= in->accept)) {                       /* cost: flow status */
			if (drain_lines(e, in, x, y))
				handled++;
			else if (!drain_rare(e, in, x, &handled, y))
				break;
			continue;
		}
		inlet_step(in, at, x,
			   most == ALL ? TERN_PREFETCH
			   : handled   ? 0
				       : (int)e->site.fetch);
		t->current = m; /* cost: protection setup */
		if (y)
			count_handler(e, m, x, y);
		else
			t->handler[x >> TERN_ID_SHIFT](t, m); /* cost: base call */
		handled++;                                    /* cost: statistics control */
	}
	return handled;
}

static __attribute__((noinline)) unsigned drain_counted(struct endpoint *e, struct tern_inlet *in)
{
	struct tally y = tally_begin(e);
	unsigned handled = drain_loop(e, in, &y, 0, ALL);
	count_batch(e, in, handled, y.bytes);
	return handled;
}

static inline unsigned drain_end(struct endpoint *e, struct tern_inlet *in, const struct frame *f,
				 unsigned handled)
{
	payload_forget_reply(e);
	if (TERN_UNLIKELY(e->trace))
		trace_drained(e);
	frame_leave(e, f);
	poll_note(e, in, handled);
	return handled;
}

/*
 * Until the wait that has asked for this is over. Of a stream, the rest that somebody waits for is
 * handled too. Otherwise the next line is not looked at: its sender may be about to write it.
 */
static __attribute__((noinline)) unsigned drain_recv_only(struct endpoint *e, struct tern_inlet *in)
{
	const struct wait *w = e->waiting.recv_only;
	unsigned handled = 0;
	e->waiting.unmatched = e->site.fetch != FETCH_ALWAYS;
	while (handled < DRAIN_MOST && drain_loop(e, in, NULL, 0, 1)) {
		handled++;
		if (e->waiting.unmatched && w->over(e, w->arg))
			break;
	}
	return handled;
}

unsigned inlet_drain(struct endpoint *e, struct tern_inlet *in)
{
	struct frame f = frame_enter(e, in);
	unsigned handled = 0;
	if (TERN_UNLIKELY(e->stats))
		handled = drain_counted(e, in);
	else if (TERN_UNLIKELY(e->waiting.recv_only != NULL))
		handled = drain_recv_only(e, in);
	else if (e->site.fetch == FETCH_ALWAYS ||
		 (handled = drain_loop(e, in, NULL, 0, NEAR)) == NEAR)
		handled = drain_loop(e, in, NULL, handled, ALL);
	return drain_end(e, in, &f, handled);
}

unsigned inlet_handle(struct endpoint *e, struct tern_inlet *in)
{
	struct tally y = tally_begin(e);
	return drain_loop(e, in, e->stats ? &y : NULL, 0, 1);
}

static void bell_answer(struct endpoint *e)
{
	pulse_add(e, PULSE_BELLS, 1);
	e->owner.armed = false; /* answering it is looking */
	for (unsigned i = 0; i < e->nets; i++)
		e->net[i]->ops->answer(e->net[i]);
	e->site.passing = false; /* what is deferred may wait, and its polls are none of a send's */
	lost_look(e);
	if (TERN_UNLIKELY(atomic_load_explicit(&end_raised, memory_order_relaxed)))
		end_look(e);
}

/* What handlers have replied leaves now: the program may not come back for long. */
static void poll_ended(struct endpoint *e)
{
	struct net *asking = e->net[e->nets - 1];
	asking->ops->knock(asking, NULL);
}

static unsigned poll_circle(struct endpoint *e, unsigned kinds)
{
	unsigned handled = 0;
	struct tern_inlet *in = &e->site.bell;
	do {
		if (TERN_UNLIKELY(inlet_arrived(in))) {
			if (in->kind == TERN_KIND_BELL)
				bell_answer(e);
			else if (kinds & 1u << in->kind)
				handled += inlet_drain(e, in);
		}
		in = in->next;
	} while (in != &e->site.bell);
	if (e->site.asks)
		poll_ended(e);
	return handled;
}

unsigned poll_inlet(struct endpoint *e, struct tern_inlet *in)
{
	unsigned handled = 0;
	e->site.peek = in->next; /* the next look begins behind it, so that all have their turn */
	/* Whoever knocked has sent something; who asks also sends. */
	if (in->kind == TERN_KIND_BELL || e->site.asks)
		handled = poll_circle(e, KINDS_BOTH);
	else if (!(handled = inlet_drain(e, in)))
		/* It waits for room for a reply, and may hide others. */
		handled = poll_circle(e, KINDS_BOTH);
	if (e->deferred_count)
		defer_run(e);
	return handled;
}

void poll_mark(struct endpoint *e)
{
	if (inlet_arrived(&e->site.bell))
		bell_answer(e); /* brings in the inlets of whoever knocked */
	for (struct tern_inlet *in = e->site.bell.next; in != &e->site.bell; in = in->next)
		in->due = in->handled + inlet_lying(in);
}

bool poll_is_due(const struct endpoint *e)
{
	for (const struct tern_inlet *in = e->site.bell.next; in != &e->site.bell; in = in->next)
		if (in->handled < in->due)
			return true;
	return false;
}

void poll_networks(struct endpoint *e)
{
	if (inlet_arrived(&e->site.bell))
		bell_answer(e);
	if (e->site.asks)
		poll_ended(e);
}

/* Called after an empty poll; rarely does anything. */
static void poll_empty(struct endpoint *e)
{
	e->vain += e->site.pollset;
	if (e->vain < DEMOTE_EVERY)
		return;
	e->vain = 0;
	lost_look(e); /* a rank that never talked with us leaves without ringing */
	for (unsigned i = 0; i < e->nets; i++)
		e->net[i]->ops->demote(e->net[i]);
	e->site.peek = &e->site.bell; /* it may have looked at one that left the poll set */
}

/* What a poll does when it has been round. */
static inline __attribute__((always_inline)) unsigned poll_after(struct endpoint *e,
								 unsigned handled)
{
	if (!handled)
		poll_empty(e);
	if (TERN_UNLIKELY(e->work))
		handled += layers_progress(e);
	if (e->deferred_count)
		defer_run(e);
	return handled;
}

unsigned poll_once(struct endpoint *e, unsigned kinds)
{
	return poll_after(e, poll_circle(e, kinds));
}

void poll_passed(struct endpoint *e, unsigned handled)
{
	poll_after(e, handled);
}

/* Sentences are kept per thread, and an interrupt's is taken back. */
void poll_trouble(struct endpoint *e, int code)
{
	e->trouble = code;
	error_keep(&e->trouble_said);
}

void poll_trouble_warn(struct endpoint *e, int code)
{
	poll_trouble(e, code);
	error_warn("%s", tern_strerror(code));
}

static __attribute__((noinline)) int trouble_tell(struct endpoint *e)
{
	int rc = e->trouble;
	error_restore(&e->trouble_said);
	e->trouble = 0;
	return rc;
}

int poll_finish(struct endpoint *e, unsigned handled)
{
	handled = poll_after(e, handled);
	return TERN_UNLIKELY(e->trouble) ? trouble_tell(e) : (int)handled;
}

int poll_kinds(tern *t, unsigned kinds, const char *what)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	/* Unless the endpoint's head says that this is simply its program, polling. */
	int rc = TERN_UNLIKELY(!t->reach) ? rules_program(e, what) : 0;
	if (rc)
		return rc;
	return TERN_UNLIKELY(held(e)) ? hold_mend(e) : poll_finish(e, poll_circle(e, kinds));
}

int tern_poll_requests(tern *t)
{
	return poll_kinds(given(t), KINDS_REQUESTS, "a poll for requests");
}

int tern_poll_replies(tern *t)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	if (attach_is_mine(e) && in_handler(e) && e->inlet->kind == TERN_KIND_REQUEST) {
		/* No deeper: reply handlers do not poll. */
		const tern_msg *item = e->item;
		e->item = NULL;
		int handled = held(e) ? 0 : (int)poll_circle(e, KINDS_REPLIES);
		e->item = item;
		return handled;
	}
	return poll_kinds(t, KINDS_REPLIES, "a poll for replies");
}

/* -- Handlers --------------------------------------------------------------------------------- */

void handler_unknown(tern *t, const tern_msg *m)
{
	struct endpoint *e = t->own;
	char label[LABEL_ROOM];
	handler_label(e, handler_of(m), label);
	poll_trouble_warn(e, error_set(-ENXIO,
				       "rank %u got a message from rank %u for %s, "
				       "which is not registered here; it was dropped",
				       t->rank, tern_msg_src(m), label));
}
