/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of a few hundred bytes. A C library's memcpy() asks first what it has been given: how
 * long, overlapping or not, across which pages. With 512 bytes that takes as long as the checks of
 * a put, and a put knows the answers. Sanitizers watch memcpy(), so with them it stays.
 */
#ifndef TERN_MEM_WIDE_H
#define TERN_MEM_WIDE_H

#include <stdbool.h>
#include <string.h>

#include <tern/tern.h>

#include "mem/threshold.h"

/* FEW_LEAST bytes to WIDE_LEAST: twice as many, or four times, of which some are the same. */
static inline void few_copy(char *to, const char *from, size_t len)
{
	typedef char few __attribute__((vector_size(FEW_LEAST), aligned(1), may_alias));
	few first = *(const few *)from, last = *(const few *)(from + len - FEW_LEAST);
	if (len > 2 * FEW_LEAST) {
		few second = *(const few *)(from + FEW_LEAST);
		few third = *(const few *)(from + len - 2 * FEW_LEAST);
		*(few *)(to + FEW_LEAST) = second;
		*(few *)(to + len - 2 * FEW_LEAST) = third;
	}
	*(few *)to = first;
	*(few *)(to + len - FEW_LEAST) = last;
}

static inline bool few_fits(size_t len)
{
	return len - FEW_LEAST <= WIDE_LEAST - FEW_LEAST;
}

#if defined(__x86_64__) && !defined(TERN_WATCHED_) && !defined(__SANITIZE_ADDRESS__)

/* How much more than WIDE_LEAST bytes they may be: 0 if the processor has no wide registers. */
extern __attribute__((visibility("hidden"))) size_t wide_more;

/* More than WIDE_MOST bytes: memcpy(), or two lines at a time up to WIDE_LONG. */
__attribute__((visibility("hidden"))) void wide_long(char *to, const char *from, size_t len);

static inline bool wide_fits(size_t len)
{
	return len - WIDE_LEAST < wide_more;
}

static inline void wide_line(char *to, const char *from)
{
	struct line {
		char bytes[TERN_LINE];
	};
	__asm__("vmovdqu (%2), %%ymm0\n\t"
		"vmovdqu 32(%2), %%ymm1\n\t"
		"vmovdqu %%ymm0, (%1)\n\t"
		"vmovdqu %%ymm1, 32(%1)"
		: "=m"(*(struct line *)(void *)to)
		: "r"(to), "r"(from), "m"(*(const struct line *)(const void *)from)
		: "xmm0", "xmm1");
}

/* The last 64 bytes may have been copied in part before. */
static inline void wide_copy(char *to, const char *from, size_t len)
{
	char *last = to + len - TERN_LINE;
	const char *tail = from + len - TERN_LINE;
	for (; to < last; to += TERN_LINE, from += TERN_LINE)
		wide_line(to, from);
	wide_line(last, tail);
	__asm__ volatile("vzeroupper" : : : "xmm0", "xmm1");
}

#else

static inline bool wide_fits(size_t len)
{
	(void)len;
	return false;
}

static inline void wide_copy(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
}

static inline void wide_long(char *to, const char *from, size_t len)
{
	memcpy(to, from, len);
}

#endif

#endif
