/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds out whether the processor has the registers that mem/wide.h copies with, and copies some
 * thousand bytes with them.
 */
#include "mem/wide.h"

#if defined(__x86_64__) && !defined(TERN_WATCHED_) && !defined(__SANITIZE_ADDRESS__)

size_t wide_more;

static __attribute__((constructor)) void wide_look(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx"))
		wide_more = WIDE_MOST - WIDE_LEAST + 1;
}

static inline void two_lines(char *to, const char *from)
{
	struct lines {
		char bytes[2 * TERN_LINE];
	};
	__asm__("vmovdqu (%2), %%ymm0\n\t"
		"vmovdqu 32(%2), %%ymm1\n\t"
		"vmovdqu 64(%2), %%ymm2\n\t"
		"vmovdqu 96(%2), %%ymm3\n\t"
		"vmovdqu %%ymm0, (%1)\n\t"
		"vmovdqu %%ymm1, 32(%1)\n\t"
		"vmovdqu %%ymm2, 64(%1)\n\t"
		"vmovdqu %%ymm3, 96(%1)"
		: "=m"(*(struct lines *)(void *)to)
		: "r"(to), "r"(from), "m"(*(const struct lines *)(const void *)from)
		: "xmm0", "xmm1", "xmm2", "xmm3");
}

/* The last two lines may have been copied in part before. */
void wide_long(char *to, const char *from, size_t len)
{
	if (len > WIDE_LONG || len <= WIDE_MOST || !wide_more) {
		memcpy(to, from, len);
		return;
	}
	char *last = to + len - 2 * TERN_LINE;
	const char *tail = from + len - 2 * TERN_LINE;
	for (; to < last; to += 2 * TERN_LINE, from += 2 * TERN_LINE)
		two_lines(to, from);
	two_lines(last, tail);
	__asm__ volatile("vzeroupper" : : : "xmm0", "xmm1", "xmm2", "xmm3");
}

#endif
