/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool: equal buffers in a rank's heap which other ranks fill, and a queue of those that are
 * free. A sender takes a buffer out of the queue itself, with one compare-and-swap, and nobody
 * else's processor takes part. The owner alone puts buffers in.
 *
 * The queue is a circle of words, two for each buffer. A word names a buffer, and says that it is
 * FREE, or which rank has claimed it:
 *
 *     FREE -> the claimer's rank -> another buffer, FREE
 *
 * A claim names its rank in the same instruction that takes the buffer, so a sender may die
 * anywhere: the owner, which knows what has been announced (struct buf_slot), finds what to take
 * back, and does not use a word again while it is somebody's claim. The generation of the pool is
 * in each word, so that a sender which still knows an earlier one takes nothing. For the same
 * reason the words are never given back to the heap, though the buffers are.
 *
 * Each sender tries the word behind the one it took last, and the owner puts buffers in at the
 * other end. So in a stream the two work in different lines, and each line of eight words travels
 * once for eight messages, however close behind the sender the receiver is. With half as many words
 * the owner would write into the line from which the sender is taking. Where senders meet, one goes
 * on to the next line.
 *
 * typed.R1: bufpool_put() releases, a claim acquires. The owner's last reads of a message, or a
 * sender's abandoned writes, come before the buffer is free; whoever takes it writes after that.
 * What a sender writes into a buffer, and its claim, reach the owner with the message that
 * announces it (ring.R1).
 */
#ifndef TERN_TYPED_BUFPOOL_H
#define TERN_TYPED_BUFPOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BUFPOOL_ALIGN = 64,
	WORDS_OF_LINE = 8,
	BUFPOOL_MOST = 1 << 16, /* buffers: their numbers have 16 bits, and so have ranks */
	BUFPOOL_FREE = 0xffff,  /* in the place of a rank */
	BUFPOOL_SHUT = 0xfffe,  /* likewise: the type is being closed */
};

/* How one rank sees a pool. Private: nothing that others can write is followed or trusted. */
struct bufpool {
	_Atomic uint64_t *word;
	char *buffer;
	size_t bytes, stride;
	uint32_t generation, count;
	uint32_t words; /* of the circle */
	uint32_t next;  /* which to try first */
	/* Hints in the owner's heap: the generation, 0 when closed; the key of the next pool. */
	_Atomic uint32_t *now;
};

static inline uint64_t bufpool_word(const struct bufpool *k, uint32_t index, uint32_t rank)
{
	return (uint64_t)k->generation << 32 | (uint64_t)index << 16 | rank;
}

static inline uint64_t bufpool_read(const struct bufpool *k, uint32_t at)
{
	return atomic_load_explicit(&k->word[at], memory_order_relaxed);
}

/* The buffer that a word names; others may have written nonsense. */
static inline uint32_t bufpool_index(uint64_t word)
{
	return word >> 16 & 0xffff;
}

/* Whether the word is of this generation, and of `rank`, or free. */
static inline bool bufpool_is(const struct bufpool *k, uint64_t word, uint32_t rank)
{
	return (word & ~((uint64_t)0xffff << 16)) == bufpool_word(k, 0, rank);
}

static inline char *bufpool_buffer(const struct bufpool *k, uint32_t i)
{
	return k->buffer + (size_t)i * k->stride;
}

/* Bytes of the words for so many buffers. */
static inline size_t bufpool_words_bytes(uint32_t count)
{
	return BUFPOOL_ALIGN + (size_t)count * 2 * sizeof(uint64_t);
}

/* The stride, and the bytes of all buffers; false if that is more than addresses reach. */
static inline bool bufpool_sizes(size_t bytes, uint32_t count, size_t *stride, size_t *all)
{
	size_t lines = bytes ? (bytes - 1) / BUFPOOL_ALIGN + 1 : 1;
	*stride = lines * BUFPOOL_ALIGN;
	return bytes <= SIZE_MAX / 2 && count <= BUFPOOL_MOST &&
	       !__builtin_mul_overflow(*stride, (size_t)count, all);
}

/* Makes `k`, whose sizes and generation are set, see the words and the buffers. */
static inline void bufpool_see(struct bufpool *k, void *words, char *buffer)
{
	k->now = words;
	k->word = (_Atomic uint64_t *)(void *)((char *)words + BUFPOOL_ALIGN);
	k->words = 2 * k->count;
	k->buffer = buffer;
}

static inline bool bufpool_open(const struct bufpool *k)
{
	return atomic_load_explicit(k->now, memory_order_relaxed) == k->generation;
}

/* Makes a free buffer `rank`'s, or takes it out for closing. */
static inline bool bufpool_claim(struct bufpool *k, uint32_t at, uint32_t rank, uint32_t *index)
{
	uint64_t word = bufpool_read(k, at);
	*index = bufpool_index(word);
	/* typed.R1, acquire. A look first: a failed swap would take the line from its owner. */
	return bufpool_is(k, word, BUFPOOL_FREE) && *index < k->count &&
	       atomic_compare_exchange_strong_explicit(&k->word[at], &word,
						       bufpool_word(k, *index, rank),
						       memory_order_acquire, memory_order_relaxed);
}

/* The owner puts a free buffer into the word. */
static inline void bufpool_put(struct bufpool *k, uint32_t at, uint32_t index)
{
	/* typed.R1, release. */
	atomic_store_explicit(&k->word[at], bufpool_word(k, index, BUFPOOL_FREE),
			      memory_order_release);
}

static inline uint32_t bufpool_step(const struct bufpool *k, uint32_t at)
{
	return at + 1 < k->words ? at + 1 : 0;
}

/* Takes the buffer in the next word for `rank`, if that is free. */
static inline bool bufpool_take_next(struct bufpool *k, uint32_t rank, uint32_t *index)
{
	if (!bufpool_claim(k, k->next, rank, index))
		return false;
	k->next = bufpool_step(k, k->next);
	return true;
}

/* Takes any free buffer for `rank`; false if there is none. */
static inline bool bufpool_take(struct bufpool *k, uint32_t rank, uint32_t *index)
{
	if (!k->count)
		return false;
	if (bufpool_take_next(k, rank, index))
		return true;
	uint32_t at = (k->next | (WORDS_OF_LINE - 1)) + 1;
	for (uint32_t n = 0; n < k->words; n++, at++) {
		at = at < k->words ? at : 0;
		if (!bufpool_claim(k, at, rank, index))
			continue;
		k->next = bufpool_step(k, at);
		return true;
	}
	return false;
}

#endif
