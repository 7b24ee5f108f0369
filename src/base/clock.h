/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two clocks: that of the library, in nanoseconds, and the processor's own. The second is quicker
 * to read, and its unit is known only from a comparison of the two.
 */
#ifndef TERN_BASE_CLOCK_H
#define TERN_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/*
 * Nanoseconds on the clock of the process's world, see world.h; of the real one, since the machine
 * started.
 */
uint64_t clock_ns(void);

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

/*
 * Nanoseconds in a tick, over the time since `then`, which should not be too short. Where `then`
 * has no tick, the world's time is not the processor's, and a tick is a nanosecond of it.
 */
static inline double tick_length(struct moment then)
{
	struct moment now = moment_now();
	return then.tick && now.tick > then.tick
		       ? (double)(now.ns - then.ns) / (double)(now.tick - then.tick)
		       : 1;
}

#endif
