/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting buffers aside for a type, giving them back one by one, and ending the type. */
#include <errno.h>

#include "base/error.h"
#include "typed/typed.h"

static int alloc_check(struct typed *y, unsigned type, unsigned count, unsigned flags)
{
	enum { POLICIES = TERN_BUF_REFUSE | TERN_BUF_SPILL };
	if (type >= TERN_TYPES_MAX)
		return error_set(-EINVAL, "tern_bufalloc() was given type %u; types are below %d", type,
				 TERN_TYPES_MAX);
	if (count < 1 || count > TERN_BUFFERS_MAX)
		return error_set(-EINVAL, "tern_bufalloc() was asked for %u buffers; a type has 1 to %d",
				 count, TERN_BUFFERS_MAX);
	if (flags & ~(unsigned)(POLICIES | ORDERED) || (flags & POLICIES) == POLICIES)
		return error_set(
			-EINVAL,
			"tern_bufalloc() was given flags %#x; it takes one policy of enum tern_buffers, and "
			"orders",
			flags);
	if (y->shelf[type])
		return error_set(
			-EEXIST,
			"rank %u has set buffers aside for type %u already: tern_bufclose() ends them",
			y->e->t->rank, type);
	return 0;
}

int tern_bufalloc(tern *t, unsigned type, size_t bytes, unsigned count, unsigned flags)
{
	INSIDE struct door door = door_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct typed *y = typed_here(t);
	struct shelf *s;
	int rc = alloc_check(y, type, count, flags);
	if (!rc && flags & TERN_BUF_SPILL)
		rc = spill_make(y);
	return rc ? rc : shelf_make(y, type, bytes, count, flags, &s);
}

/* -- Closing ---------------------------------------------------------------------------------- */

static void close_drop(struct typed *y, struct shelf *s)
{
	order_close(y, s);
	while (s->first) {
		struct letter *l = letter_pop(s);
		if (s->flags & TERN_BUF_ORDER_ALL)
			order_received(y, l);
		letter_drop(l, y->check);
	}
}

static int close_shelf(struct typed *y, struct shelf *s)
{
	const char *why = s->held ? "the program has one of its buffers: tern_buffree() it first"
			  : !order_can_close(y, s)
				  ? "a message before one of its own is just landing: poll, and try again"
			  : !lend_shut(y, s) ? "a message is just landing: poll, and try again"
					     : NULL;
	if (why)
		return error_set(-EBUSY, "type %u of rank %u cannot be closed: %s", s->type, y->e->t->rank,
				 why);
	s->closing = true;
	close_drop(y, s);
	shelf_unmake(y, s);
	lend_progress(
		y); /* before this rank says anything else: whoever hears that may know of the closing */
	return 0;
}

int tern_bufclose(tern *t, unsigned type)
{
	INSIDE struct door door = door_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct typed *y = typed_here(t);
	struct shelf *s = type < TERN_TYPES_MAX ? y->shelf[type] : NULL;
	if (!s)
		return error_set(-ENXIO,
				 "tern_bufclose() was given type %u, for which rank %u has no buffers", type,
				 t->rank);
	return close_shelf(y, s);
}

/* -- Giving back --------------------------------------------------------------------------------- */

int tern_buffree(tern *t, void *buffer)
{
	INSIDE struct door door = door_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct typed *y = typed_here(t);
	struct shelf *s = shelf_around(y, buffer);
	size_t at = s ? (size_t)((char *)buffer - s->rack.buffer) : 0;
	struct letter *l = s ? &s->letter[at / s->rack.stride] : NULL;
	if (!l || at % s->rack.stride || l->state != LETTER_HELD)
		return error_set(
			-EINVAL,
			"tern_buffree() was given %p, which is not a buffer that tern_bufreceive() gave and "
			"rank %u still has",
			buffer, t->rank);
	y->shelf[l->type]->held--;
	letter_drop(l, y->check);
	lend_progress(y); /* somebody may wait for it */
	return 0;
}
