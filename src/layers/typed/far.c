/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending to a rank whose memory is not mapped. A short message goes whole, notice and bytes, and
 * uses a credit (credit.c), so a send that is accepted has a buffer. Without a credit the owner is
 * asked for one buffer, and the send is tried again when the answer is there. A long message always
 * asks: for a place, into which it is put.
 *
 * What is not used for TYPED_IDLE_NS goes back by itself, so that a rank that polls keeps no buffer
 * from others. With the next question comes a share again.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "typed/send.h"

/* -- What the owner says ----------------------------------------------------------------------- */

/* What this rank knows of the use of a type that a message is about; NULL if that is over. */
static struct target *credit_target(struct typed *y, uint32_t rank, const struct credit_msg *c)
{
	struct target *to = y->route[rank] ? y->route[rank]->target[c->type] : NULL;
	return to && to->is_far && to->pool.generation == c->generation ? to : NULL;
}

/* From now on what it has goes back if nobody uses it. */
void far_watch(struct typed *y, struct target *to)
{
	struct far_target *h = &to->far;
	h->since[false] = h->since[true] = clock_ns();
	if (h->watched)
		return;
	h->watched = true;
	h->next = y->watched;
	y->watched = to;
	typed_busy(y);
}

void far_forget(struct far_target *h)
{
	h->credits = 0;
	h->refused[false] = h->refused[true] = 0;
	h->asked[false] = h->asked[true] = false;
	if (h->key < KEY_SPILL || h->key >= KEY_MORE)
		h->place = false; /* a cell of the spill outlives the type, and goes back */
}

static void on_credit(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	struct credit_msg c;
	bool good = credit_msg_read(m, &c);
	struct target *to = good ? credit_target(y, tern_msg_src(m), &c) : NULL;
	struct far_target *h = to ? &to->far : NULL;
	bool is_long = good && c.flags & CREDIT_LONG;
	if (!good)
		typed_refuse(y, tern_msg_src(m), "that gives nothing");
	if (!h)
		return; /* or this rank has heard before that this use of the type is over */
	if (c.flags & CREDIT_CLOSED) {
		atomic_store_explicit(&h->now, 0, memory_order_relaxed); /* who sends looks again */
		far_forget(h);
		return;
	}
	if (c.flags & CREDIT_ASKED) {
		h->asked[is_long] = false;
		h->refused[is_long] = c.flags & CREDIT_TOO_LONG  ? -EMSGSIZE
				      : c.flags & CREDIT_REFUSED ? -ENOBUFS
								 : 0;
		h->too_long = c.value;
	}
	if (is_long && c.count) {
		h->place = true;
		h->key = c.key;
		h->index = c.index;
		h->at = c.value;
		h->bytes = c.bytes;
		h->place_generation = c.generation;
	} else {
		h->credits += c.count;
	}
	if (c.count)
		far_watch(y, to);
}

/* -- What goes back unused --------------------------------------------------------------------- */

static bool far_has(const struct far_target *h, bool is_long)
{
	return is_long ? h->place : h->credits;
}

static void far_return(struct typed *y, struct target *to, bool is_long)
{
	struct far_target *h = &to->far;
	struct credit_msg c = { .type = (uint8_t)to->key,
				.generation = to->pool.generation,
				.flags = is_long ? CREDIT_LONG : 0,
				.count = is_long ? 1 : (uint16_t)h->credits,
				.key = h->key,
				.index = h->index };
	uint64_t words[CREDIT_WORDS];
	if (is_long)
		h->place = false;
	else
		h->credits = 0;
	credit_msg_write(&c, words);
	(void)!layer_request(y->e, to->rank, TYPED_RETURN, NULL, 0, CREDIT_WORDS, words);
}

/* Returns what was not used for a while. */
static void far_tidy(struct typed *y, struct target *to, uint64_t now)
{
	struct far_target *h = &to->far;
	if (send_reachable(y->e, to->rank)) { /* its owner has left */
		far_forget(h);
		h->place = false;
	}
	for (int is_long = 0; is_long < 2; is_long++) {
		if (h->used[is_long] || h->waiting[is_long])
			h->since[is_long] = now;
		h->used[is_long] = false;
		if (far_has(h, is_long) && now - h->since[is_long] > y->idle_ns &&
		    lane_ready(&y->e->t->lane[to->rank]))
			far_return(y, to, is_long);
	}
}

unsigned far_progress(struct typed *y)
{
	if (!y->watched || in_handler(y->e))
		return 0;
	uint64_t now = clock_ns();
	struct target *to = y->watched, *next;
	for (y->watched = NULL; to; to = next) { /* which serves others, who may watch more */
		struct far_target *h = &to->far;
		next = h->next;
		far_tidy(y, to, now);
		h->watched = far_has(h, false) || far_has(h, true);
		if (h->watched) {
			h->next = y->watched;
			y->watched = to;
		}
	}
	typed_busy(y);
	return y->watched != NULL;
}

/* -- Sending ----------------------------------------------------------------------------------- */

void far_listen(struct typed *y, uint32_t rank)
{
	const struct tern_inlet *in = &y->e->site.peer[rank].requests;
	if (in->base && inlet_has(in) && !held(y->e))
		poll_once(y->e, KINDS_BOTH);
}

