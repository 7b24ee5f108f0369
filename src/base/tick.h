/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processor's own clock: quicker to read than the kernel's, and in a unit that only
 * a comparison of the two tells.
 */
#ifndef TERN_BASE_TICK_H
#define TERN_BASE_TICK_H

#include "base/clock.h"

static inline uint64_t tick_now(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t now;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
	return now;
#else
	return clock_ns();
#endif
}

/* Ten microseconds at most, whatever a tick is on this machine. */
#if defined(__aarch64__)
enum { TICKS_BRIEF = 250 };
#else
enum { TICKS_BRIEF = 10000 };
#endif

/* Both clocks at one moment; what a tick is follows from two of them. */
struct moment {
	uint64_t tick, ns;
};

static inline struct moment moment_now(void)
{
	return (struct moment){ tick_now(), clock_ns() };
}

/* Nanoseconds in a tick, over the time since `then`, which should not be too short. */
static inline double tick_length(struct moment then)
{
	struct moment now = moment_now();
	return now.tick > then.tick ? (double)(now.ns - then.ns) / (double)(now.tick - then.tick)
				    : 1;
}

#endif

/* cost: statistics control */
