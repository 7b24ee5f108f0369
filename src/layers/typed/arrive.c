/* SPDX-License-Identifier: BSD-3-Clause */
/* Notices: what a sender says of a message that has landed, and what its receiver makes of it. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "typed/typed.h"

_Static_assert(TERN_BUF_TYPES_MAX <= 256 && KEYS <= 1 << 16, "a notice's parts fit");

/* The type's queue, if the message was sent in the generation that it still has. */
static struct type_queue *notice_queue(const struct typed *y, const struct notice *n)
{
	struct type_queue *s = y->queue[n->type];
	return s && s->pool.generation == n->generation ? s : NULL;
}

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
 * What is wrong with a notice from `src`; NULL if it is good. Its type may have been closed
 * meanwhile if it lies in the spill, since a claim there holds off nothing.
 */
static const char *notice_wrong(const struct typed *y, const struct notice *n, uint32_t src)
{
	struct type_queue *type = notice_queue(y, n), *s = n->key < KEYS ? y->queue[n->key] : NULL;
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

static __attribute__((noinline)) void notice_any(struct typed *y, const tern_msg *m)
{
	uint32_t src = tern_msg_src(m);
	struct notice n;
	memcpy(&n, m->word, sizeof n);
	const char *wrong = tern_msg_count(m) == NOTICE_WORDS ? notice_wrong(y, &n, src)
							      : "that says too little";
	if (wrong) {
		typed_refuse(y, src, wrong);
		return;
	}
	struct type_queue *s = notice_queue(y, &n);
	struct buf_slot *l = &y->queue[n.key]->slot[n.index];
	if (!layer_maps(y->e, src))
		offer_landed(y, n.type, src);
	if (s && !(n.flags & NOTICE_CANCELLED))
		buf_slot_ready(s, l, src, n.len);
	else
		buf_slot_drop(y, l);
	if (n.flags & NOTICE_SPOILED)
		arrive_spoiled(y, n.type);
}

/*
 * The common case: a near sender, in the first pool of the type. The head is that of such a notice,
 * or it is not: it has no other type, key or flag then.
 */
static void on_notice(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	const uint64_t *w = m->word;
	struct type_queue *s = y->queue[w[0] & 0xff];
	uint32_t index = (uint32_t)(w[0] >> 32), src = tern_msg_src(m);
	if (TERN_UNLIKELY(tern_msg_count(m) != NOTICE_WORDS || !s ||
			  (uint32_t)w[0] != notice_head(s->type, s->type) ||
			  w[1] != s->pool.generation || w[2] > s->pool.bytes ||
			  index >= s->pool.count || s->slot[index].state != BUF_SLOT_NONE ||
			  y->check || !layer_maps(y->e, src)))
		notice_any(y, m);
	else
		buf_slot_ready(s, &s->slot[index], src, w[2]);
}

void arrive_register(struct endpoint *e)
{
	layer_on(e, TYPED_ARRIVED, on_notice);
}
