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
		at = &s->next;
	if (s) {
		*at = s->next;
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

static void type_queue_spare(struct typed *y, struct type_queue *s)
{
	s->next = y->spare;
	y->spare = s;
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
	bufpool_see(k, s->words, buffers);
	for (uint32_t i = 0; i < k->count; i++) {
		s->slot[i] = (struct buf_slot){ .queue = s, .data = bufpool_buffer(k, i), .at = i };
		if (y->check)
			check_fill(s->slot[i].data, k->bytes);
		bufpool_put(k, i, i);
		atomic_store_explicit(&k->word[k->count + i], 0, memory_order_relaxed);
	}
	atomic_store_explicit(k->now, k->generation, memory_order_relaxed);
}

/* Senders find the next pool through the words of the one before. */
static void type_queue_link(struct type_queue *s, struct type_queue *more)
{
	s->more = more;
	atomic_store_explicit(s->pool.now + 1, more ? more->key : 0, memory_order_relaxed);
}

/* A key for one more pool of a type; KEYS: there is none. */
static unsigned key_more(const struct typed *y)
{
	unsigned key = KEY_MORE;
	while (key < KEYS && y->queue[key])
		key++;
	return key;
}

int type_queue_make(struct typed *y, unsigned type, size_t bytes, uint32_t count, unsigned flags)
{
	struct type_queue *first = y->queue[type];
	unsigned key = first ? key_more(y) : type;
	size_t stride, all;
	void *buffers;
	if (key == KEYS)
		return error_set(-ENOMEM,
				 "rank %u has called tern_buf_alloc() for types that there were "
				 "%d times: that is the most",
				 y->e->t->rank, TERN_BUF_MORE_MAX);
	bool possible = bufpool_sizes(bytes, count, &stride, &all);
	struct type_queue *s = possible ? type_queue_take(y, count) : NULL;
	if (!s || tern_alloc(y->e->t, all ? all : BUFPOOL_ALIGN, &buffers)) {
		if (s)
			type_queue_spare(y, s);
		return error_set(-ENOMEM,
				 "%u buffers of %zu bytes were asked of rank %u's heap, which has "
				 "no room for them: raise TERN_HEAP or TERN_MEMORY, or set fewer "
				 "aside",
				 count, bytes, y->e->t->rank);
	}
	s->pool.count = count;
	s->pool.bytes = s->most = bytes;
	s->pool.stride = stride;
	s->type = type;
	s->key = key;
	s->flags = flags;
	type_queue_begin(y, s, buffers);
	type_queue_link(s, flags & TERN_BUF_SPILL ? y->spill : NULL);
	s->next = y->open;
	y->open = y->queue[key] = s;
	if (first) {
		first->most = bytes > first->most ? bytes : first->most;
		while (type_queue_next(first))
			first = first->more;
		type_queue_link(first, s);
	}
	return 0;
}

void type_queue_unmake(struct typed *y, struct type_queue *s)
{
	struct type_queue **at = &y->open;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	y->queue[s->key] = NULL;
	tern_free(y->e->t, s->pool.buffer);
	type_queue_spare(y, s);
}

struct buf_slot *buf_slot_at(const struct typed *y, const void *p)
{
	for (struct type_queue *s = y->open; s; s = s->next) {
		size_t i = ((uintptr_t)p - (uintptr_t)s->pool.buffer) / s->pool.stride;
		if (i < s->pool.count)
			return s->slot[i].data == p ? &s->slot[i] : NULL;
	}
	return NULL;
}

void type_queues_free(struct typed *y)
{
	struct type_queue *lists[] = { y->open, y->spare };
	for (int i = 0; i < 2; i++)
		for (struct type_queue *s = lists[i], *next; s; s = next) {
			next = s->next;
			memory_free(s);
		}
}

/* -- What has landed, and the way of a buffer back to its pool --------------------------------- */

struct buf_slot *buf_slot_take(struct type_queue *s, size_t len, uint32_t src)
{
	uint32_t i;
	bool taken = len <= s->pool.bytes && bufpool_take(&s->pool, src, &i);
	return taken ? &s->slot[i] : NULL;
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
	if (y->check)
		check_fill(l->data, s->pool.bytes);
	buf_slot_free(s, l);
}

/* -- Claims of others -------------------------------------------------------------------------- */

bool buf_slot_claimed(const struct buf_slot *l, uint32_t rank)
{
	const struct bufpool *k = &l->queue->pool;
	return l->state == BUF_SLOT_NONE &&
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
	uint32_t any;
	/* First, so that a sender who finds nothing free sees why, and asks again. */
	atomic_store_explicit(k->now, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* before the words; acquired in send_place() */
	for (uint32_t i = 0; i < k->count; i++)
		if (s->slot[i].state == BUF_SLOT_NONE &&
		    !bufpool_claim(k, s->slot[i].at, BUFPOOL_SHUT, &any))
			return false;
	return true;
}

bool type_queue_shut(struct type_queue *s)
{
	struct type_queue *m = s;
	while (m && pool_shut(m))
		m = type_queue_next(m);
	for (struct type_queue *r = s; m && r != m->more; r = r->more)
		pool_reopen(&r->pool);
	return !m;
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

int spill_make(struct typed *y, size_t *most)
{
	static const size_t cell[SPILL_POOLS] = { SMALL_CELL, TERN_PAYLOAD_MAX, LONG_BYTES };
	size_t rest = y->spill_bytes;
	for (unsigned i = SPILL_POOLS; i-- > 0;) { /* half of what is left, of the smallest all */
		struct type_queue **made = &y->queue[KEY_SPILL + i];
		size_t count = (i ? rest / 2 : rest) / cell[i];
		uint32_t cells = count < BUFPOOL_MOST ? (uint32_t)count : BUFPOOL_MOST;
		rest -= count * cell[i];
		int rc = cells && !*made
				 ? type_queue_make(y, KEY_SPILL + i, cell[i], cells, TERN_BUF_SPILL)
				 : 0;
		if (rc)
			return rc;
		y->spill = *made ? *made : y->spill;
		*most = *most || !*made ? *most : cell[i];
	}
	return 0;
}
