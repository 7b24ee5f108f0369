/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TERN_BASE_CPU_H
#define TERN_BASE_CPU_H

#include <stdint.h>

/* What a loop that waits for another core runs between two looks. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

/* Cores this process may run on; at least 1. */
uint32_t cpu_count(void);

#endif
