/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The atomics, by name:
 *
 * typed.R1, in bufpool_give(): the owner's last reads of a message, or a sender's abandoned writes,
 * come before the buffer is free. Acquired in bufpool_take(): whoever takes it writes after that.
 *
 * What a sender writes into a buffer reaches the owner with the message that announces it, whose
 * header is the release and the acquire (ring.R1). The same pair makes the owner see
 * the claim, and orders the claimer's clearing of the bit before the owner's setting it.
 *
 * typed.R2: a bit is set after the word of its buffer says free; who clears a bit looks at the word
 * again.
 *
 * Bits, and the generation that `now` shows, are advice: what decides is the one in a buffer's own
 * word.
 */
#include "typed/bufpool.h"

#include <string.h>

enum { BITS = 64, ROOM_LEAST = 64 };

uint32_t bufpool_room(uint32_t count)
{
	uint32_t room = ROOM_LEAST;
	while (room < count)
		room *= 2;
	return room;
}

static uint32_t bit_words(uint32_t count)
{
	return (count + BITS - 1) / BITS;
}

/* The words of bits, in whole lines. */
static size_t bits_bytes(uint32_t count)
{
	size_t words = bit_words(bufpool_room(count));
	return (words + WORDS_OF_LINE - 1) / WORDS_OF_LINE * BUFPOOL_ALIGN;
}

size_t bufpool_words_bytes(uint32_t count)
{
	return BUFPOOL_ALIGN + bits_bytes(count) + bufpool_room(count) * sizeof(uint64_t);
}

bool bufpool_sizes(size_t bytes, uint32_t count, size_t *stride, size_t *all)
{
	if (bytes > SIZE_MAX / 2)
		return false;
	*stride =
		bytes ? (bytes + BUFPOOL_ALIGN - 1) / BUFPOOL_ALIGN * BUFPOOL_ALIGN : BUFPOOL_ALIGN;
	return !__builtin_mul_overflow(*stride, (size_t)count, all);
}

void bufpool_see(struct bufpool *k, void *words, char *buffer)
{
	char *at = words;
	k->now = words;
	k->free = (_Atomic uint64_t *)(void *)(at + BUFPOOL_ALIGN);
	k->state = (_Atomic uint64_t *)(void *)(at + BUFPOOL_ALIGN + bits_bytes(k->count));
	k->buffer = buffer;
}

void bufpool_fresh(struct bufpool *k)
{
	for (uint32_t i = 0; i < k->count; i++)
		bufpool_give(k, i);
	bufpool_more(k, 0);
	atomic_store_explicit(k->now, k->generation, memory_order_relaxed);
}

void bufpool_more(struct bufpool *k, uint32_t key)
{
	atomic_store_explicit(k->now + 1, key, memory_order_relaxed);
}

static bool state_change(struct bufpool *k, uint32_t i, uint64_t from, uint64_t to)
{
	/* typed.R1, acquire; released in bufpool_give(). */
	return atomic_compare_exchange_strong_explicit(&k->state[i], &from, to,
						       memory_order_acquire, memory_order_relaxed);
}

static void bit_set(struct bufpool *k, uint32_t i)
{
	/* typed.R2, release: see bit_clear_stale(). */
	atomic_fetch_or_explicit(&k->free[i / BITS], UINT64_C(1) << i % BITS, memory_order_release);
}

/*
 * The bit of a buffer that was not free when it was looked at. If it is free by now, whoever freed
 * it may have set the bit before it was cleared here: typed.R2, acquire; released in bit_set().
 */
static void bit_clear_stale(struct bufpool *k, uint32_t i)
{
	uint64_t bit = UINT64_C(1) << i % BITS;
	uint64_t word = atomic_load_explicit(&k->state[i], memory_order_relaxed);
	if (word >> 32 != k->generation)
		return; /* another use of the pool */
	atomic_fetch_and_explicit(&k->free[i / BITS], ~bit, memory_order_acquire);
	word = atomic_load_explicit(&k->state[i], memory_order_relaxed);
	if ((word >> 16 & 0xffff) == BUFPOOL_FREE)
		bit_set(k, i);
}

/* A buffer whose bit is in word `w`. */
static bool take_of_word(struct bufpool *k, uint32_t w, uint64_t as, uint32_t *index)
{
	uint64_t bits = atomic_load_explicit(&k->free[w], memory_order_relaxed);
	for (; bits; bits &= bits - 1) {
		uint32_t i = w * BITS + (uint32_t)__builtin_ctzll(bits);
		if (i >= k->count)
			return false;
		if (state_change(k, i, bufpool_word(k, BUFPOOL_FREE, 0), as)) {
			atomic_fetch_and_explicit(&k->free[w], ~(bits & -bits),
						  memory_order_relaxed);
			*index = i;
			return true;
		}
		bit_clear_stale(k, i);
	}
	return false;
}

static bool take_search(struct bufpool *k, uint64_t as, uint32_t *index)
{
	uint32_t words = bit_words(k->count), first = k->next / BITS;
	for (uint32_t n = 0; n < words; n++)
		if (take_of_word(k, (first + n) % words, as, index))
			return true;
	return false;
}

bool bufpool_take(struct bufpool *k, enum bufpool_kind kind, uint32_t rank, uint32_t *index)
{
	uint64_t as = bufpool_word(k, kind, rank);
	if (bufpool_take_next(k, as, index))
		return true;
	if (!take_search(k, as, index))
		return false;
	k->next = *index + 1 < k->count ? *index + 1 : 0;
	return true;
}

void bufpool_give(struct bufpool *k, uint32_t i)
{
	/* typed.R1, release; acquired in state_change(). */
	atomic_store_explicit(&k->state[i], bufpool_word(k, BUFPOOL_FREE, 0), memory_order_release);
	bit_set(k, i);
}

void bufpool_set(struct bufpool *k, uint32_t i, enum bufpool_kind kind, uint32_t rank)
{
	atomic_store_explicit(&k->state[i], bufpool_word(k, kind, rank), memory_order_relaxed);
}

void bufpool_reclaim(struct bufpool *k, uint32_t rank)
{
	for (uint32_t i = 0; i < k->count; i++) {
		if (bufpool_is(k, i, BUFPOOL_CLAIMED, rank))
			bufpool_give(k, i);
		else if (bufpool_is(k, i, BUFPOOL_FREE, 0))
			bit_set(k, i); /* it may have died between freeing a buffer and saying so */
	}
}

static bool claimed(uint64_t state)
{
	return (state >> 16 & 0xffff) == BUFPOOL_CLAIMED;
}

static void unshut(struct bufpool *k, uint32_t below)
{
	for (uint32_t i = 0; i < below; i++)
		if (bufpool_is(k, i, BUFPOOL_SHUT, 0))
			bufpool_give(k, i);
	atomic_store_explicit(k->now, k->generation, memory_order_relaxed);
}

void bufpool_reopen(struct bufpool *k)
{
	unshut(k, k->count);
}

bool bufpool_shut(struct bufpool *k)
{
	/* First, so that a sender who finds nothing free sees why, and asks again. */
	atomic_store_explicit(k->now, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < k->count; i++) {
		if (state_change(k, i, bufpool_word(k, BUFPOOL_FREE, 0),
				 bufpool_word(k, BUFPOOL_SHUT, 0)) ||
		    !claimed(atomic_load_explicit(&k->state[i], memory_order_relaxed)))
			continue;
		unshut(k, i);
		return false;
	}
	for (uint32_t w = 0; w < bit_words(k->count); w++)
		atomic_store_explicit(&k->free[w], 0, memory_order_relaxed);
	return true;
}
