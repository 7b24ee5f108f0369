/* SPDX-License-Identifier: BSD-3-Clause */
/* Notices: what a sender says of a message that has landed, and what its receiver makes of it. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "typed/typed.h"

_Static_assert(TERN_BUF_TYPES_MAX <= 256 && KEYS <= 1 << 16 && ORDERED < 256,
	       "a notice's parts fit");

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
static bool notice_taken(const struct typed *y, const struct type_queue *s, uint32_t index,
			 uint32_t src)
{
	const struct buf_slot *l = &s->slot[index];
	bool believed = layer_maps(y->e, src) && !y->check;
	return believed ? buf_slot_open(l) : buf_slot_claimed(l, src);
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
	if (n->index >= s->pool.count || !notice_taken(y, s, n->index, src))
		return "in a buffer that it had not taken";
	if (n->len > s->pool.bytes || (type && n->len > type->most))
		return "that is longer than its buffer";
	if (type ? n->order != (type->flags & ORDERED) : n->order & TERN_BUF_ORDER_ALL && !y->all)
		return "with an order that its type does not have";
	return NULL;
}

/* The stream that it belongs to; NULL if it has no order, or its order ended with its type. */
static struct stream *notice_stream(const struct typed *y, const struct notice *n, uint32_t src)
{
	struct type_queue *type = notice_queue(y, n);
	if (n->order & TERN_BUF_ORDER_ALL)
		return &y->all[src];
	return n->order && type ? &type->stream[src] : NULL;
}

static void buf_slot_arrived(struct typed *y, struct buf_slot *l, const struct notice *n,
			     uint32_t src)
{
	struct stream *stream = notice_stream(y, n, src);
	bool cancelled = n->cancelled || !notice_queue(y, n);
	l->number = n->number;
	l->len = n->len;
	l->src = src;
	l->type = n->type;
	l->cancelled = cancelled;
	if (stream && !order_arrived(y, stream, l, n->order & TERN_BUF_ORDER_ALL)) {
		typed_refuse(y, src, "with a number that has been used");
		buf_slot_drop(y, l);
	} else if (!stream && cancelled) {
		buf_slot_drop(y, l);
	} else if (!stream) {
		buf_slot_ready(y->queue[l->type], l);
	}
}

void arrive_spoiled(struct typed *y, unsigned type)
{
	poll_trouble(
		y->e,
		error_set(-EBADMSG,
			  "a buffer of rank %u for messages of type %u was written to after it was "
			  "given back with tern_buf_free()",
			  y->e->t->rank, type));
	error_warn("%s", tern_strerror(y->e->trouble));
}

static __attribute__((noinline)) void notice_any(struct typed *y, const tern_msg *m)
{
	uint32_t src = tern_msg_src(m);
	if (tern_msg_words(m) != NOTICE_WORDS) {
		typed_refuse(y, src, "that says too little");
		return;
	}
	struct notice n = notice_read(m->word);
	const char *wrong = notice_wrong(y, &n, src);
	if (wrong) {
		typed_refuse(y, src, wrong);
		return;
	}
	buf_slot_arrived(y, &y->queue[n.key]->slot[n.index], &n, src);
	if (n.spoiled)
		arrive_spoiled(y, n.type);
}

/*
 * The common case: a near sender, a type without order, in the first of its pools. The head is that
 * of such a notice, or it is not: it has no other type, key, order or flag then.
 */
static void on_notice(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	const uint64_t *w = m->word;
	struct type_queue *s = y->queue[w[0] & 0xff];
	uint32_t index = (uint32_t)(w[0] >> 32), src = tern_msg_src(m);
	if (TERN_UNLIKELY(tern_msg_words(m) != NOTICE_WORDS || !s ||
			  (uint32_t)w[0] != notice_head(s->type, s->type, 0) ||
			  w[1] != s->pool.generation || w[2] > s->pool.bytes ||
			  index >= s->pool.count || s->slot[index].state != BUF_SLOT_NONE ||
			  s->flags & ORDERED || y->check || !layer_maps(y->e, src))) {
		notice_any(y, m);
		return;
	}
	struct buf_slot *l = &s->slot[index];
	l->len = w[2];
	l->src = src;
	l->type = (uint16_t)s->type;
	buf_slot_ready(s, l);
}

/* -- From a far sender ------------------------------------------------------------------------- */

enum { LATE_MOST = 4096 };

/*
 * A message of a use of its type that is over is dropped. If it has a number in the order of all
 * types, a slot without a buffer stands for that.
 */
static const char *brought_late(struct typed *y, const struct notice *n, uint32_t src)
{
	if (!(n->order & TERN_BUF_ORDER_ALL) || !y->all)
		return NULL;
	struct buf_slot *l = y->late[src] < LATE_MOST ? memory_new(1, sizeof *l) : NULL;
	if (!l)
		return "of a type that was closed, one of too many";
	*l = (struct buf_slot){
		.number = n->number, .src = src, .type = n->type, .cancelled = true
	};
	y->late[src]++;
	if (!order_arrived(y, &y->all[src], l, true))
		buf_slot_drop(y, l);
	return NULL;
}

static const char *brought_take(struct typed *y, const tern_msg *m, uint32_t src)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	struct notice n = notice_read(m->word);
	struct type_queue *s = notice_queue(y, &n);
	if (n.len != (data ? len : 0))
		return "that is not as long as it says";
	if (!s)
		return brought_late(y, &n, src);
	if (n.len > s->pool.bytes)
		return "that is longer than its buffer";
	if (n.order != (s->flags & ORDERED))
		return "with an order that its type does not have";
	struct buf_slot *l = credit_use(y, s, src);
	if (!l)
		return "for which it had no credit";
	if (y->check && !check_filled(l->data, l->queue->pool.bytes))
		arrive_spoiled(y, n.type);
	if (n.len)
		memcpy(l->data, data, n.len);
	buf_slot_arrived(y, l, &n, src);
	return NULL;
}

static void on_notice_with_data(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	const char *wrong = tern_msg_words(m) == BROUGHT_WORDS ? brought_take(y, m, src)
							       : "that says too little";
	if (wrong)
		typed_refuse(y, src, wrong);
	else if (tern_msg_arg(m, NOTICE_WORDS) & BROUGHT_TELL)
		layer_reply(y->e, TYPED_LANDED, NULL, 0, 1, &m->word[0]);
}

void arrive_register(struct endpoint *e)
{
	layer_on(e, TYPED_ARRIVED, on_notice);
	layer_on(e, TYPED_BROUGHT, on_notice_with_data);
}
