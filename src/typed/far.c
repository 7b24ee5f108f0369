/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending to a rank whose memory is not mapped. What its owner has lent of a type lies in a lease
 * cache, so a send is accepted here, at once, with the certainty that there is a buffer; a short
 * message then goes whole, notice and bytes, and a long one is put into its buffer first. With an
 * empty cache the owner is asked, once, and answers when it can.
 *
 * What the owner tells comes as requests, in order. So after it has said that a pool is used no
 * more, nothing comes for that pool; what a cache still had of it went back with the answer.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "typed/send.h"

/* -- The lease cache --------------------------------------------------------------------------- */

static bool lease_fits(uint32_t lease, size_t len)
{
	return !lease_spilled(lease) || len <= spill_cell[lease_place(lease) - LEASE_SMALL];
}

/* What was lent last, of what has room; or what was lent for a long message that was not sent. */
static bool lease_cache_take(struct lease_cache *h, size_t len, uint32_t *lease)
{
	for (unsigned i = h->count; i-- > 0;) {
		if (!lease_fits(h->lease[i], len))
			continue;
		*lease = h->lease[i];
		h->lease[i] = h->lease[--h->count];
		return true;
	}
	if (!h->has_long || h->waiting[true])
		return false;
	h->has_long = false;
	*lease = lease_of(LEASE_LONG, h->index);
	return true;
}

/*
 * Puts first what a send that waits is going to use, and says how many that is: one, or none if
 * none of it is large enough. It is no cell, if possible, since a cell is of use to more senders.
 */
static unsigned lease_cache_keep(struct lease_cache *h)
{
	unsigned keep = h->count;
	for (const struct sending *s = h->waiting[false]; s; s = s->next)
		for (unsigned i = 0; i < h->count; i++)
			if (lease_fits(h->lease[i], s->len) &&
			    (keep == h->count || !lease_spilled(h->lease[i])))
				keep = i;
	if (keep == h->count)
		return 0;
	uint32_t lease = h->lease[keep];
	h->lease[keep] = h->lease[0];
	h->lease[0] = lease;
	return 1;
}

/* Moves what no send waits for onto a lease message, as much as that takes. */
static void lease_cache_empty(struct lease_cache *h, bool all, struct lease_msg *msg)
{
	unsigned keep = all ? 0 : lease_cache_keep(h);
	if (h->has_long && (all || !h->waiting[true])) {
		msg->lease[msg->count++] = lease_of(LEASE_LONG, h->index);
		h->has_long = false;
	}
	while (h->count > keep && msg->count < LEASE_MSG_LEASES)
		msg->lease[msg->count++] = h->lease[--h->count];
	msg->flags = h->count || h->has_long ? LEASE_MSG_KEPT : 0;
}

int far_return(struct typed *y, uint32_t rank, unsigned type, struct target *to)
{
	struct lease_msg msg = { .type = (uint8_t)type, .generation = to->pool.generation };
	uint64_t words[LEASE_MSG_WORDS];
	lease_cache_empty(to->cache, true, &msg);
	if (!msg.count)
		return 0;
	lease_msg_write(&msg, words);
	int rc = layer_request(y->e, rank, TYPED_RETURN, NULL, 0, LEASE_MSG_WORDS, words);
	return rc ? rc : -EAGAIN;
}

/* -- What the owner says ----------------------------------------------------------------------- */

/* The lease cache that a lease message is about; NULL if it is about another use of the pool. */
static struct lease_cache *lease_msg_cache(struct typed *y, uint32_t rank,
					   const struct lease_msg *msg)
{
	struct route *r = y->route[rank];
	struct target *part = r ? r->part[msg->type / TARGETS_OF_PART] : NULL;
	struct target *to = part ? &part[msg->type % TARGETS_OF_PART] : NULL;
	return to && to->cache && to->pool.generation == msg->generation ? to->cache : NULL;
}

static bool lease_cache_add(struct lease_cache *h, uint32_t lease)
{
	if (lease_place(lease) == LEASE_LONG) {
		if (h->has_long)
			return false;
		h->has_long = true;
		h->index = lease_index(lease);
		return true;
	}
	if (h->count == LEASE_CACHE_MOST)
		return false;
	h->lease[h->count++] = lease;
	return true;
}

/*
 * What could not be used after all. Of those for long messages there may be another by now: then
 * this one is for short messages, and goes back as what it was lent for.
 */
