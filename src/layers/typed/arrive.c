/* SPDX-License-Identifier: BSD-3-Clause */
/* Notices: what a sender says of a message that has landed, and what its receiver makes of it. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "typed/typed.h"

_Static_assert(TERN_BUF_TYPES_MAX <= 256 && KEYS <= 1 << 16, "a notice's parts fit");

/*
 * Whether `src` has taken the buffer. A rank that maps the pool could write the buffer's word too,
 * so without TERN_CHECK the word is not read: that would cost the line which the sender writes
 * next.
 */
static bool notice_taken(const struct typed *y, const struct buf_slot *l, uint32_t src)
{
	bool believed = layer_maps(y->e, src) && !y->check;
	return believed ? l->state == BUF_SLOT_NONE : buf_slot_claimed(l, src);
}

/*
 * What is wrong with a notice from `src`, of `type` and in a pool `s`; NULL if it is good. Its type
 * may have been closed meanwhile if it lies in the spill, since a claim there holds off nothing.
 */
static inline const char *notice_wrong(const struct typed *y, const struct notice *n, uint32_t src,
				       const struct type_queue *type, const struct type_queue *s)
{
	if (!s ||
	    (n->key >= KEY_SPILL && n->key < KEY_MORE ? type && !(type->flags & TERN_BUF_SPILL)
						      : !type || s->type != type->type))
		return "of a type that is not open here";
	if (n->index >= s->pool.count || !notice_taken(y, &s->slot[n->index], src))
		return "in a buffer that it had not taken";
	if (n->len > s->pool.bytes || (type && n->len > type->most))
		return "that is longer than its buffer";
	return NULL;
}

void arrive_spoiled(struct typed *y, unsigned type)
{
	poll_trouble_warn(
		y->e,
		error_set(-EBADMSG,
			  "a buffer of rank %u for messages of type %u was written to after it was "
			  "given back with tern_buf_free()",
			  y->e->t->rank, type));
}

void on_notice(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	struct notice n;
	memcpy(&n, m->word, sizeof n);
	struct type_queue *type = y->queue[n.type], *s = n.key < KEYS ? y->queue[n.key] : NULL;
	if (type && type->pool.generation != n.generation)
		type = NULL; /* it was sent before the type was closed */
	const char *wrong = tern_msg_count(m) == NOTICE_WORDS ? notice_wrong(y, &n, src, type, s)
							      : "that says too little";
	if (TERN_UNLIKELY(wrong)) {
		typed_refuse(y, src, wrong);
		return;
	}
	struct buf_slot *l = &s->slot[n.index];
	if (TERN_UNLIKELY(!layer_maps(y->e, src)))
		offer_landed(y, n.type, src);
	if (TERN_LIKELY(type && !(n.flags & NOTICE_CANCELLED)))
		buf_slot_ready(type, l, src, n.len);
	else
		buf_slot_drop(y, l);
	if (TERN_UNLIKELY(n.flags & NOTICE_SPOILED))
		arrive_spoiled(y, n.type);
}
