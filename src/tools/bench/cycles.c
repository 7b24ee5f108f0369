/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate of the processor's cycle counter. */
#include "tools/bench/cycles.h"

#include <math.h>

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdbool.h>
#include <x86intrin.h>

#include "base/clock.h"

enum { CALIBRATION_NS = 20000000, POWER_LEAF = 0x80000007, CONSTANT = 1 << 8 };

static bool cycles_constant(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(POWER_LEAF, &a, &b, &c, &d) && d & CONSTANT;
}

double cycles_rate(void)
{
	if (!cycles_constant())
		return NAN;
	uint64_t began = clock_ns(), first = __rdtsc(), now;
	do
		now = clock_ns();
	while (now - began < CALIBRATION_NS);
	return (double)(__rdtsc() - first) / (double)(now - began);
}

#else

double cycles_rate(void)
{
	return NAN;
}

#endif
