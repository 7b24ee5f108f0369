/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/world.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

enum { FALLBACK_NAP_NS = 1000000 };

static void real_yield(void)
{
	sched_yield();
}

static void real_nap(uint64_t ns)
{
	struct timespec length = { .tv_sec = (time_t)(ns / 1000000000u),
				   .tv_nsec = (long)(ns % 1000000000u) };
	nanosleep(&length, NULL);
}

static void real_sleep(const struct sleep *s, uint64_t ns)
{
	if (futex_wait_many(s->bell, s->bells, s->says, ns) != 0)
		real_nap(ns < FALLBACK_NAP_NS ? ns : FALLBACK_NAP_NS);
}

const struct world world_real = {
	.now = clock_ns,
	.yield = real_yield,
	.nap = real_nap,
	.sleep = real_sleep,
};
