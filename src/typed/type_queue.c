/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Type queues: a pool of buffers for each type, and what has landed in them, in order. Here they
 * are made and taken down; the spill is two more of them.
 */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "typed/typed.h"

/*
 * The list that a type queue of `count` buffers goes to when nobody uses it; the spill's are never
 * closed.
 */
static struct type_queue **spare_list(struct typed *y, uint32_t count)
{
	unsigned size = (unsigned)__builtin_ctz(bufpool_room(count) / bufpool_room(1));
	return size < SPARE_SIZES ? &y->spare[size] : NULL;
}

static struct type_queue *type_queue_new(struct typed *y, uint32_t count)
{
	struct type_queue *s = memory_new(1, sizeof *s + bufpool_room(count) * sizeof *s->slot);
	void *words;
	if (s && tern_alloc(y->e->t, bufpool_words_bytes(count), &words) == 0) {
		s->words = words;
		return s;
	}
	memory_free(s);
	return NULL;
}

static void type_queue_spare(struct typed *y, struct type_queue *s)
{
	struct type_queue **list = spare_list(y, s->pool.count);
	if (list) {
		s->spare = *list;
		*list = s;
		return;
	}
	tern_free(y->e->t, s->words); /* the spill could not be made: nobody has seen it */
	memory_free(s);
}

/* A type queue for `count` buffers without buffers: one that is not used any more, or a new one. */
static struct type_queue *type_queue_take(struct typed *y, uint32_t count)
{
	struct type_queue **list = spare_list(y, count);
	struct type_queue *s = list ? *list : NULL;
	if (!s)
		return type_queue_new(y, count);
	*list = s->spare;
	return s;
}

static int type_queue_streams(struct typed *y, struct type_queue *s)
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

/* Sets the type queue up for a type that does not exist yet for others. */
static void type_queue_begin(struct typed *y, struct type_queue *s, char *buffers)
{
	s->pool.generation = ++y->generations ? y->generations : ++y->generations; /* 0 is none */
	s->pool.next = 0;
	s->first = s->last = NULL;
	s->held = 0;
	s->closing = false;
	bufpool_see(&s->pool, s->words, buffers);
	for (uint32_t i = 0; i < s->pool.count; i++) {
		s->slot[i] = (struct buf_slot){ .queue = s };
		if (y->check)
			check_fill(bufpool_buffer(&s->pool, i), s->pool.bytes);
	}
	bufpool_fresh(&s->pool);
}

static void type_queue_list(struct typed *y, struct type_queue *s)
{
	unsigned i = y->queues++;
	for (; i && y->sorted[i - 1]->pool.buffer > s->pool.buffer; i--)
		y->sorted[i] = y->sorted[i - 1];
	y->sorted[i] = s;
}

static void type_queue_unlist(struct typed *y, const struct type_queue *s)
{
	unsigned i = 0;
	while (y->sorted[i] != s)
		i++;
	for (y->queues--; i < y->queues; i++)
		y->sorted[i] = y->sorted[i + 1];
}

static int type_queue_no_room(struct typed *y, size_t bytes, uint32_t count)
{
	return error_set(
		-ENOMEM,
		"%u buffers of %zu bytes were asked of rank %u's heap, which has no room for them: "
		"raise TERN_HEAP or TERN_MEMORY, or set fewer aside",
		count, bytes, y->e->t->rank);
}

int type_queue_make(struct typed *y, unsigned key, size_t bytes, uint32_t count, unsigned flags,
		    struct type_queue **out)
{
	size_t stride, all;
	bool possible = bufpool_sizes(bytes, count, &stride, &all);
	struct type_queue *s = possible ? type_queue_take(y, count) : NULL;
	if (!s)
		return type_queue_no_room(y, bytes, count);
	s->pool.count = count;
	s->pool.bytes = bytes;
	s->pool.stride = stride;
	s->type = s->key = key;
	s->flags = flags;
	s->more = NULL;
	s->most = bytes;
	void *buffers = NULL;
	if (tern_alloc(y->e->t, all ? all : BUFPOOL_ALIGN, &buffers) || type_queue_streams(y, s) ||
	    credit_open(y, s)) {
		tern_free(y->e->t, buffers);
		memory_free(s->stream);
		s->stream = NULL;
		type_queue_spare(y, s);
		return type_queue_no_room(y, bytes, count);
	}
	type_queue_begin(y, s, buffers);
	type_queue_list(y, s);
	y->queue[key] = s;
	*out = s;
	return 0;
}

void type_queue_unmake(struct typed *y, struct type_queue *s)
{
	credit_closed(y, s);
	y->queue[s->key] = NULL;
	type_queue_unlist(y, s);
	tern_free(y->e->t, s->pool.buffer);
	memory_free(s->stream);
	s->stream = NULL;
	type_queue_spare(y, s);
}

