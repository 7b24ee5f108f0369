/* SPDX-License-Identifier: BSD-3-Clause */
/* Notices: what a sender says of a message that has landed, and what its receiver makes of it. */
#include <errno.h>
#include <string.h>

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
	letter_unlend(l);
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

void arrive_spoiled(struct typed *y, unsigned type)
{
	poll_trouble(
		y->e,
		error_set(
			-EBADMSG,
			"a buffer of rank %u for messages of type %u was written to after it was given back "
			"with tern_buffree()",
			y->e->t->rank, type));
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
		arrive_spoiled(y, n.type);
}

/* -- From a far sender ----------------------------------------------------------------------------- */

/* Its type was closed after the buffer had been lent: it takes its turn in the order of all types, if that is its order. */
static void brought_late(struct typed *y, struct shelf *s, const struct notice *n, uint32_t src)
{
	struct letter *l = &s->letter[n->index];
	letter_unlend(l);
	*l = (struct letter){
		.shelf = s, .number = n->number, .src = src, .type = n->type, .cancelled = true
	};
	if (!(n->order & TERN_BUF_ORDER_ALL) || !y->all || !order_arrived(y, &y->all[src], l, true))
		letter_drop(l, y->check);
}

static void brought_now(struct typed *y, const struct notice *n, uint32_t src, const void *data)
{
	struct shelf *s = y->shelf[n->key];
	char *buffer = rack_buffer(&s->rack, n->index);
	if (y->check && !check_filled(buffer, s->rack.bytes))
		arrive_spoiled(y, n->type);
	if (n->len)
		memcpy(buffer, data, n->len);
	letter_arrived(y, n, src);
}

/* Where a message lies for which its sender had borrowed a buffer; NULL if it has not. */
static struct letter *brought_letter(struct typed *y, const struct notice *n, uint32_t src,
				     struct shelf *type)
{
	struct shelf *s = n->key == n->type                      ? type
			  : n->key >= KEY_SPILL && n->key < KEYS ? y->shelf[n->key]
								 : NULL;
	struct letter *l = s && n->index < s->rack.count ? &s->letter[n->index] : NULL;
	return l && letter_lent(l) && l->src == src && l->type == n->type ? l : NULL;
}

static const char *brought_take(struct typed *y, const tern_msg *m, uint32_t src)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	struct notice n = notice_read(m->word);
	struct shelf *type = shelf_of_turn(y, n.type, n.turn);
	struct letter *l = brought_letter(y, &n, src, type);
	if (!l)
		return "in a buffer that was not lent to it";
	if (n.len != (data ? len : 0))
		return "that is not as long as it says";
	bool counted = l->state == LETTER_LENT;
	const char *wrong = l->shelf->closing ? NULL : notice_wrong(y, &n, src);
	if (wrong)
		return wrong;
	if (l->shelf->closing)
		brought_late(y, l->shelf, &n, src);
	else
		brought_now(y, &n, src, data);
	if (type)
		lend_used(y, type, src, counted);
	return NULL;
}

static void brought(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	const char *wrong =
		tern_msg_words(m) == BROUGHT_WORDS ? brought_take(y, m, src) : "that says too little";
	if (wrong)
		typed_refuse(y, src, wrong);
	else if (tern_msg_arg(m, NOTICE_WORDS) & BROUGHT_TELL)
		layer_reply(y->e, TYPED_LANDED, NULL, 0, 1, &m->word[0]);
}

void arrive_register(struct endpoint *e)
{
	layer_on(e, TYPED_ARRIVED, arrived);
	layer_on(e, TYPED_BROUGHT, brought);
}
