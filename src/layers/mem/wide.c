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

void wide_long(char *to, const char *from, size_t len)
{
	if (len > WIDE_LONG || len <= WIDE_MOST || !wide_more)
		memcpy(to, from, len);
	else
		wide_copy(to, from, len);
}

#endif
