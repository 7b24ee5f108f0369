/* SPDX-License-Identifier: BSD-3-Clause */
/* Letters: the queue of a type, and the way of a buffer back to its rack. */
#include "typed/typed.h"

void letter_ready(struct typed *y, struct letter *l)
{
	struct shelf *s = y->shelf[l->type];
	l->state = LETTER_READY;
	l->next = NULL;
	*(s->last ? &s->last->next : &s->first) = l;
	s->last = l;
}

struct letter *letter_pop(struct shelf *s)
{
	struct letter *l = s->first;
	s->first = l->next;
	if (!s->first)
		s->last = NULL;
	return l;
}

void letter_unlend(struct letter *l)
{
	if (letter_lent(l))
		rack_lend(&l->shelf->rack, -1u);
}

void letter_drop(struct letter *l, bool check)
{
	uint32_t i = letter_index(l);
	l->state = LETTER_NONE;
	if (check && !l->shelf->closing) /* then its memory is not the type's any more, or not for long */
		check_fill(rack_buffer(&l->shelf->rack, i), l->shelf->rack.bytes);
	if (l->shelf->closing)
		rack_set(&l->shelf->rack, i, RACK_SHUT, 0);
	else
		rack_give(&l->shelf->rack, i);
}
