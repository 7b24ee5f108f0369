/* SPDX-License-Identifier: BSD-3-Clause */
/* Arriving and receiving: the first slot of a type's queue becomes the program's. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/wait.h"
#include "typed/typed.h"

/* -- Notices: what a sender says of a message that has landed ---------------------------------- */

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

/* -- Receiving -------------------------------------------------------------------------------- */

/* Also when the type has been closed by a handler: then there is nothing to wait for. */
static bool receive_over(struct endpoint *e, void *arg)
{
	const struct type_queue *s = *(struct type_queue **)arg;
	(void)e;
	return !s || s->first;
}

/*
 * A spilled message takes a buffer of its type if one is free by now, so that its cell is there for
 * others; otherwise the program gets the cell itself, and gives that back.
 */
static __attribute__((noinline)) struct buf_slot *
receive_spilled(struct typed *y, struct type_queue *s, struct buf_slot *l)
{
	struct buf_slot *to = NULL;
	for (; s && !to; s = type_queue_next(s))
		to = buf_slot_take(s, l->len, l->src);
	if (!to)
		return l;
	memcpy(to->data, l->data, l->len);
	to->len = l->len;
	to->src = l->src;
	to->type = l->type;
	buf_slot_drop(y, l);
	return to;
}

static inline tern_buf receive_first(struct typed *y, struct type_queue *s)
{
	struct buf_slot *l = buf_slot_pop(s);
	if (TERN_UNLIKELY(l->queue->type != s->type))
		l = receive_spilled(y, s, l);
	l->state = BUF_SLOT_HELD;
	s->held++;
	y->given = l;
	return (tern_buf){ .data = l->data, .len = l->len, .src = l->src };
}

static __attribute__((noinline)) int receive_any(tern *t, unsigned type, unsigned flags,
						 tern_buf *buf)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	struct wait w = { .call = "tern_buf_recv",
			  .rule = "a waiting tern_buf_recv()",
			  .stop = wait_blame };
	int rc = rules_rank(e, "tern_buf_recv()");
	if (!rc && flags & ~(unsigned)TERN_BUF_NOWAIT)
		rc = error_set(-EINVAL,
			       "tern_buf_recv() was given flags %#x; it takes TERN_BUF_NOWAIT",
			       flags);
	if (rc)
		return rc;
	struct typed *y = typed_here(t);
	struct type_queue *none = NULL, **s = type < TERN_BUF_TYPES_MAX ? &y->queue[type] : &none;
	if (!receive_over(e, s) && !in_handler(e) && !held(e))
		poll_once(e, KINDS_BOTH);
	if (!(flags & TERN_BUF_NOWAIT))
		rc = wait_until(e, receive_over, s, &w);
	else if (!receive_over(e, s))
		rc = error_set(-EAGAIN, "no message of type %u has arrived at rank %u", type,
			       t->rank);
	if (!rc && !*s)
		rc = error_set(
			-ENXIO,
			"a message of type %u was asked for, but rank %u has no buffers for that: "
			"tern_buf_alloc() sets them aside",
			type, t->rank);
	if (!rc)
		*buf = receive_first(y, *s);
	return rc;
}

/* The common case: the program, whose handlers nobody else runs, and a message that is there. */
int tern_buf_recv(tern *t, unsigned type, unsigned flags, tern_buf *buf)
{
	struct type_queue *s =
		t->reach && type < TERN_BUF_TYPES_MAX ? typed_of(t)->queue[type] : NULL;
	if (TERN_UNLIKELY(!s || !s->first || flags & ~(unsigned)TERN_BUF_NOWAIT))
		return receive_any(t, type, flags, buf);
	*buf = receive_first(typed_of(t), s);
	return 0;
}