static void lease_cache_back(struct lease_cache *h, uint32_t lease)
{
	if (!lease_cache_add(h, lease) && h->count < LEASE_CACHE_MOST)
		h->lease[h->count++] = lease;
}

static void lease_msg_reply(struct typed *y, struct lease_msg *msg)
{
	uint64_t words[LEASE_MSG_WORDS];
	lease_msg_write(msg, words);
	layer_reply(y->e, TYPED_RETURNED, NULL, 0, LEASE_MSG_WORDS, words);
}

static void on_lease_granted(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	struct lease_msg msg;
	if (!lease_msg_read(m, &msg)) {
		typed_refuse(y, src, "that lends nothing");
		return;
	}
	struct lease_cache *h = lease_msg_cache(y, src, &msg);
	struct lease_msg back = { .type = msg.type, .generation = msg.generation };
	for (uint32_t i = 0; i < msg.count; i++)
		if (!h || !lease_cache_add(h, msg.lease[i]))
			back.lease[back.count++] = msg.lease[i];
	if (h) {
		*(msg.flags & LEASE_MSG_LONG ? &h->asked_long : &h->asked) = false;
		h->refused = msg.flags & LEASE_MSG_REFUSED;
	}
	if (back.count) /* for a use of the pool that is over, as this rank has learnt before */
		lease_msg_reply(y, &back);
}

/* The pool is used no more: whoever sends asks where the next is. */
static void lease_cache_close(struct lease_cache *h)
{
	atomic_store_explicit(&h->now, 0, memory_order_relaxed);
	h->asked = h->asked_long = h->refused = false;
}

static void on_lease_recall(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	struct lease_msg msg;
	struct lease_cache *h =
		lease_msg_read(m, &msg) ? lease_msg_cache(y, tern_msg_src(m), &msg) : NULL;
	if (!h)
		return;
	struct lease_msg back = { .type = msg.type, .generation = msg.generation };
	if (msg.flags & LEASE_MSG_CLOSED)
		lease_cache_close(h);
	lease_cache_empty(h, msg.flags & LEASE_MSG_CLOSED, &back);
	lease_msg_reply(y, &back);
}

static void on_type_closed(tern *t, const tern_msg *m)
{
	struct lease_msg msg;
	struct lease_cache *h = lease_msg_read(m, &msg)
					? lease_msg_cache(typed_of(t), tern_msg_src(m), &msg)
					: NULL;
	if (h)
		lease_cache_close(h);
}

void far_listen(struct typed *y, uint32_t rank)
{
	const struct tern_inlet *in = &y->e->site.peer[rank].requests;
	if (in->base && inlet_has(in) && !held(y->e))
		poll_once(y->e, KINDS_BOTH);
}

bool far_stale(struct lease_cache *h)
{
	bool fresh = h->fresh;
	h->fresh = false;
	if (!fresh)
		atomic_store_explicit(&h->now, 0, memory_order_relaxed);
	return !fresh;
}

/* -- Sending ----------------------------------------------------------------------------------- */

