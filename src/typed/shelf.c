/* SPDX-License-Identifier: BSD-3-Clause */
/* Making shelves and taking them down, and finding the one that an address is in. */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "typed/typed.h"

/* The list that a shelf of `count` buffers goes to when nobody uses it; the spill's are never closed. */
static struct shelf **spare_list(struct typed *y, uint32_t count)
{
	unsigned size = (unsigned)__builtin_ctz(rack_room(count) / rack_room(1));
	return size < SPARE_SIZES ? &y->spare[size] : NULL;
}

static struct shelf *shelf_new(struct typed *y, uint32_t count)
{
	struct shelf *s = memory_new(1, sizeof *s + rack_room(count) * sizeof *s->letter);
	void *words = s ? tern_alloc(y->e->t, rack_words_bytes(count)) : NULL;
	if (words) {
		s->words = words;
		return s;
	}
	memory_free(s);
	return NULL;
}

static void shelf_spare(struct typed *y, struct shelf *s)
{
	struct shelf **list = spare_list(y, s->rack.count);
	memory_free(s->borrower);
	s->borrower = NULL;
	if (list) {
		s->spare = *list;
		*list = s;
		return;
	}
	tern_free(y->e->t, s->words); /* the spill could not be made: nobody has seen it */
	memory_free(s);
}

/* Those of which nothing is lent any more can be used again. */
static void limbo_sweep(struct typed *y)
{
	for (struct shelf **at = &y->limbo, *s; (s = *at) && !y->lending;) {
		if (!lend_over(y, s)) {
			at = &s->spare;
			continue;
		}
		*at = s->spare;
		shelf_spare(y, s);
	}
}

/* A shelf for `count` buffers without buffers: one that is not used any more, or a new one. */
static struct shelf *shelf_take(struct typed *y, uint32_t count)
{
	struct shelf **list = spare_list(y, count);
	limbo_sweep(y);
	struct shelf *s = list ? *list : NULL;
	if (!s)
		return shelf_new(y, count);
	*list = s->spare;
	return s;
}

/* What far senders have of it, if there are any; nothing of a spill is lent but for a type. */
static int shelf_borrowers(struct typed *y, struct shelf *s)
{
	uint32_t r = 0;
	while (r < y->e->t->size && layer_maps(y->e, r))
		r++;
	if (r == y->e->t->size || s->type >= KEY_SPILL)
		return 0;
	s->borrower = memory_new(y->e->t->size, sizeof *s->borrower);
	return s->borrower ? 0 : -ENOMEM;
}

static int shelf_streams(struct typed *y, struct shelf *s)
{
	s->stream = NULL;
	if (s->flags & TERN_BUF_ORDER_ALL && !y->all) {
		y->all = memory_new(y->e->t->size, sizeof *y->all);
		return y->all ? 0 : -ENOMEM;
	}
	if (!(s->flags & TERN_BUF_ORDER) || s->flags & TERN_BUF_ORDER_ALL)
		return 0;
	s->stream = memory_new(y->e->t->size, sizeof *s->stream);
	return s->stream ? 0 : -ENOMEM;
}

/* Sets the shelf up for a type that does not exist yet for others. */
static void shelf_begin(struct typed *y, struct shelf *s, char *buffers)
{
	s->rack.turn = ++y->turns ? y->turns : ++y->turns; /* 0 is none */
	s->rack.first = 0;
	s->first = s->last = NULL;
	s->held = s->due = s->next = s->lookers = 0;
	s->closing = s->wanted = false;
	rack_see(&s->rack, s->words, buffers);
	for (uint32_t i = 0; i < s->rack.count; i++) {
		s->letter[i] = (struct letter){ .shelf = s };
		if (y->check)
			check_fill(rack_buffer(&s->rack, i), s->rack.bytes);
	}
	rack_fresh(&s->rack);
}

static void shelf_list(struct typed *y, struct shelf *s)
{
	unsigned i = y->shelves++;
	for (; i && y->sorted[i - 1]->rack.buffer > s->rack.buffer; i--)
		y->sorted[i] = y->sorted[i - 1];
	y->sorted[i] = s;
}

static void shelf_unlist(struct typed *y, const struct shelf *s)
{
	unsigned i = 0;
	while (y->sorted[i] != s)
		i++;
	for (y->shelves--; i < y->shelves; i++)
		y->sorted[i] = y->sorted[i + 1];
}

static int shelf_no_room(struct typed *y, size_t bytes, uint32_t count)
{
	return error_set(-ENOMEM,
			 "%u buffers of %zu bytes were asked of rank %u's heap, which has no room for them: "
			 "raise TERN_HEAP or TERN_MEMORY, or set fewer aside",
			 count, bytes, y->e->t->rank);
}

int shelf_make(struct typed *y, unsigned key, size_t bytes, uint32_t count, unsigned flags,
	       struct shelf **out)
{
	size_t stride, all;
	bool possible = rack_sizes(bytes, count, &stride, &all);
	struct shelf *s = possible ? shelf_take(y, count) : NULL;
	if (!s)
		return shelf_no_room(y, bytes, count);
	s->rack.count = count;
	s->rack.bytes = bytes;
	s->rack.stride = stride;
	s->type = key;
	s->flags = flags;
	char *buffers = tern_alloc(y->e->t, all);
	if (!buffers || shelf_streams(y, s) || shelf_borrowers(y, s)) {
		tern_free(y->e->t, buffers);
		memory_free(s->stream);
		s->stream = NULL;
		shelf_spare(y, s);
		return shelf_no_room(y, bytes, count);
	}
	shelf_begin(y, s, buffers);
	shelf_list(y, s);
	y->shelf[key] = s;
	*out = s;
	return 0;
}

void shelf_unmake(struct typed *y, struct shelf *s)
{
	y->shelf[s->type] = NULL;
	shelf_unlist(y, s);
	tern_free(y->e->t, s->rack.buffer);
	memory_free(s->stream);
	s->stream = NULL;
	lend_closed(y, s);
	if (!s->borrower || (lend_over(y, s) && !y->lending)) {
		shelf_spare(y, s);
		return;
	}
	s->spare = y->limbo;
	y->limbo = s;
}

struct shelf *shelf_of_turn(const struct typed *y, unsigned type, uint32_t turn)
{
	struct shelf *s = y->shelf[type];
	if (s && s->rack.turn == turn)
		return s;
	for (s = y->limbo; s && s->rack.turn != turn; s = s->spare)
		;
	return s && s->type == type ? s : NULL;
}

struct shelf *shelf_around(const struct typed *y, const void *p)
{
	unsigned low = 0, high = y->shelves; /* those below `low` begin at or before p */
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if ((uintptr_t)y->sorted[middle]->rack.buffer <= (uintptr_t)p)
			low = middle + 1;
		else
			high = middle;
	}
	struct shelf *s = low ? y->sorted[low - 1] : NULL;
	if (!s || (uintptr_t)p - (uintptr_t)s->rack.buffer >= s->rack.count * s->rack.stride)
		return NULL;
	return s;
}

void shelves_free(struct typed *y)
{
	for (unsigned i = 0; i < y->shelves; i++) {
		memory_free(y->sorted[i]->stream);
		memory_free(y->sorted[i]->borrower);
		memory_free(y->sorted[i]);
	}
	for (struct shelf *s = y->limbo, *next; s; s = next) {
		next = s->spare;
		memory_free(s->borrower);
		memory_free(s);
	}
	for (unsigned i = 0; i < SPARE_SIZES; i++)
		for (struct shelf *s = y->spare[i], *next; s; s = next) {
			next = s->spare;
			memory_free(s);
		}
}
