/* SPDX-License-Identifier: BSD-3-Clause */
/* The processor: how many cores there are, and what a core does while it waits for another. */
#ifndef TERN_BASE_CPU_H
#define TERN_BASE_CPU_H

#include <sched.h>
#include <stdint.h>
#include <unistd.h>

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
static inline uint32_t cpu_count(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than 1024 cores */
	return online > 0 ? (uint32_t)online : 1;
}

#endif