static int far_ask(struct typed *y, struct sending *s, bool is_long)
{
	struct lease_cache *h = s->target->cache;
	bool *asked = is_long ? &h->asked_long : &h->asked;
	bool refused =
		h->refused && (s->asked || !s->waits); /* not what an earlier call was told */
	h->refused = false;
	if (refused)
		return sending_full(s);
	if (!s->waiting) {
		s->waiting = &h->waiting[is_long];
		s->next = *s->waiting;
		*s->waiting = s;
	}
	if (!*asked) {
		uint64_t words[] = { s->type, s->target->pool.generation, s->len };
		*asked = s->asked = true; /* before: others may be served by the request */
		int rc = layer_request(y->e, s->rank, TYPED_CLAIM, NULL, 0, 3, words);
		if (rc) {
			*asked = false;
			return rc;
		}
	}
	return sending_later(s, "it has lent no buffer of the type yet");
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
static int far_failed(struct typed *y, const struct sending *s, uint32_t lease, int rc)
{
	sending_unnumber(y, s);
	if (s->op) {
		y->route[s->rank]->landings->sent--;
		s->op->pending--; /* nothing has been served since, so what was is as before */
	}
	lease_cache_back(s->target->cache, lease);
	return rc;
}

static int far_short(struct typed *y, struct sending *s)
{
	struct lease_cache *h = s->target->cache;
	uint64_t words[BROUGHT_WORDS] = { 0 };
	uint32_t lease;
	if (s->len && !block_any(y->e->site.peer[s->rank].net))
		return sending_later(s, "no payload block is free");
	if (s->op && !landing_room(y->route[s->rank]))
		return sending_later(s, "TERN_BUF_SENDS_MAX sends are under way");
	if (!lease_cache_take(h, s->len, &lease))
		return far_ask(y, s, false);
	h->fresh = false;
	s->notice.key =
		(uint16_t)(lease_spilled(lease) ? KEY_SPILL + (lease_place(lease) - LEASE_SMALL)
						: s->type);
	s->notice.index = lease_index(lease);
	sending_number(y, s);
	notice_write(&s->notice, words);
	words[NOTICE_WORDS] = s->op ? BROUGHT_TELL : 0;
	if (s->op)
		landing_add(y->route[s->rank], s->op);
	int rc = layer_request(y->e, s->rank, TYPED_BROUGHT, s->len ? s->data : NULL, s->len,
			       BROUGHT_WORDS, words);
	return rc ? far_failed(y, s, lease, rc) : 0;
}

static int far_long(struct typed *y, struct sending *s)
{
	struct target *to = s->target;
	struct lease_cache *h = to->cache;
	s->outgoing = outgoing_new(y);
	if (!s->outgoing)
		return sending_later(s, "TERN_BUF_SENDS_MAX sends are under way");
	if (!h->has_long)
		return far_ask(y, s, true);
	h->has_long = h->fresh = false;
	s->notice.key = (uint16_t)s->type;
	s->notice.index = h->index;
	int rc = sending_start(y, s, to->buffers + (tern_addr)s->notice.index * to->pool.stride,
			       NULL);
	if (rc) /* for the next, or until it is asked back; others may have been served meanwhile */
		lease_cache_back(h, lease_of(LEASE_LONG, s->notice.index));
	else
		sending_moves(y, s);
	return rc;
}

int far_try(struct typed *y, struct sending *s)
{
	if (!lane_ready(&y->e->t->lane[s->rank]))
		return sending_later(s, "the ring to it is full");
	return s->len > TERN_PAYLOAD_MAX ? far_long(y, s) : far_short(y, s);
}

void far_end(struct sending *s)
{
	struct sending **at = s->waiting;
	if (!at)
		return;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
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
	layer_on(e, TYPED_LENT, on_lease_granted);
	layer_on(e, TYPED_RECALL, on_lease_recall);
	layer_on(e, TYPED_GONE, on_type_closed);
	layer_on(e, TYPED_LANDED, on_landed);
}

/* -- Lease messages ---------------------------------------------------------------------------- */

/* Lease messages: what an owner and a far sender tell each other of buffers that are lent. */

enum { FLAGS_SHIFT = 8, COUNT_SHIFT = 16, FIRST_LEASES = 2 };

void lease_msg_write(const struct lease_msg *s, uint64_t words[LEASE_MSG_WORDS])
{
	words[0] = (uint64_t)s->generation << 32 | (uint64_t)s->count << COUNT_SHIFT |
		   (uint64_t)s->flags << FLAGS_SHIFT | s->type;
	words[1] = 0;
	for (unsigned i = 0; i < LEASE_MSG_LEASES / 2; i++)
		words[FIRST_LEASES + i] = (uint64_t)s->lease[2 * i + 1] << 32 | s->lease[2 * i];
}

bool lease_msg_read(const tern_msg *m, struct lease_msg *s)
{
	if (tern_msg_words(m) != LEASE_MSG_WORDS)
		return false;
	uint64_t first = tern_msg_arg(m, 0);
	s->type = first & 0xff;
	s->flags = first >> FLAGS_SHIFT & 0xff;
	s->count = first >> COUNT_SHIFT & 0xffff;
	s->generation = (uint32_t)(first >> 32);
	for (unsigned i = 0; i < LEASE_MSG_LEASES; i++)
		s->lease[i] = (uint32_t)(tern_msg_arg(m, FIRST_LEASES + i / 2) >> i % 2 * 32);
	return s->count <= LEASE_MSG_LEASES;
}

_Static_assert(FIRST_LEASES + LEASE_MSG_LEASES / 2 == LEASE_MSG_WORDS &&
		       TERN_BUF_TYPES_MAX <= 1 << FLAGS_SHIFT,
	       "the parts of a lease message fit");
