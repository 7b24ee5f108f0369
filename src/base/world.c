/* SPDX-License-Identifier: BSD-3-Clause */
/* The world of a process that nothing simulates: the clock and the waits of the kernel. */
#include "base/world.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

enum { FALLBACK_NAP_NS = 1000000 };

static uint64_t real_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void real_yield(void)
{
	sched_yield();
}

static void real_nap(uint64_t ns)
{
	struct timespec length = timespec_of(ns);
	nanosleep(&length, NULL);
}

/* seq_cst, as what rings them: a system call follows. */
static bool all_silent(const struct sleep *s)
{
	for (unsigned i = 0; i < s->bells; i++)
		if (atomic_load(s->bell[i]) != s->says)
			return false;
	return true;
}

/* A bell without a descriptor would not end this sleep, so such a mix is a nap. */
static void sleep_on_descriptors(const struct sleep *s, uint64_t ns)
{
	struct pollfd p[SLEEP_FDS + 1];
	if (s->bells > s->ports && ns > FALLBACK_NAP_NS)
		ns = FALLBACK_NAP_NS;
	struct timespec length = timespec_of(ns);
	for (unsigned i = 0; i < s->fds; i++)
		p[i] = (struct pollfd){ .fd = s->fd[i], .events = POLLIN };
	p[s->fds] = (struct pollfd){ .fd = s->wake ? *s->wake : -1, .events = POLLIN };
	if (all_silent(s))
		ppoll(p, s->fds + 1, &length, NULL);
}

static void real_sleep(const struct sleep *s, uint64_t ns)
{
	uint64_t now = s->until ? real_now() : 0;
	if (s->until && s->until < now + ns)
		ns = s->until > now ? s->until - now : 0;
	if (s->fds) {
		sleep_on_descriptors(s, ns);
		return;
	}
	if (futex_wait_many(s->bell, s->bells, s->says, ns) != 0)
		real_nap(ns < FALLBACK_NAP_NS ? ns : FALLBACK_NAP_NS);
}

static int real_poll(struct pollfd *fd, unsigned n, int ms)
{
	return poll(fd, n, ms);
}

const struct world world_real = {
	.ticks = true,
	.spins = true,
	.now = real_now,
	.yield = real_yield,
	.nap = real_nap,
	.sleep = real_sleep,
	.wait = futex_wait,
	.poll = real_poll,
};

static const struct world *used = &world_real;

const struct world *world_used(void)
{
	return used;
}

void world_use(const struct world *w)
{
	used = w;
}

uint64_t clock_ns(void)
{
	return used->now();
}

void world_nap(uint64_t ns)
{
	used->nap(ns);
}

void world_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	used->wait(word, value, ns);
}

int world_poll(struct pollfd *fd, unsigned n, int ms)
{
	return used->poll(fd, n, ms);
}
