/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order. Messages of a sender are numbered where their type asks for it, when their send has become
 * certain, so that nothing that was refused leaves a hole. A stream has the slots of one sender
 * that have arrived and whose turn has not come, smallest number first.
 *
 * With TERN_BUF_ORDER a slot joins its type's queue as soon as all before it have joined. With
 * TERN_BUF_ORDER_ALL it joins when all before it have been received; it stays the first of its
 * stream until it is received itself, so of each sender there is at most one that can be.
 *
 * A message that failed after it had its number (outgoing.c) sends a slot that is cancelled, which
 * takes its turn and is gone. Where a slot is dropped because its type is closed, the one before it
 * answers for its number too (`dropped`). When a sender has left, what lies behind a missing number
 * is dropped: what is received of a sender is always the beginning of what it sent.
 */
#include "base/memory.h"
#include "typed/typed.h"

/* Where a slot of that number belongs: the last one that is smaller; NULL if it is the first. */
static struct buf_slot *stream_before(const struct stream *s, uint64_t number)
{
	if (s->last && s->last->number < number)
		return s->last;
	struct buf_slot *before = NULL;
	for (struct buf_slot *l = s->first; l && l->number < number; l = l->later)
		before = l;
	return before;
}

static bool stream_insert(struct stream *s, struct buf_slot *l)
{
	struct buf_slot *before = stream_before(s, l->number);
	struct buf_slot *after = before ? before->later : s->first;
	if (l->number < s->next || (before && before->number + before->dropped >= l->number) ||
	    (after && after->number == l->number))
		return false;
	l->later = after;
	*(before ? &before->later : &s->first) = l;
	if (!after)
		s->last = l;
	return true;
}

/* Takes the first out: its turn is over. */
static struct buf_slot *stream_shift(struct stream *s)
{
	struct buf_slot *l = s->first;
	s->first = l->later;
	if (!s->first)
		s->last = NULL;
	s->next = l->number + l->dropped + 1;
	return l;
}

/* Lets join whoever can. */
static void stream_advance(struct typed *y, struct stream *s, bool all)
{
	while (s->first && s->first->number == s->next) {
		struct buf_slot *l = s->first;
		if (l->state == BUF_SLOT_READY)
			return; /* not received yet */
		if (l->cancelled) {
			buf_slot_drop(y, stream_shift(s));
			continue;
		}
		if (!all)
			stream_shift(s);
		buf_slot_ready(y->queue[l->type], l);
	}
}

bool order_arrived(struct typed *y, struct stream *s, struct buf_slot *l, bool all)
{
	l->dropped = 0;
	l->state = BUF_SLOT_EARLY;
	if (!stream_insert(s, l))
		return false;
	stream_advance(y, s, all);
	return true;
}

void order_received(struct typed *y, struct buf_slot *l)
{
	struct stream *s = &y->all[l->src];
	stream_shift(s);
	stream_advance(y, s, true);
}

/* -- Closing a type --------------------------------------------------------------------------- */

static bool stream_whole(const struct stream *s, unsigned type)
{
	uint64_t expected = s->next;
	for (const struct buf_slot *l = s->first; l; l = l->later) {
		if (l->type == type && l->number != expected)
			return false;
		expected = l->number + l->dropped + 1;
	}
	return true;
}

bool order_can_close(const struct typed *y, const struct type_queue *s)
{
	if (!(s->flags & TERN_BUF_ORDER_ALL))
		return true;
	for (uint32_t r = 0; r < y->e->t->size; r++)
		if (!stream_whole(&y->all[r], s->type))
			return false;
	return true;
}

/* Takes out the slots of a type but the first; the one before answers for the number. */
static void stream_purge(struct typed *y, struct stream *s, unsigned type)
{
	struct buf_slot *before = s->first;
	while (before && before->later) {
		struct buf_slot *l = before->later;
		if (l->type != type) {
			before = l;
			continue;
		}
		before->dropped = (uint32_t)(l->number + l->dropped - before->number);
		before->later = l->later;
		if (s->last == l)
			s->last = before;
		buf_slot_drop(y, l);
	}
}

/* Drops what has arrived behind a missing number. */
static void stream_cut(struct typed *y, struct stream *s)
{
	uint64_t expected = s->next;
	struct buf_slot *last = NULL;
	for (struct buf_slot *l = s->first; l && l->number == expected; l = l->later) {
		expected = l->number + l->dropped + 1;
		last = l;
	}
	struct buf_slot *rest = last ? last->later : s->first;
	*(last ? &last->later : &s->first) = NULL;
	s->last = last;
	for (struct buf_slot *next; rest; rest = next) {
		next = rest->later;
		buf_slot_drop(y, rest);
	}
}

void order_close(struct typed *y, struct type_queue *s)
{
	for (uint32_t r = 0; r < y->e->t->size; r++) {
		if (s->stream)
			stream_cut(y, &s->stream[r]);
		else if (s->flags & TERN_BUF_ORDER_ALL)
			stream_purge(y, &y->all[r], s->type);
	}
}

void order_free(struct typed *y)
{
	for (uint32_t r = 0; y->all && r < y->e->t->size; r++)
		for (struct buf_slot *l = y->all[r].first, *later; l; l = later) {
			later = l->later;
			if (!l->queue)
				memory_free(l);
		}
	memory_free(y->all);
}

void order_lost(struct typed *y, uint32_t rank)
{
	for (unsigned i = 0; i < y->queues; i++)
		if (y->sorted[i]->stream)
			stream_cut(y, &y->sorted[i]->stream[rank]);
	if (y->all)
		stream_cut(y, &y->all[rank]);
}
