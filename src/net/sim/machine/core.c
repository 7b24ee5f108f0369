/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which core the simulation runs on. One process of it runs at a time, but a kernel that finds
 * another core idle wakes the next one there, where the machine's memory is not in the caches. So
 * while ranks run briefly, all processes gather on one core, as batch processes (SCHED_BATCH):
 * those do not interrupt the one that wakes them, which sleeps next.
 *
 * The kernel chooses the core: now and then one process, the scout, lets the kernel place it anew,
 * and the others follow it to the core where it wakes. So they leave a core that others keep busy.
 *
 * Where ranks run for long, they compute: switches cost little, and threads of a rank may want
 * other cores. Then each process gets back what it was allowed before. One with threads never
 * gathers.
 *
 * shared->core is written and read by the process that has the baton, or drives; it is handed
 * over by `go`, which orders them.
 */
#include <sched.h>
#include <sys/stat.h>

#include "base/world.h"
#include "net/sim/machine/machine.h"

enum {
	LOOK_EVERY = 1024, /* switches, between two looks at how long ranks run, */
	SCOUT_EVERY = 8,   /* and looks between two scouts */
	SHORT_NS = 50000,  /* a run, on average: a switch costs a tenth of it or more */
};

/* What our thread may use, as it was before it gathered. */
static struct {
	bool known, changed;
	cpu_set_t cores;
} before;

static bool before_know(void)
{
	if (!before.known)
		before.known = sched_getscheduler(0) == SCHED_OTHER &&
			       sched_getaffinity(0, sizeof before.cores, &before.cores) == 0;
	return before.known;
}

static void core_use(const cpu_set_t *cores, int policy)
{
	sched_setaffinity(0, sizeof *cores, cores);
	sched_setscheduler(0, policy, &(struct sched_param){ 0 });
}

/* Whether our thread is the only one: those that it starts would stay on its core. */
static bool core_alone(void)
{
	struct stat s;
	return stat("/proc/self/task", &s) == 0 && s.st_nlink == 3;
}

void core_free(struct machine *m)
{
	if (before.changed)
		core_use(&before.cores, SCHED_OTHER);
	before.changed = false;
	m->core = 0;
}

void core_follow(struct machine *m)
{
	cpu_set_t one;
	if (m->scout)
		m->shared->core = (uint32_t)sched_getcpu() + 1;
	m->scout = false;
	m->core = m->shared->core;
	if (!m->core || !before_know() || !CPU_ISSET(m->core - 1, &before.cores) || !core_alone()) {
		uint32_t seen = m->core;
		core_free(m);
		m->core = seen;
		return;
	}
	CPU_ZERO(&one);
	CPU_SET(m->core - 1, &one);
	core_use(&one, SCHED_BATCH);
	before.changed = true;
}

static void core_look(struct machine *m)
{
	struct shared *s = m->shared;
	uint64_t now = world_real.now(), took = now - s->looked;
	s->looked = now;
	if (took > (uint64_t)LOOK_EVERY * SHORT_NS) {
		s->core = 0;
		return;
	}
	if (s->core && s->switches / LOOK_EVERY % SCOUT_EVERY)
		return;
	core_free(m);
	m->scout = true;
}

void core_switched(struct machine *m)
{
	if (++m->shared->switches % LOOK_EVERY == 0)
		core_look(m);
}