static int far_ask(struct typed *y, struct sending *s, bool is_long)
{
	struct far_target *h = &s->target->far;
	int refused = s->asked || s->flags & TERN_BUF_NOWAIT
			      ? h->refused[is_long]
			      : 0; /* not what an earlier call was told */
	if (refused == -EMSGSIZE && s->len < h->too_long)
		refused = 0;
	h->refused[is_long] = 0;
	if (refused)
		return refused == -ENOBUFS ? sending_full(s) : sending_too_long(s);
	if (!s->waiting) {
		s->waiting = &h->waiting[is_long];
		++*s->waiting;
	}
	if (!h->asked[is_long]) {
		uint64_t words[CREDIT_WORDS];
		credit_msg_write(&(struct credit_msg){ .type = (uint8_t)s->type,
						       .generation = s->target->pool.generation,
						       .value = s->len },
				 words);
		h->asked[is_long] = s->asked = true; /* before: the request may serve others */
		int rc = layer_request(y->e, s->rank, TYPED_ASK, NULL, 0, CREDIT_WORDS, words);
		if (rc) {
			h->asked[is_long] = false;
			return rc;
		}
	}
	return sending_later(s, "it has been asked for a buffer");
}

/* Whether a payload can be sent without waiting for a block. */
static bool block_any(struct net *net)
{
	struct block *b;
	if (!net->pool)
		return true;
	if (net->ops->take(net, 0, &b) != 0) /* which may find more, for a peer that is far */
		return false;
	block_set(b, BLOCK_FREE);
	return true;
}

/* Whether one more can be told about; its handle is the last until it has landed. */
static bool landing_room(struct route *r)
{
	if (!r->landings)
		r->landings = memory_new(1, sizeof *r->landings);
	return r->landings && r->landings->sent - r->landings->landed < TERN_BUF_SENDS_MAX;
}

static void landing_add(struct route *r, tern_op *op)
{
	op->pending++;
	r->landings->op[r->landings->sent++ % TERN_BUF_SENDS_MAX] = op;
}

/*
 * There is a block and room, so what fails is memory for the first block, or a rank that has left.
 */
static int far_failed(struct typed *y, const struct sending *s, int rc)
{
	--*s->target->counter; /* nothing has been served since */
	if (s->op) {
		y->route[s->rank]->landings->sent--;
		s->op->pending--; /* nothing has been served since, so what was is as before */
	}
	s->target->far.credits++;
	return rc;
}

static int far_short(struct typed *y, struct sending *s)
{
	struct far_target *h = &s->target->far;
	uint64_t words[BROUGHT_WORDS] = { 0 };
	if (s->len && !block_any(y->e->site.peer[s->rank].net))
		return sending_later(s, "no payload block is free");
	if (s->op && !landing_room(y->route[s->rank]))
		return sending_later(s, "TERN_BUF_SENDS_MAX sends are under way");
	if (!h->credits)
		return far_ask(y, s, false);
	h->credits--;
	s->notice.key = (uint16_t)s->type;
	sending_number(s);
	notice_write(&s->notice, words);
	words[NOTICE_WORDS] = s->op ? BROUGHT_TELL : 0;
	if (s->op)
		landing_add(y->route[s->rank], s->op);
	int rc = layer_request(y->e, s->rank, TYPED_BROUGHT, s->len ? s->data : NULL, s->len,
			       BROUGHT_WORDS, words);
	if (rc)
		return far_failed(y, s, rc);
	h->used[false] = true;
	return 0;
}

int far_long_rule(struct typed *y, const struct sending *s)
{
	return !s->op && held(y->e) ? rules_wait(y->e, "a long tern_buf_send() without a handle")
				    : 0;
}

static int far_long(struct typed *y, struct sending *s)
{
	struct far_target *h = &s->target->far;
	int rule = far_long_rule(y, s);
	if (rule)
		return rule;
	s->outgoing = outgoing_new(y);
	if (!s->outgoing)
		return sending_later(s, "TERN_BUF_SENDS_MAX sends are under way");
	if (h->place && (h->place_generation != s->target->pool.generation || s->len > h->bytes)) {
		far_return(y, s->target, true);
		return sending_later(s, "what it had given is too short");
	}
	if (!h->place)
		return far_ask(y, s, true);
	h->place = false;
	s->notice.key = h->key;
	s->notice.index = h->index;
	h->asked[true] = true; /* starting may serve others: they get no second place meanwhile */
	int rc = sending_start(y, s, h->at, NULL);
	h->asked[true] = false;
	if (rc) {
		h->place = true; /* for the next try, if there is one */
		far_watch(y, s->target);
		return rc;
	}
	h->used[true] = true;
	sending_moves(y, s);
	return 0;
}

int far_try(struct typed *y, struct sending *s)
{
	if (!lane_ready(&y->e->t->lane[s->rank]))
		return sending_later(s, "the ring to it is full");
	bool is_long = s->len > TERN_PAYLOAD_MAX || s->len > s->target->pool.bytes;
	return is_long ? far_long(y, s) : far_short(y, s);
}

void far_end(struct sending *s)
{
	if (s->waiting)
		--*s->waiting;
}

/* -- What has landed --------------------------------------------------------------------------- */

static tern_op *landing_next(struct route *r)
{
	struct landings *l = r ? r->landings : NULL;
	if (!l || l->landed == l->sent)
		return NULL;
	return l->op[l->landed++ % TERN_BUF_SENDS_MAX];
}

static void on_landed(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	tern_op *op = landing_next(y->route[tern_msg_src(m)]);
	if (op)
		op_end(y->e, op, 0);
	else
		typed_refuse(y, tern_msg_src(m), "that answers what was not asked");
}

void far_lost(struct typed *y, uint32_t rank)
{
	struct net *net = y->e->site.peer[rank].net;
	tern_op *op;
	while ((op = landing_next(y->route[rank])))
		op_end(y->e, op, net->ops->check(net, rank));
}

void far_register(struct endpoint *e)
{
	layer_on(e, TYPED_CREDIT, on_credit);
	layer_on(e, TYPED_ANSWER, on_credit);
	layer_on(e, TYPED_LANDED, on_landed);
}
