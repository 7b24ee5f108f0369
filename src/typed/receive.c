/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: the first letter of a type's queue becomes the program's. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/wait.h"
#include "typed/typed.h"

struct receiving {
	struct typed *y;
	unsigned type;
};

static struct shelf *receiving_shelf(const struct receiving *r)
{
	return r->type < TERN_TYPES_MAX ? r->y->shelf[r->type] : NULL;
}

/* Also when the type has been closed by a handler: then there is nothing to wait for. */
static bool receiving_over(struct endpoint *e, void *arg)
{
	struct shelf *s = receiving_shelf(arg);
	(void)e;
	return !s || s->first;
}

/*
 * A spilled message takes a buffer of its type if one is free by now, so that its cell is there for others;
 * otherwise the program gets the cell itself, and gives that back.
 */
static struct letter *receive_settle(struct typed *y, struct shelf *s, struct letter *l)
{
	uint32_t i;
	if (l->shelf == s || !rack_take(&s->rack, RACK_HELD, l->src, &i))
		return l;
	struct letter *to = &s->letter[i];
	memcpy(rack_buffer(&s->rack, i), rack_buffer(&l->shelf->rack, letter_index(l)), l->len);
	*to = (struct letter){ .shelf = s, .len = l->len, .src = l->src, .type = l->type };
	letter_drop(l, y->check);
	return to;
}

static void *receive_first(struct typed *y, struct shelf *s, uint32_t *src, size_t *len)
{
	struct letter *l = letter_pop(s);
	if (s->flags & TERN_BUF_ORDER_ALL)
		order_received(y, l);
	l = receive_settle(y, s, l);
	l->state = LETTER_HELD;
	s->held++;
	rack_set(&l->shelf->rack, letter_index(l), RACK_HELD, l->src);
	if (src)
		*src = l->src;
	if (len)
		*len = l->len;
	return rack_buffer(&l->shelf->rack, letter_index(l));
}

/* One look at what has arrived, where that is allowed. */
static int receive_look(struct endpoint *e, struct receiving *r)
{
	if (!receiving_over(e, r) && !in_handler(e) && !held(e))
		poll_once(e, KINDS_BOTH);
	if (receiving_over(e, r))
		return 0;
	return error_set(-EAGAIN, "no message of type %u has arrived at rank %u", r->type, e->t->rank);
}

static int receive_wait(struct endpoint *e, struct receiving *r)
{
	struct wait w = { .call = "tern_bufreceive",
			  .rule = "a waiting tern_bufreceive()",
			  .stop = wait_blame };
	return wait_until(e, receiving_over, r, &w);
}

static int receive(struct endpoint *e, struct receiving *r, unsigned flags)
{
	if (flags & ~(unsigned)TERN_NOWAIT)
		return error_set(-EINVAL, "tern_bufreceive() was given flags %#x; it takes TERN_NOWAIT",
				 flags);
	int rc = flags & TERN_NOWAIT ? receive_look(e, r) : receive_wait(e, r);
	if (!rc && !receiving_shelf(r))
		rc = error_set(-ENXIO,
			       "a message of type %u was asked for, but rank %u has no buffers for that: "
			       "tern_bufalloc() sets them aside",
			       r->type, e->t->rank);
	return rc;
}

void *tern_bufreceive(tern *t, unsigned type, unsigned flags, uint32_t *src, size_t *len)
{
	INSIDE struct door door = door_open(t);
	struct endpoint *e = t->own;
	struct receiving r = { typed_here(t), type };
	int rc = rules_forked(e);
	if (!rc)
		rc = receive(e, &r, flags);
	if (rc) {
		errno = -rc;
		return NULL;
	}
	return receive_first(r.y, receiving_shelf(&r), src, len);
}
