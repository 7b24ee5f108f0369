/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool: equal buffers in a rank's heap which other ranks fill, and the words that say whose each
 * of them is. A sender takes a free buffer itself, with one compare-and-swap, and nobody else's
 * processor takes part.
 *
 * A buffer's state is one word: the generation of the pool, what the buffer is, and for whom.
 *
 *     FREE -> CLAIMED by a sender -> FREE
 *
 * CLAIMED is the sender's. The owner knows which messages have come; it writes FULL for those only
 * where it must tell them from claims (type_queue_settle), and HELD where it takes a buffer itself.
 * A claim says who has it, in the same instruction that takes it, so a sender may die anywhere: the
 * owner finds what to take back. The generation is in the word so that a sender which still knows
 * an earlier one takes nothing. For the same reason the words are never given back to the heap,
 * though the buffers are.
 *
 * A sender tries the buffer behind the one it took last. Where messages are freed in the order in
 * which they came, that one is free, and sender and owner share only the line of eight words, once
 * for eight messages. Otherwise a bit for each buffer says where to look. It is set by whoever
 * frees the buffer, and cleared by whoever finds it wrong; so a bit that is clear never hides a
 * free buffer for longer than that takes, and one that is set wrongly costs a look.
 */
#ifndef TERN_TYPED_BUFPOOL_H
#define TERN_TYPED_BUFPOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bufpool_kind { BUFPOOL_FREE = 1, BUFPOOL_CLAIMED, BUFPOOL_FULL, BUFPOOL_HELD, BUFPOOL_SHUT };

enum { BUFPOOL_ALIGN = 64, WORDS_OF_LINE = 8 };

/* How one rank sees a pool. Private: nothing that others can write is followed or trusted. */
struct bufpool {
	/* In the owner's heap: its generation, 0 when it is not used; then the key of the next. */
	_Atomic uint32_t *now;
	_Atomic uint64_t *free;  /* a bit a buffer */
	_Atomic uint64_t *state; /* a word a buffer */
	char *buffer;
	uint32_t generation, count;
	size_t bytes, stride;
	uint32_t next; /* where to look first */
};

/* The word of a buffer that is `kind`, for `rank`. */
static inline uint64_t bufpool_word(const struct bufpool *k, enum bufpool_kind kind, uint32_t rank)
{
	return (uint64_t)k->generation << 32 | (uint64_t)kind << 16 | rank;
}

static inline char *bufpool_buffer(const struct bufpool *k, uint32_t i)
{
	return k->buffer + (size_t)i * k->stride;
}

static inline bool bufpool_is(const struct bufpool *k, uint32_t i, enum bufpool_kind kind,
			      uint32_t rank)
{
	return atomic_load_explicit(&k->state[i], memory_order_relaxed) ==
	       bufpool_word(k, kind, rank);
}

/* Sizes. `count` is rounded up, so that words can be used again by another type. */
uint32_t bufpool_room(uint32_t count);
size_t bufpool_words_bytes(uint32_t count);
/* False if that is more than addresses reach. */
bool bufpool_sizes(size_t bytes, uint32_t count, size_t *stride, size_t *all);

/*
 * Makes `k` see the words at `words` and the buffers at `buffer`; its sizes and generation are set.
 */
void bufpool_see(struct bufpool *k, void *words, char *buffer);
/* The owner, while nobody can know of the pool: makes every buffer free. */
void bufpool_fresh(struct bufpool *k);

/* Takes the next buffer, if that is free, in place of `as`. */
static inline bool bufpool_take_next(struct bufpool *k, uint64_t as, uint32_t *index)
{
	uint64_t from = bufpool_word(k, BUFPOOL_FREE, 0);
	uint32_t i = k->next;
	/* typed.R1, acquire; released in bufpool_give(). */
	if (atomic_load_explicit(&k->state[i], memory_order_relaxed) != from ||
	    !atomic_compare_exchange_strong_explicit(&k->state[i], &from, as, memory_order_acquire,
						     memory_order_relaxed))
		return false;
	k->next = i + 1 < k->count ? i + 1 : 0;
	*index = i;
	return true;
}

/* Takes a free buffer, as `kind` for `rank`; false if there is none. */
bool bufpool_take(struct bufpool *k, enum bufpool_kind kind, uint32_t rank, uint32_t *index);
void bufpool_give(struct bufpool *k, uint32_t i);
/* The owner: makes buffer `i`, which is not free, something else. */
void bufpool_set(struct bufpool *k, uint32_t i, enum bufpool_kind kind, uint32_t rank);
/* The owner: takes back what `rank`, which has left, had claimed. */
void bufpool_reclaim(struct bufpool *k, uint32_t rank);
/* The key of the pool that the type has besides; 0 if there is none. */
static inline uint32_t bufpool_next(const struct bufpool *k)
{
	return atomic_load_explicit(k->now + 1, memory_order_relaxed);
}
void bufpool_more(struct bufpool *k, uint32_t key); /* the owner: there is one */
/* The owner: takes a shutting back. */
void bufpool_reopen(struct bufpool *k);
/* The owner: ends the generation. False, and nothing has changed, while a sender has a buffer. */
bool bufpool_shut(struct bufpool *k);

#endif
