/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offers: messages of senders that cannot map this rank's memory. A short message comes with its
 * offer; if a buffer is free it is copied there and has landed. A long one, or a short one that has
 * waited, is told a place, is put there, and comes as a notice like that of a near sender.
 *
 * An offer that finds no buffer waits in a list of its type, in the order of the ring. It is
 * answered when a buffer is free and no earlier offer of the same sender is left in the list: that
 * keeps the order of each sender, and lets none wait for another. A place is claimed in the word of
 * its buffer in the sender's name, so a sender's death and the closing of a type are what they are
 * for near senders.
 */
#include <errno.h>

#include "base/memory.h"
#include "mem/mem.h"
#include "typed/typed.h"

/* Whether an offer of the same sender and type has come before, and is not over. */
static bool offer_behind(const struct typed *y, const struct buf_offer *o)
{
	const struct buf_offer *f = y->offers;
	while (f && f != o && (f->rank != o->rank || f->msg.type != o->msg.type))
		f = f->next;
	return f && f != o;
}

/* A buffer or a cell of the spill, claimed for its sender. */
static struct buf_slot *offer_take(struct typed *y, struct type_queue *s, const struct buf_offer *o)
{
	struct buf_slot *l = NULL;
	for (struct type_queue *m = s; m && !l; m = m->more)
		l = buf_slot_take(m, o->msg.len, o->rank);
	if (l && y->check && !check_filled(l->data, l->queue->pool.bytes)) {
		arrive_spoiled(y, s->type);
		check_fill(l->data, l->queue->pool.bytes);
	}
	return l;
}

/* Finds a place for it, and an answer: with neither error nor place it is to wait. */
static struct answer_msg offer_try(struct typed *y, const struct buf_offer *o, struct buf_slot **l)
{
	struct answer_msg a = { .id = o->msg.id };
	struct type_queue *s = y->queue[o->msg.type];
	bool behind = offer_behind(y, o);
	*l = NULL;
	if (!s) {
		a.error = -ENXIO;
	} else if (o->msg.len > s->most) {
		a.error = -EMSGSIZE;
		a.at = s->pool.bytes;
	} else if (!behind && (*l = offer_take(y, s, o))) {
		a.generation = s->pool.generation;
		a.key = (uint16_t)(*l)->queue->key;
		a.placed = true;
		a.index = buf_slot_index(*l);
		a.at = mem_addr(mem_of(y->e->t), (*l)->data);
	} else if (!behind && s->flags & TERN_BUF_REFUSE) {
		a.error = -ENOBUFS;
	} else if (o->msg.now) {
		a.error = -EAGAIN;
	}
	return a;
}

static void offer_remove(struct typed *y, struct buf_offer **at)
{
	struct buf_offer *o = *at;
	*at = o->next;
	y->waiting -= !o->placed;
	memory_free(o);
	typed_busy(y);
}

/* False if there is no memory, or the sender has more than a good one can have. */
static bool offer_keep(struct typed *y, const struct buf_offer *o)
{
	struct buf_offer **at = &y->offers, *kept;
	unsigned others = 0;
	for (; *at; at = &(*at)->next)
		others += (*at)->rank == o->rank;
	if (others >= TERN_BUF_SENDS_MAX || !(kept = memory_new(1, sizeof *kept)))
		return false;
	*at = kept;
	*kept = *o;
	y->waiting += !o->placed;
	typed_busy(y);
	return true;
}

void on_typed_offer(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	struct buf_offer o = { .rank = tern_msg_src(m) };
	struct buf_slot *l;
	size_t bytes = 0;
	const void *data = tern_msg_data(m, &bytes);
	memcpy(&o.msg, m->word, sizeof o.msg);
	bool is_short = o.msg.len <= TERN_PAYLOAD_MAX;
	if (tern_msg_count(m) != OFFER_WORDS || (data ? bytes : 0) != (is_short ? o.msg.len : 0)) {
		typed_refuse(y, o.rank, "that is not as long as it says");
		return;
	}
	if (layer_lost(y->e, o.rank))
		return; /* a network had kept it back; nobody would ever be told */
	struct answer_msg a = offer_try(y, &o, &l);
	if (l && is_short) {
		if (data)
			memcpy(l->data, data, bytes);
		buf_slot_ready(y->queue[o.msg.type], l, o.rank, o.msg.len);
		a.placed = false;
	} else if (!a.error) {
		o.placed = l != NULL;
		if (!offer_keep(y, &o))
			a.error = -ENOMEM;
		else if (!l)
			return;
		if (l && a.error)
			buf_slot_drop(y, l);
	}
	uint64_t words[ANSWER_WORDS];
	memcpy(words, &a, sizeof a);
	layer_reply(y->e, TYPED_ANSWER, NULL, 0, ANSWER_WORDS, words);
}

/* Answers an offer that waits, if it can; true if that ends it. */
static bool offer_answer(struct typed *y, struct buf_offer *o)
{
	uint64_t words[ANSWER_WORDS];
	struct buf_slot *l;
	if (o->placed || send_reachable(y->e, o->rank) || !lane_ready(&y->e->t->lane[o->rank]))
		return false;
	struct answer_msg a = offer_try(y, o, &l);
	if (!l && !a.error)
		return false;
	memcpy(words, &a, sizeof a);
	/* There is room, and a rank that leaves meanwhile is forgotten with all it has. */
	(void)!layer_request(y->e, o->rank, TYPED_ANSWER, NULL, 0, ANSWER_WORDS, words);
	o->placed = l != NULL;
	y->waiting -= o->placed;
	return !o->placed;
}

/* Held, because a send serves what has arrived, and a handler may close a type. */
unsigned offer_progress(struct typed *y)
{
	uint32_t before = y->waiting;
	if (!y->waiting || in_handler(y->e))
		return 0;
	library_hold(y->e);
	for (struct buf_offer **at = &y->offers; *at;)
		if (offer_answer(y, *at))
			offer_remove(y, at);
		else
			at = &(*at)->next;
	typed_busy(y);
	library_release(y->e);
	return before != y->waiting;
}

void offer_landed(struct typed *y, unsigned type, uint32_t rank)
{
	struct buf_offer **at = &y->offers;
	while (*at && !((*at)->rank == rank && (*at)->msg.type == type && (*at)->placed))
		at = &(*at)->next;
	if (*at)
		offer_remove(y, at);
}

void offer_lost(struct typed *y, uint32_t rank)
{
	for (struct buf_offer **at = &y->offers; *at;)
		if ((*at)->rank == rank || rank == UINT32_MAX)
			offer_remove(y, at);
		else
			at = &(*at)->next;
}
