/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A full buffer in the common case: the program posts another item of the kind that is open, and
 * nothing of its rank waits for room at the receiver. Then the batch goes without a look at rules
 * that the first item of its kind was checked by.
 */
#include "post/post.h"

bool post_quick(struct post *p, uint32_t rank)
{
	struct outbox *o = &p->out[rank];
	struct tern_lane *lane = &p->e->t->lane[rank];
	if (o->first || o->overloaded || p->queued >= QUEUED_LONG || !layer_maps(p->e, rank) ||
	    lane->tail >= lane->limit)
		return false;
	uint32_t kind = tern_post_lane_(lane)->kind, words = gather_words(p, rank);
	if (post_slot_send(p, rank, o->open->word, words))
		return false;
	p->left++;
	gather_again(p, rank, kind);
	return true;
}
