/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The world of a simulated rank: its clock is the machine's, and its waits are the machine's
 * own. Before a rank has joined, and after it has left, the real world's.
 */
#include "net/sim/sim.h"

enum {
	COMING_PS = 100000000, /* for at most so long: it may be lost */
	AROUND = 4,            /* times as long as a packet takes at least: there and back */
};

/*
 * When the last rank of this process left, on both clocks, ns. Closing takes no virtual time: the
 * clock stands for so long, and then goes on as the real one, so that no wait is for ever.
 */
static uint64_t left_virtual, left_real;
static const uint64_t STANDS_NS = 1000000000;

void sim_world_leave(uint64_t ns)
{
	left_virtual = ns;
	left_real = world_real.now();
}

static uint64_t after_leaving(void)
{
	uint64_t since = world_real.now() - left_real;
	return left_virtual + (left_real && since < STANDS_NS ? 0 : since);
}

/*
 * A controller's handler may run at an earlier time than its processor has come to. The clock that
 * the rank sees stands meanwhile: it does not go back.
 */
static uint64_t sim_now(void)
{
	struct machine *m = sim_machine();
	if (!m)
		return after_leaving();
	baton_measure_end(m);
	baton_measure_begin(m);
	uint64_t ns = (m->serving ? m->served : baton_time(m)) / PS_NS;
	if (m->told < ns)
		m->told = ns;
	return m->told;
}

/*
 * A look of a wait: the poll that follows it need not look again. It lasts until something arrives
 * or the network has something to do. What was taken or sent since the last poll that found nothing
 * may have left something to do, so then a poll comes first, and takes no time.
 */
static void rest(struct machine *m, uint64_t part, uint64_t ps)
{
	bool first = m->active;
	m->serving = m->active = false;
	m->rested = true;
	if (first)
		return;
	baton_measure_end(m);
	baton_look(m, part, ps, sim_wakes());
	baton_measure_begin(m);
}

/*
 * Only the library's own waits yield, and nobody looks at the clock meanwhile. What is on its way
 * here ends the wait, so that is waited for; and so is, for a while, what may be an answer. Each
 * look that ends sooner would be a switch of processes for nothing.
 */
static void sim_yield(void)
{
	struct machine *m = sim_machine();
	if (m)
		rest(m, 1, baton_coming(m) ? COMING_PS : AROUND * m->ahead);
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

/* Threads of one process wait for each other in real time: their rank has the baton. */
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
				 .poll = sim_poll,
				 .price = sim_price,
				 .work = sim_work };
