/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A full buffer in the common case: the program posts another item of the kind that is open, and
 * nothing of its rank waits for room at the receiver. Then the batch goes without a look at rules
 * that the first item of its kind was checked by. A buffer of this rank's own items is handled
 * where it lies.
 */
#include "endpoint/count.h"
#include "post/post.h"
#include "ring/ring.h"

/*
 * As if a poll had found the batch. What was sent to oneself before goes first, so nothing may lie
 * in the ring, in slots or in the queue.
 */
static bool quick_own(struct post *p, uint32_t words)
{
	struct endpoint *e = p->e;
	tern *t = e->t;
	INSIDE struct scope scope =
		scope_open(t); /* whoever serves memory messages has a turn, too */
	struct tern_inlet *in = &e->site.peer[t->rank].requests;
	if (!in->base || inlet_has(in) || post_slots_out(p, &p->out[t->rank]) || held(e))
		return false;
	struct gather *b = gather_swap(p, t->rank);
	if (!b)
		return false;
	e->inlet = in;
	t->reach = 0;
	batch_handle(t, t->rank, b->word, b->word + words);
	e->inlet = NULL;
	t->current = NULL;
	t->reach = t->size;
	stats_bump(&e->pulse->served, 1);
	gather_give(p, b);
	return true;
}

bool post_quick(struct post *p, uint32_t rank)
{
	struct outbox *o = &p->out[rank];
	const struct tern_lane *lane = &p->e->t->lane[rank];
	if (o->first || o->overloaded || p->queued >= QUEUED_LONG || !layer_maps(p->e, rank) ||
	    lane->tail >= lane->limit)
		return false;
	uint32_t words = gather_head(p, rank);
	if (rank == p->e->t->rank)
		return quick_own(p, words);
	if (post_slot_send(p, rank, o->open->word, words))
		return false;
	p->left++;
	gather_again(p, rank);
	return true;
}
