/* SPDX-License-Identifier: BSD-3-Clause */
/* Notices: what a sender says of a message that has landed, and what its receiver makes of it. */
#include <errno.h>

#include "base/error.h"
#include "typed/typed.h"

enum { NOTICE_CANCELLED = 1 << 28, NOTICE_SPOILED = 1 << 29, KEY_SHIFT = 8, ORDER_SHIFT = 20 };

void notice_write(const struct notice *n, uint64_t words[NOTICE_WORDS])
{
	words[0] = (uint64_t)n->index << 32 | (uint64_t)n->order << ORDER_SHIFT |
		   (uint64_t)n->key << KEY_SHIFT | n->type | (n->cancelled ? NOTICE_CANCELLED : 0) |
		   (n->spoiled ? NOTICE_SPOILED : 0);
	words[1] = n->turn;
	words[2] = n->len;
	words[3] = n->number;
}

struct notice notice_read(const uint64_t words[NOTICE_WORDS])
{
	return (struct notice){
		.type = words[0] & 0xff,
		.key = words[0] >> KEY_SHIFT & 0xfff,
		.order = words[0] >> ORDER_SHIFT & 0xff,
		.cancelled = words[0] & NOTICE_CANCELLED,
		.spoiled = words[0] & NOTICE_SPOILED,
		.index = (uint32_t)(words[0] >> 32),
		.turn = (uint32_t)words[1],
		.len = words[2],
		.number = words[3],
	};
}

_Static_assert(TERN_TYPES_MAX <= 1 << KEY_SHIFT && KEYS <= 1 << (ORDER_SHIFT - KEY_SHIFT) && ORDERED < 256,
	       "a notice's parts fit");

/* The type's shelf, if the message was sent in the turn that it still has. */
static struct shelf *notice_shelf(const struct typed *y, const struct notice *n)
{
	struct shelf *s = y->shelf[n->type];
	return s && s->rack.turn == n->turn ? s : NULL;
}

/*
 * What is wrong with a notice from `src`; NULL if it is good. Its type may have been closed meanwhile if it
 * lies in the spill, since a claim there holds off nothing.
 */
static const char *notice_wrong(const struct typed *y, const struct notice *n, uint32_t src)
{
	struct shelf *type = notice_shelf(y, n), *s = n->key < KEYS ? y->shelf[n->key] : NULL;
	if (!s || (n->key < KEY_SPILL ? s != type : type && !(type->flags & TERN_BUF_SPILL)))
		return "of a type that is not open here";
	if (n->index >= s->rack.count || !rack_is(&s->rack, n->index, RACK_CLAIMED, src))
		return "in a buffer that it had not taken";
	if (n->len > s->rack.bytes || (type && n->len > type->rack.bytes))
		return "that is longer than its buffer";
	if (type ? n->order != (type->flags & ORDERED) : n->order & TERN_BUF_ORDER_ALL && !y->all)
		return "with an order that its type does not have";
	return NULL;
}

/* The stream that it belongs to; NULL if it has no order, or its order ended with its type. */
static struct stream *notice_stream(const struct typed *y, const struct notice *n, uint32_t src)
{
	struct shelf *type = notice_shelf(y, n);
	if (n->order & TERN_BUF_ORDER_ALL)
		return &y->all[src];
	return n->order && type ? &type->stream[src] : NULL;
}

static void letter_arrived(struct typed *y, const struct notice *n, uint32_t src)
{
	struct shelf *s = y->shelf[n->key];
	struct letter *l = &s->letter[n->index];
	struct stream *stream = notice_stream(y, n, src);
	bool cancelled = n->cancelled || !notice_shelf(y, n);
	*l = (struct letter){ .shelf = s,
			      .number = n->number,
			      .len = n->len,
			      .src = src,
			      .type = n->type,
			      .cancelled = cancelled };
	rack_set(&s->rack, n->index, RACK_FULL, src);
	if (stream && !order_arrived(y, stream, l, n->order & TERN_BUF_ORDER_ALL)) {
		typed_refuse(y, src, "with a number that has been used");
		letter_drop(l, y->check);
	} else if (!stream && cancelled) {
		letter_drop(l, y->check);
	} else if (!stream) {
		letter_ready(y, l);
	}
}

static void spoiled(struct typed *y, const struct notice *n)
{
	poll_trouble(
		y->e,
		error_set(
			-EBADMSG,
			"a buffer of rank %u for messages of type %u was written to after it was given back "
			"with tern_buffree()",
			y->e->t->rank, n->type));
	error_warn("%s", tern_strerror(y->e->trouble));
}

static void arrived(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
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
	letter_arrived(y, &n, src);
	if (n.spoiled)
		spoiled(y, &n);
}

void arrive_register(struct endpoint *e)
{
	layer_on(e, TYPED_ARRIVED, arrived);
}
