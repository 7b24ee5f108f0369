/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying memory that another rank may look at, or write, at the same time.
 *
 * Programs put and get flags, so an aligned word (1, 2, 4 or 8 bytes) is one load and one store.
 * memcpy() promises no such thing: the C library copies 4 to 7 bytes with two overlapping stores,
 * and between the two another rank may see the new value and answer it, and then the second store
 * brings the old value back. Every path by which a put, a get or a transfer reaches memory copies
 * with word_copy().
 */
#ifndef TERN_MEM_WORD_H
#define TERN_MEM_WORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mem/threshold.h"

union word {
	uint8_t of1;
	uint16_t of2;
	uint32_t of4;
	uint64_t of8;
};

/* Whether `len` bytes at `p` are a word. */
static inline bool word_is(const void *p, size_t len)
{
	return len - 1 < WORD_MOST && !(len & (len - 1)) && !((uintptr_t)p & (len - 1));
}

static inline void word_load(union word *w, const void *from, size_t len)
{
	if (len == 8)
		w->of8 = __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED);
	else if (len == 4)
		w->of4 = __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED);
	else if (len == 2)
		w->of2 = __atomic_load_n((const uint16_t *)from, __ATOMIC_RELAXED);
	else
		w->of1 = __atomic_load_n((const uint8_t *)from, __ATOMIC_RELAXED);
}

static inline void word_store(void *to, const union word *w, size_t len)
{
	if (len == 8)
		__atomic_store_n((uint64_t *)to, w->of8, __ATOMIC_RELAXED);
	else if (len == 4)
		__atomic_store_n((uint32_t *)to, w->of4, __ATOMIC_RELAXED);
	else if (len == 2)
		__atomic_store_n((uint16_t *)to, w->of2, __ATOMIC_RELAXED);
	else
		__atomic_store_n((uint8_t *)to, w->of1, __ATOMIC_RELAXED);
}

/*
 * memcpy(), but a word at either side is one access there. Memory that is not aligned may be of
 * this rank alone.
 */
static inline void word_copy(void *to, const void *from, size_t len)
{
	union word w;
	bool at_source = word_is(from, len), at_target = word_is(to, len);
	if (!at_source && !at_target) {
		memcpy(to, from, len);
		return;
	}
	if (at_source)
		word_load(&w, from, len);
	else
		memcpy(&w, from, len);
	if (at_target)
		word_store(to, &w, len);
	else
		memcpy(to, &w, len);
}

/* The thread sanitizer takes a volatile access for a race with an atomic one. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WORD_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WORD_SANITIZED 1
#endif

/*
 * 8 bytes at any address, with one load and one store where the machine has those for addresses
 * that are not aligned.
 */
static inline void word8_copy(void *to, const void *from)
{
#if defined(WORD_SANITIZED)
	word_copy(to, from, sizeof(uint64_t));
#else
	struct anywhere {
		uint64_t value;
	} __attribute__((packed, may_alias));
	((volatile struct anywhere *)to)->value = ((const volatile struct anywhere *)from)->value;
#endif
}

/*
 * Puts and gets of memory that this process can touch are ordered: what this rank did before a put
 * is seen before the put, and a get comes before whatever this rank does next. x86 orders stores
 * and loads so by itself.
 */
static inline void word_before_put(void)
{
#if !defined(__x86_64__)
	atomic_thread_fence(memory_order_release);
#endif
}

static inline void word_after_get(void)
{
#if !defined(__x86_64__)
	atomic_thread_fence(memory_order_acquire);
#endif
}

/* Bytes to send: of a word a copy in `w`, which one load has taken. */
static inline const void *word_value(union word *w, const void *from, size_t len)
{
	if (!word_is(from, len))
		return from;
	word_load(w, from, len);
	return w;
}

#endif
