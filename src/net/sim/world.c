/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of a simulated rank: its clock is the machine's, and its waits are the machine's
 * turns. Before a rank has joined, and after it has left, the real world's.
 */
#include "net/sim/sim.h"

enum { COMING_PS = 100000000 }; /* for at most so long: it may be lost */

static uint64_t sim_now(void)
{
	struct machine *m = sim_machine();
	return m ? turn_time(m) / PS_NS : world_real.now();
}

/* A look of a wait: the poll that follows it need not look again. */
static void rest(struct machine *m, uint64_t part, uint64_t ps)
{
	turn_look(m, part, ps);
	m->rested = true;
}

/*
 * Only the library's own waits yield, and nobody looks at the clock meanwhile. What is on its way
 * here ends the wait, so that is waited for.
 */
static void sim_yield(void)
{
	struct machine *m = sim_machine();
	if (m)
		rest(m, 1, turn_coming(m) ? COMING_PS : m->profile.poll);
	else
		world_real.yield();
}

static void sim_nap(uint64_t ns)
{
	struct machine *m = sim_machine();
	if (m)
		rest(m, UINT64_MAX, ns * PS_NS);
	else
		world_real.nap(ns);
}

static void sim_sleep(const struct sleep *s, uint64_t ns)
{
	struct machine *m = sim_machine();
	if (!m) {
		world_real.sleep(s, ns);
		return;
	}
	uint64_t now = sim_now(), part = s->until || s->limited ? UINT64_MAX : 1;
	if (s->until && s->until < now + ns)
		ns = s->until > now ? s->until - now : 0;
	rest(m, part, ns * PS_NS);
}

/* Threads of one process wait for each other in real time: their rank has the turn. */
static void sim_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	world_real.wait(word, value, ns);
}

static int sim_poll(struct pollfd *fd, unsigned n, int ms)
{
	return world_real.poll(fd, n, ms);
}

const struct world sim_world = { .now = sim_now,
				 .yield = sim_yield,
				 .nap = sim_nap,
				 .sleep = sim_sleep,
				 .wait = sim_wait,
				 .poll = sim_poll };
