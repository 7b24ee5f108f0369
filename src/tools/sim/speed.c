/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast a program was simulated. Beside it stands what a switch takes that does nothing else: as
 * many processes as there are ranks, in a ring on one core, each of which wakes the next and
 * sleeps. No simulation with a process for each rank can be faster, for each switch.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel.h"
#include "tools/sim/sim.h"

enum { BARE_SWITCHES = 100000 };
enum { GO_ON = 1, GO_HOME }; /* what a process is told */

/* A line each, as far apart as those of a simulated machine. */
struct place {
	_Alignas(128) _Atomic uint64_t go;
};

static double children_seconds(void)
{
	struct rusage r;
	getrusage(RUSAGE_CHILDREN, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void place_wake(struct place *p, uint64_t go)
{
	atomic_store(&p->go, go);
	futex_wake(&p->go);
}

static void place_run(struct place *mine, struct place *next, unsigned rounds)
{
	for (; rounds; rounds--) {
		while (!atomic_load(&mine->go))
			futex_wait_many(&(_Atomic uint64_t *){ &mine->go }, 1, 0, UINT64_MAX);
		if (atomic_exchange(&mine->go, 0) == GO_HOME)
			return;
		place_wake(next, GO_ON);
	}
}

/* Starts the processes of the ring; how many there are. */
static uint32_t ring_start(struct place *place, uint32_t n, unsigned rounds)
{
	cpu_set_t core;
	int here = sched_getcpu();
	CPU_ZERO(&core);
	CPU_SET(here < 0 ? 0 : here, &core);
	for (uint32_t i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return i;
		if (pid)
			continue;
		sched_setaffinity(0, sizeof core, &core);
		sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
		place_run(&place[i], &place[(i + 1) % n], rounds);
		_exit(0);
	}
	return n;
}

/* CPU time of a switch, us; 0: it could not be measured. */
static double bare_switch(uint32_t n)
{
	const unsigned rounds = BARE_SWITCHES / n + 1;
	struct place *place = mmap(NULL, n * sizeof *place, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (place == MAP_FAILED)
		return 0;
	double before = children_seconds();
	uint32_t begun = ring_start(place, n, rounds);
	if (begun == n)
		place_wake(&place[0], GO_ON);
	for (uint32_t i = 0; i < begun && begun < n; i++)
		place_wake(&place[i], GO_HOME);
	for (uint32_t i = 0; i < begun; i++)
		wait(NULL);
	munmap(place, n * sizeof *place);
	return begun == n ? (children_seconds() - before) / rounds / n * 1e6 : 0;
}

void speed_print(const struct figures *f)
{
	double bare = bare_switch(f->nodes), each = f->packets ? f->cpu / (double)f->packets : 0;
	printf("%u ranks: %llu packets handled, %.2f switches each, in %.2f s of CPU time: %.2f us "
	       "each, %.0f a second\n",
	       f->nodes, (unsigned long long)f->packets,
	       f->packets ? (double)f->switches / (double)f->packets : 0, f->cpu / 1e6, each,
	       each > 0 ? 1e6 / each : 0);
	if (bare > 0)
		printf("a bare switch between as many processes on one core: %.2f us, %.0f a "
		       "second\n",
		       bare, 1e6 / bare);
}