/* Senders find it through the words of the pool before it. */
int type_queue_more(struct typed *y, struct type_queue *s, size_t bytes, uint32_t count)
{
	struct type_queue *last = s, *m;
	unsigned key = KEY_MORE;
	while (key < KEYS && y->queue[key])
		key++;
	if (key == KEYS)
		return error_set(-ENOMEM,
				 "rank %u has called tern_buf_alloc() for types that there were "
				 "%d times: that is the most",
				 y->e->t->rank, TERN_BUF_MORE_MAX);
	int rc = type_queue_make(y, key, bytes, count, 0, &m);
	if (rc)
		return rc;
	while (last->more)
		last = last->more;
	m->type = s->type;
	last->more = m;
	s->most = bytes > s->most ? bytes : s->most;
	bufpool_more(&last->pool, key);
	return 0;
}

struct type_queue *type_queue_around(const struct typed *y, const void *p)
{
	unsigned low = 0, high = y->queues; /* those below `low` begin at or before p */
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if ((uintptr_t)y->sorted[middle]->pool.buffer <= (uintptr_t)p)
			low = middle + 1;
		else
			high = middle;
	}
	struct type_queue *s = low ? y->sorted[low - 1] : NULL;
	if (!s || (uintptr_t)p - (uintptr_t)s->pool.buffer >= s->pool.count * s->pool.stride)
		return NULL;
	return s;
}

void type_queues_free(struct typed *y)
{
	for (unsigned i = 0; i < y->queues; i++) {
		memory_free(y->sorted[i]->stream);
		memory_free(y->sorted[i]->far);
		memory_free(y->sorted[i]);
	}
	for (unsigned i = 0; i < SPARE_SIZES; i++)
		for (struct type_queue *s = y->spare[i], *next; s; s = next) {
			next = s->spare;
			memory_free(s);
		}
}

/* -- What has landed, and the way of a buffer back to its pool --------------------------------- */

void type_queue_settle(struct type_queue *s)
{
	for (uint32_t i = 0; i < s->pool.count; i++)
		if (s->slot[i].state != BUF_SLOT_NONE && s->slot[i].state != BUF_SLOT_LANDING)
			bufpool_set(&s->pool, i, BUFPOOL_FULL, s->slot[i].src);
}

void buf_slot_ready(struct typed *y, struct buf_slot *l)
{
	struct type_queue *s = y->queue[l->type];
	l->state = BUF_SLOT_READY;
	l->next = NULL;
	*(s->last ? &s->last->next : &s->first) = l;
	s->last = l;
}

struct buf_slot *buf_slot_pop(struct type_queue *s)
{
	struct buf_slot *l = s->first;
	s->first = l->next;
	if (!s->first)
		s->last = NULL;
	return l;
}

void buf_slot_drop(struct typed *y, struct buf_slot *l)
{
	struct type_queue *s = l->queue;
	uint32_t i = s ? buf_slot_index(l) : 0;
	l->state = BUF_SLOT_NONE;
	if (!s) { /* it stood for a number only */
		y->late[l->src]--;
		memory_free(l);
	} else if (s->closing) { /* its memory is not the type's any more, or not for long */
		bufpool_set(&s->pool, i, BUFPOOL_SHUT, 0);
	} else {
		if (y->check)
			check_fill(bufpool_buffer(&s->pool, i), s->pool.bytes);
		bufpool_give(&s->pool, i);
	}
}

/* -- The spill --------------------------------------------------------------------------------- */

/*
 * The spill: where messages go whose type has no buffer free, for all types together. It is three
 * pools like any other, of small cells to large ones, so that a sender takes a cell as it takes
 * a buffer: without a question, without waiting for an answer, and with the same care for its
 * death. A spilled message stands in the queue of its type; there is no other place where it would
 * have to be looked for.
 */

enum { SMALL_CELL = 512, CELLS_MOST = INT32_MAX };

const size_t spill_cell[SPILL_POOLS] = { SMALL_CELL, TERN_PAYLOAD_MAX, SPILL_MOST };

int spill_make(struct typed *y)
{
	size_t rest = y->spill_bytes;
	for (unsigned i = SPILL_POOLS; i-- > 0;) { /* half of what is left, of the smallest all */
		struct type_queue *s;
		size_t count = (i ? rest / 2 : rest) / spill_cell[i];
		uint32_t cells = count < CELLS_MOST ? (uint32_t)count : CELLS_MOST;
		rest -= count * spill_cell[i];
		int rc = cells && !y->queue[KEY_SPILL + i]
				 ? type_queue_make(y, KEY_SPILL + i, spill_cell[i], cells, 0, &s)
				 : 0;
		if (rc)
			return rc;
	}
	return 0;
}

size_t spill_most(const struct typed *y)
{
	size_t most = 0;
	for (unsigned i = 0; i < SPILL_POOLS; i++)
		most = y->queue[KEY_SPILL + i] ? spill_cell[i] : most;
	return most;
}
