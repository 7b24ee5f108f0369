/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: the first slot of a type's queue becomes the program's. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/wait.h"
#include "typed/typed.h"

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
	int rc = rules_forked(e);
	if (!rc)
		rc = rules_rank(e, "tern_buf_recv()");
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
