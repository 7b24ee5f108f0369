/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether the processor has the registers that mem/wide.h copies with. */
#include "mem/wide.h"

#if defined(__x86_64__) && !defined(TERN_WATCHED_) && !defined(__SANITIZE_ADDRESS__)

size_t wide_more;

static __attribute__((constructor)) void wide_look(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx"))
		wide_more = WIDE_MOST - WIDE_LEAST + 1;
}

#endif

/* cost: base setup */
