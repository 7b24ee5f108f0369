/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: the first slot of a type's queue becomes the program's. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/wait.h"
#include "typed/typed.h"

struct receiving {
	struct typed *y;
	unsigned type;
};

static struct type_queue *receiving_queue(const struct receiving *r)
{
	return r->type < TERN_BUF_TYPES_MAX ? r->y->queue[r->type] : NULL;
}

/* Also when the type has been closed by a handler: then there is nothing to wait for. */
static bool receiving_over(struct endpoint *e, void *arg)
{
	struct type_queue *s = receiving_queue(arg);
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
	for (; s && !to; s = s->more)
		if (l->len <= s->pool.bytes)
			to = buf_slot_take(s, l->type, l->src, BUF_SLOT_HELD);
	if (!to)
		return l;
	memcpy(to->data, l->data, l->len);
	to->len = l->len;
	buf_slot_drop(y, l);
	return to;
}

static inline tern_buf receive_first(struct typed *y, struct type_queue *s)
{
	struct buf_slot *l = buf_slot_pop(s);
	if (TERN_UNLIKELY(s->flags & TERN_BUF_ORDER_ALL))
		order_received(y, l);
	if (TERN_UNLIKELY(l->queue->type != s->type))
		l = receive_spilled(y, s, l);
	l->state = BUF_SLOT_HELD;
	s->held++;
	y->given = l;
	return (tern_buf){ .data = l->data, .len = l->len, .src = l->src };
}

/* One look at what has arrived, where that is allowed. */
static int receive_look(struct endpoint *e, struct receiving *r)
{
	if (!receiving_over(e, r) && !in_handler(e) && !held(e))
		poll_once(e, KINDS_BOTH);
	if (receiving_over(e, r))
		return 0;
	return error_set(-EAGAIN, "no message of type %u has arrived at rank %u", r->type,
			 e->t->rank);
}

static int receive_wait(struct endpoint *e, struct receiving *r)
{
	struct wait w = { .call = "tern_buf_recv",
			  .rule = "a waiting tern_buf_recv()",
			  .stop = wait_blame };
	return wait_until(e, receiving_over, r, &w);
}

static int receive(struct endpoint *e, struct receiving *r, unsigned flags)
{
	if (flags & ~(unsigned)TERN_BUF_NOWAIT)
		return error_set(-EINVAL,
				 "tern_buf_recv() was given flags %#x; it takes TERN_BUF_NOWAIT",
				 flags);
	int rc = flags & TERN_BUF_NOWAIT ? receive_look(e, r) : receive_wait(e, r);
	if (!rc && !receiving_queue(r))
		rc = error_set(
			-ENXIO,
			"a message of type %u was asked for, but rank %u has no buffers for that: "
			"tern_buf_alloc() sets them aside",
			r->type, e->t->rank);
	return rc;
}

/* In a scope: a thread may serve memory messages of networks meanwhile. */
static void receive_poll(tern *t)
{
	INSIDE struct scope scope = scope_open(t);
	poll_once(t->own, KINDS_BOTH);
}

/* The program, whose handlers nobody else runs, and a message: there, or after one look. */
static inline bool receive_quick(tern *t, unsigned type)
{
	struct type_queue *s =
		t->reach && type < TERN_BUF_TYPES_MAX ? typed_of(t)->queue[type] : NULL;
	if (!s || s->first)
		return s;
	if (held(t->own))
		return false;
	receive_poll(t);
	s = typed_of(t)->queue[type];
	return s && s->first;
}

static __attribute__((noinline)) int receive_any(tern *t, unsigned type, unsigned flags,
						 tern_buf *buf)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	struct receiving r = { typed_here(t), type };
	int rc = rules_forked(e);
	if (!rc)
		rc = rules_rank(e, "tern_buf_recv()");
	if (!rc)
		rc = receive(e, &r, flags);
	if (!rc)
		*buf = receive_first(r.y, receiving_queue(&r));
	return rc;
}

int tern_buf_recv(tern *t, unsigned type, unsigned flags, tern_buf *buf)
{
	if (TERN_UNLIKELY(flags & ~(unsigned)TERN_BUF_NOWAIT || !receive_quick(t, type)))
		return receive_any(t, type, flags, buf);
	*buf = receive_first(typed_of(t), typed_of(t)->queue[type]);
	return 0;
}
