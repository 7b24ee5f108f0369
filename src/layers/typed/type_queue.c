/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Type queues: a pool of buffers for each type, and what has landed in them, in order. Here they
 * are made and taken down; the spill is two more of them.
 */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "typed/typed.h"

/* A power of two, so that few sizes of words are ever made. */
static uint32_t room_for(uint32_t count)
{
	uint32_t room = 64;
	while (room < count)
		room *= 2;
	return room;
}

/* A type queue for `count` buffers without buffers: one that is not used any more, or a new one. */
static struct type_queue *type_queue_take(struct typed *y, uint32_t count)
{
	uint32_t room = room_for(count);
	struct type_queue **at = &y->spare, *s;
	while ((s = *at) && s->room != room)
		at = &s->spare;
	if (s) {
		*at = s->spare;
		return s;
	}
	void *words;
	s = memory_new(1, sizeof *s + room * sizeof *s->slot);
	if (!s || tern_alloc(y->e->t, bufpool_words_bytes(room), &words)) {
		memory_free(s);
		return NULL;
	}
	s->room = room;
	s->words = words;
	return s;
}

void type_queue_spare(struct typed *y, struct type_queue *s)
{
	memory_free(s->far);
	memory_free(s->stream);
	s->far = NULL;
	s->stream = NULL;
	s->spare = y->spare;
	y->spare = s;
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
	struct bufpool *k = &s->pool;
	k->generation = ++y->generations ? y->generations : ++y->generations; /* 0 is none */
	k->next = 0;
	s->tail = k->count;
	s->first = NULL;
	s->held = 0;
	s->closing = false;
	bufpool_see(k, s->words, buffers);
	for (uint32_t i = 0; i < k->count; i++) {
		s->slot[i] = (struct buf_slot){ .queue = s, .data = bufpool_buffer(k, i), .at = i };
		if (y->check)
			check_fill(s->slot[i].data, k->bytes);
		bufpool_put(k, i, i);
		atomic_store_explicit(&k->word[k->count + i], 0, memory_order_relaxed);
	}
	atomic_store_explicit(k->now + 1, 0, memory_order_relaxed);
	atomic_store_explicit(k->now, k->generation, memory_order_relaxed);
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
	y->queue[s->key] = NULL;
	type_queue_unlist(y, s);
	tern_free(y->e->t, s->pool.buffer);
	credit_closed(y, s);
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
	atomic_store_explicit(last->pool.now + 1, key, memory_order_relaxed);
	return 0;
}

struct buf_slot *buf_slot_at(const struct typed *y, const void *p)
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
	size_t i = s ? ((uintptr_t)p - (uintptr_t)s->pool.buffer) / s->pool.stride : 0;
	return s && i < s->pool.count && s->slot[i].data == p ? &s->slot[i] : NULL;
}

void type_queues_free(struct typed *y)
{
	while (y->queues)
		type_queue_spare(y, y->sorted[--y->queues]);
	for (struct type_queue *s; (s = y->closed);) {
		y->closed = s->spare;
		type_queue_spare(y, s);
	}
	for (struct type_queue *s; (s = y->spare);) {
		y->spare = s->spare;
		memory_free(s);
	}
}

/* -- What has landed, and the way of a buffer back to its pool --------------------------------- */

struct buf_slot *buf_slot_take(struct type_queue *of, unsigned type, uint32_t src,
			       enum buf_slot_state state)
{
	struct bufpool_claim c;
	if (!bufpool_take(&of->pool, src, &c))
		return NULL;
	struct buf_slot *l = &of->slot[c.index];
	l->src = src;
	l->type = (uint16_t)type;
	l->state = state;
	return l;
}

uint32_t buf_word_unused(const struct type_queue *s, uint32_t at, uint32_t but)
{
	for (uint32_t n = 0; n < s->pool.words && buf_word_used(s, at, but); n++)
		at = bufpool_step(&s->pool, at);
	return at;
}

void buf_slot_drop(struct typed *y, struct buf_slot *l)
{
	struct type_queue *s = l->queue;
	if (!s) { /* it stood for a number only */
		y->late[l->src]--;
		memory_free(l);
	} else if (s->closing) { /* its memory is not the type's any more, or not for long */
		l->state = BUF_SLOT_NONE;
	} else {
		if (y->check)
			check_fill(l->data, s->pool.bytes);
		buf_slot_free(s, l);
	}
}

/* -- Claims of others -------------------------------------------------------------------------- */

bool buf_slot_claimed(const struct buf_slot *l, uint32_t rank)
{
	const struct bufpool *k = &l->queue->pool;
	return buf_slot_open(l) &&
	       bufpool_read(k, l->at) == bufpool_word(k, buf_slot_index(l), rank);
}

static void pool_reopen(struct bufpool *k)
{
	for (uint32_t at = 0; at < k->words; at++) {
		uint64_t word = bufpool_read(k, at);
		if (bufpool_is(k, word, BUFPOOL_SHUT))
			bufpool_put(k, at, bufpool_index(word));
	}
	atomic_store_explicit(k->now, k->generation, memory_order_relaxed);
}

/* Whether no sender has a buffer, and none will. */
static bool pool_shut(struct type_queue *s)
{
	struct bufpool *k = &s->pool;
	struct bufpool_claim c;
	/* First, so that a sender who finds nothing free sees why, and asks again. */
	atomic_store_explicit(k->now, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* before the words; acquired in send_place() */
	for (uint32_t i = 0; i < k->count; i++)
		if (buf_slot_open(&s->slot[i]) &&
		    !bufpool_claim(k, s->slot[i].at, BUFPOOL_SHUT, &c))
			return false;
	return true;
}

bool type_queue_shut(struct type_queue *s)
{
	struct type_queue *m = s;
	while (m && pool_shut(m))
		m = m->more;
	if (!m)
		return true;
	for (; s != m->more; s = s->more)
		pool_reopen(&s->pool);
	return false;
}

void type_queue_reclaim(struct typed *y, struct type_queue *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->pool.count; i++)
		if (buf_slot_claimed(&s->slot[i], rank))
			buf_slot_drop(y, &s->slot[i]);
}

/* -- The spill --------------------------------------------------------------------------------- */

/*
 * The spill: where messages go whose type has no buffer free, for all types together. It is three
 * pools like any other, of small cells to large ones, so that a sender takes a cell as it takes
 * a buffer: without a question, without waiting for an answer, and with the same care for its
 * death. A spilled message stands in the queue of its type; there is no other place where it would
 * have to be looked for.
 */

enum { CELLS_MOST = BUFPOOL_MOST };

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
