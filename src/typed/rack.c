/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The atomics, by name:
 *
 * R1, in rack_give(): the owner's last reads of a message, or a sender's abandoned writes, come before the
 * buffer is free. Pairs with A1 in rack_take(): whoever takes it writes after that.
 *
 * What a sender writes into a buffer reaches the owner with the message that announces it, whose header
 * is the release and the acquire (R1 and A1 of the ring). The same pair makes the owner see the claim, and
 * orders the claimer's clearing of the bit before the owner's setting it.
 *
 * Bits, and the turn that `now` shows, are advice: what decides is the turn in a buffer's own word. They are relaxed.
 */
#include "typed/rack.h"

#include <string.h>

enum { BITS = 64, WORDS_OF_LINE = 8, ROOM_LEAST = 64 };

uint32_t rack_room(uint32_t count)
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
	size_t words = bit_words(rack_room(count));
	return (words + WORDS_OF_LINE - 1) / WORDS_OF_LINE * RACK_ALIGN;
}

size_t rack_words_bytes(uint32_t count)
{
	return RACK_ALIGN + bits_bytes(count) + rack_room(count) * sizeof(uint64_t);
}

bool rack_sizes(size_t bytes, uint32_t count, size_t *stride, size_t *all)
{
	if (bytes > SIZE_MAX / 2)
		return false;
	*stride = bytes ? (bytes + RACK_ALIGN - 1) / RACK_ALIGN * RACK_ALIGN : RACK_ALIGN;
	return !__builtin_mul_overflow(*stride, (size_t)count, all);
}

void rack_see(struct rack *k, void *words, char *buffer)
{
	char *at = words;
	k->now = words;
	k->free = (_Atomic uint64_t *)(void *)(at + RACK_ALIGN);
	k->state = (_Atomic uint64_t *)(void *)(at + RACK_ALIGN + bits_bytes(k->count));
	k->buffer = buffer;
}

void rack_fresh(struct rack *k)
{
	for (uint32_t i = 0; i < k->count; i++)
		rack_give(k, i);
	atomic_store_explicit(k->now + 1, 0, memory_order_relaxed);
	atomic_store_explicit(k->now, k->turn, memory_order_relaxed);
}

uint32_t rack_free(const struct rack *k)
{
	uint32_t n = 0;
	for (uint32_t w = 0; w < bit_words(k->count); w++)
		n += (uint32_t)__builtin_popcountll(atomic_load_explicit(&k->free[w], memory_order_relaxed));
	return n;
}

void rack_lend(struct rack *k, uint32_t more)
{
	uint32_t before = atomic_load_explicit(k->now + 1, memory_order_relaxed);
	atomic_store_explicit(k->now + 1, before + more, memory_order_relaxed);
}

bool rack_lends(const struct rack *k)
{
	return atomic_load_explicit(k->now + 1, memory_order_relaxed) != 0;
}

static bool state_change(struct rack *k, uint32_t i, uint64_t from, uint64_t to)
{
	/* A1, pairs with R1 in rack_give(). */
	return atomic_compare_exchange_strong_explicit(&k->state[i], &from, to, memory_order_acquire,
						       memory_order_relaxed);
}

/* A buffer whose bit is in word `w`. The lowest first: it was used last and may still be in a cache. */
static bool take_of_word(struct rack *k, uint32_t w, uint64_t as, uint32_t *index)
{
	uint64_t bits = atomic_load_explicit(&k->free[w], memory_order_relaxed);
	for (; bits; bits &= bits - 1) {
		uint32_t i = w * BITS + (uint32_t)__builtin_ctzll(bits);
		if (i >= k->count || !state_change(k, i, rack_word(k, RACK_FREE, 0), as))
			continue; /* another was faster, and is about to clear the bit */
		atomic_fetch_and_explicit(&k->free[w], ~(bits & -bits), memory_order_relaxed);
		*index = i;
		return true;
	}
	return false;
}

bool rack_take(struct rack *k, enum rack_kind kind, uint32_t rank, uint32_t *index)
{
	uint32_t words = bit_words(k->count);
	for (uint32_t n = 0; n < words; n++) {
		uint32_t w = (k->first + n) % words;
		if (!take_of_word(k, w, rack_word(k, kind, rank), index))
			continue;
		k->first = w;
		return true;
	}
	return false;
}

static void bit_set(struct rack *k, uint32_t i)
{
	atomic_fetch_or_explicit(&k->free[i / BITS], UINT64_C(1) << i % BITS, memory_order_relaxed);
}

void rack_give(struct rack *k, uint32_t i)
{
	/* R1, pairs with A1 in state_change(). */
	atomic_store_explicit(&k->state[i], rack_word(k, RACK_FREE, 0), memory_order_release);
	bit_set(k, i);
}

void rack_set(struct rack *k, uint32_t i, enum rack_kind kind, uint32_t rank)
{
	atomic_store_explicit(&k->state[i], rack_word(k, kind, rank), memory_order_relaxed);
}

void rack_reclaim(struct rack *k, uint32_t rank)
{
	for (uint32_t i = 0; i < k->count; i++) {
		if (rack_is(k, i, RACK_CLAIMED, rank))
			rack_give(k, i);
		else if (rack_is(k, i, RACK_FREE, 0))
			bit_set(k, i); /* it may have died between freeing a buffer and saying so */
	}
}

static bool claimed(uint64_t state)
{
	return (state >> 16 & 0xffff) == RACK_CLAIMED;
}

static void unshut(struct rack *k, uint32_t below)
{
	for (uint32_t i = 0; i < below; i++)
		if (rack_is(k, i, RACK_SHUT, 0))
			rack_give(k, i);
	atomic_store_explicit(k->now, k->turn, memory_order_relaxed);
}

bool rack_shut(struct rack *k)
{
	/* First, so that a sender who finds nothing free sees why, and asks again. */
	atomic_store_explicit(k->now, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < k->count; i++) {
		if (state_change(k, i, rack_word(k, RACK_FREE, 0), rack_word(k, RACK_SHUT, 0)) ||
		    !claimed(atomic_load_explicit(&k->state[i], memory_order_relaxed)))
			continue;
		unshut(k, i);
		return false;
	}
	for (uint32_t w = 0; w < bit_words(k->count); w++)
		atomic_store_explicit(&k->free[w], 0, memory_order_relaxed);
	return true;
}
