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

static void place_wake(struct place *p)
{
	atomic_store(&p->go, 1);
	futex_wake(&p->go);
}

static void place_run(struct place *mine, struct place *next, unsigned rounds)
{
	for (; rounds; rounds--) {
		while (!atomic_load(&mine->go))
			futex_wait_many(&(_Atomic uint64_t *){ &mine->go }, 1, 0, UINT64_MAX);
		atomic_store(&mine->go, 0);
		place_wake(next);
	}
}

/* CPU time of a switch, us; 0: it could not be measured. */
static double bare_switch(uint32_t n)
{
	const unsigned rounds = BARE_SWITCHES / n + 1;
	struct place *place = mmap(NULL, n * sizeof *place, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t begun = 0;
	cpu_set_t core;
	if (place == MAP_FAILED)
		return 0;
	double before = children_seconds();
	int here = sched_getcpu();
	CPU_ZERO(&core);
	CPU_SET(here < 0 ? 0 : here, &core);
	for (; begun < n; begun++) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid)
			continue;
		sched_setaffinity(0, sizeof core, &core);
		sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
		place_run(&place[begun], &place[(begun + 1) % n], rounds);
		_exit(0);
	}
	place_wake(&place[0]);
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
