/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the ranks of a test, lets them play its phases in rounds, and collects the figures. */
#include "lab/bench/ranks.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/setting.h"
#include "job/job.h"
#include "lab/bench/pair.h"
#include "lab/bench/words.h"
#include "tools/common/bind.h"

enum {
	PATIENCE =
		2, /* times the rounds: so long a test insists on figures that nobody disturbed */
	OURS_PERCENT = 93,
};

/* What the processes share; made before they are forked. */
struct ranks_shared {
	_Alignas(64) _Atomic uint64_t met;         /* arrivals at ranks_meet(), over all rounds */
	_Atomic uint64_t processor, interruptions; /* of all ranks in this phase, see struct use */
	_Atomic uint32_t enough;                   /* rounds have been played */
	double figure[PERF_RANKS_MOST];            /* of this phase; read after a meeting */
	_Alignas(64) atomic_flag failed;           /* whoever sets it writes the sentence */
	char sentence[256];
	struct ranks_result result;
	struct raw_arena arena;
};

struct ranks {
	const struct test *test;
	struct ranks_shared *shared;
	struct job job;
	bool job_made;
	struct bind bind;
	const struct part *parts;
	unsigned n; /* parts */
	uint32_t ranks, size;
	unsigned rounds;
	uint64_t meetings; /* this rank's */
	unsigned played;   /* rounds, those that warm up included */
	pid_t parent, pid[PERF_RANKS_MOST];
};

uint32_t test_ranks(const struct test *test, uint32_t size)
{
	return test->ranks ? test->ranks : size;
}

/* -- In a rank -------------------------------------------------------------------- */

/* Waits until all ranks have come; meanwhile polls `t`, unless that is NULL. */
static void ranks_gather(struct ranks *c, struct bench_rank *p, tern *t)
{
	bool crowded = p->raw.crowded;
	uint64_t all = ++c->meetings * c->ranks;
	atomic_fetch_add(&c->shared->met, 1);
	for (unsigned looks = 0; atomic_load(&c->shared->met) < all; looks++) {
		int rc = t ? tern_poll(t) : 0;
		p->rc = rc < 0 && p->rc >= 0 ? rc : p->rc;
		if (crowded || looks > 10000)
			sched_yield();
		else
			cpu_relax();
	}
}

/*
 * Between two phases nobody is ahead. Not a tern_barrier(), which is one of the things measured,
 * but on a simulated machine, where a rank that only looks keeps the others from running.
 *
 * Over a network ranks poll while they wait: a rank whose phase is over still acknowledges, and
 * sends again what was lost. Then they meet a second time without a poll, so that nobody handles a
 * message of the next phase before it has begun that phase itself.
 */
static void ranks_meet(struct ranks *c, struct bench_rank *p)
{
	if (p->t && pair_simulated()) {
		int rc = tern_barrier(p->t);
		p->rc = p->rc < 0 ? p->rc : rc;
		return;
	}
	if (p->t && pair_networked())
		ranks_gather(c, p, p->t);
	ranks_gather(c, p, NULL);
}

/* What tells whether the machine was ours. */
struct use {
	uint64_t wall, processor; /* ns */
	uint64_t interruptions;   /* how often another process took this rank's core */
};

static struct use use_now(void)
{
	struct rusage usage;
	struct timespec used;
	getrusage(RUSAGE_SELF, &usage);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (struct use){ .wall = clock_ns(),
			     .processor =
				     (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec,
			     .interruptions = (uint64_t)usage.ru_nivcsw };
}

/*
 * Ranks that have a core each are interrupted by nobody but others. Ranks that share
 * cores interrupt each other all the time, but together they use the whole of them.
 */
static bool phase_disturbed(struct ranks *c, const struct bench_rank *p, uint64_t wall)
{
	uint64_t processor = atomic_exchange(&c->shared->processor, 0);
	uint64_t interruptions = atomic_exchange(&c->shared->interruptions, 0);
	if (pair_simulated())
		return false;
	if (p->raw.crowded && pair_networked())
		return false; /* ranks sleep while they wait, so cores are idle in any case */
	if (p->raw.crowded)
		return processor < wall * c->bind.count / 100 * OURS_PERCENT;
	return c->test->cores && interruptions;
}

/*
 * Rank 0 decides what a figure is worth. One during which another program had one of
 * our cores says little; on a machine that is never ours, they are what there is.
 */
static bool phase_counts(struct ranks *c, const struct series *s, bool disturbed)
{
	if (c->played < c->test->warm || s->n == c->rounds)
		return false;
	c->shared->result.disturbed += disturbed;
	return !disturbed || c->played >= c->test->warm + PATIENCE * c->rounds;
}

static void figures_add(const struct bench_rank *p, const struct part *part, struct series *s,
			double figure)
{
	series_add(s, figure);
	for (unsigned i = 0; i < part->also; i++)
		series_add(s + 1 + i, p->also[i]);
}

/* Rank 0's, or that of the slowest rank: the longest time, or the smallest rate. */
static double phase_result(const struct ranks *c, const struct phase *f)
{
	double result = c->shared->figure[0];
	if (f->time != PHASE_SLOWEST)
		return result;
	bool rate = strstr(c->test->unit, "/s") != NULL;
	for (uint32_t r = 1; r < c->ranks; r++) {
		double figure = c->shared->figure[r];
		if (rate ? figure < result : figure > result)
			result = figure;
	}
	return result;
}

/* Between the last two meetings nobody plays. */
static void part_play(struct ranks *c, struct bench_rank *p, const struct part *part,
		      struct series *s)
{
	if (!phase_plays(&part->phase) || p->rc < 0)
		return;
	p->size = part->size;
	p->count = part->count;
	p->way = part->phase.way;
	p->act = part->phase.act;
	ranks_meet(c, p);
	struct use before = use_now();
	c->shared->figure[p->rank] = phase_figure(p, &part->phase, c->test->unit);
	if (p->rc < 0)
		return; /* the others wait for us, and are ended when we end */
	struct use after = use_now();
	atomic_fetch_add(&c->shared->processor, after.processor - before.processor);
	atomic_fetch_add(&c->shared->interruptions, after.interruptions - before.interruptions);
	ranks_meet(c, p);
	if (p->rank == 0 && phase_counts(c, s, phase_disturbed(c, p, after.wall - before.wall)))
		figures_add(p, part, s, phase_result(c, &part->phase));
}

static bool ranks_enough(const struct ranks *c)
{
	const struct ranks_result *r = &c->shared->result;
	for (unsigned i = 0; i < c->n; i++)
		if (phase_plays(&c->parts[i].phase) && r->part[i].n < c->rounds)
			return false;
	return true;
}

/* What is compared takes turns, and every other round plays it backwards. */
static int ranks_rounds(struct ranks *c, struct bench_rank *p)
{
	struct ranks_result *r = &c->shared->result;
	while (!atomic_load(&c->shared->enough)) {
		bool back = c->played % 2;
		for (unsigned k = 0; k < c->n; k++) {
			unsigned i = back ? c->n - 1 - k : k;
			part_play(c, p, &c->parts[i], &r->part[i]);
		}
		if (p->rc < 0)
			return p->rc;
		c->played++;
		if (p->rank == 0 && ranks_enough(c))
			atomic_store(&c->shared->enough, 1);
		ranks_meet(c, p);
	}
	return 0;
}

static int rank_play(struct ranks *c, struct bench_rank *p)
{
	int rc = 0;
	if (c->ranks > 1)
		rc = tern_open(&p->t, NULL);
	if (!rc && p->t)
		rc = words_register(p->t);
	if (!rc && c->test->open)
		rc = c->test->open(p);
	if (!rc)
		rc = ranks_rounds(c, p);
	if (!rc && p->t)
		rc = tern_barrier(p->t);
	if (!rc && p->t)
		rc = tern_close(p->t);
	return rc;
}

static void rank_settle(struct ranks *c, uint32_t rank)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != c->parent)
		_exit(1);
	for (int i = 0; i < 2 && c->test->set[i].name; i++)
		setenv(c->test->set[i].name, c->test->set[i].value, 1);
	if (c->ranks == 1)
		return;
	bind_apply(&c->bind, rank);
	environment_set(SETTING_RANK, rank);
	environment_set(SETTING_SIZE, c->ranks);
	environment_set(SETTING_JOB_FD, (uint32_t)c->job.fd);
}

__attribute__((noreturn)) static void rank_main(struct ranks *c, uint32_t rank)
{
	struct bench_rank p = { .rank = rank, .ranks = c->ranks, .size = c->size };
	p.raw.arena = &c->shared->arena;
	p.raw.crowded = c->ranks > c->bind.count;
	p.spare_core = bind_spare(&c->bind, c->ranks);
	rank_settle(c, rank);
	int rc = rank_play(c, &p);
	if (rc < 0 && !atomic_flag_test_and_set(&c->shared->failed))
		snprintf(c->shared->sentence, sizeof c->shared->sentence, "%s", tern_strerror(rc));
	_exit(rc < 0);
}

int compute_spare_core(const struct bench_rank *p)
{
	char core[16];
	if (p->spare_core < 0)
		return 0;
	snprintf(core, sizeof core, "%d", p->spare_core);
	return setenv(setting_table[SETTING_AGENT_CORE].name, core, 0) == 0
		       ? 0
		       : error_system("setting TERN_AGENT_CORE");
}

/* -- In the command ----------------------------------------------------------------- */

static int ranks_start(struct ranks *c)
{
	c->parent = getpid();
	fflush(NULL);
	for (uint32_t r = 0; r < c->ranks; r++) {
		c->pid[r] = fork();
		if (c->pid[r] == 0)
			rank_main(c, r);
		if (c->pid[r] < 0)
			return error_set(-errno, "starting process %u of %u: %s", r + 1, c->ranks,
					 strerror(errno));
	}
	return 0;
}

/* One that failed leaves the others waiting. */
static void ranks_kill(struct ranks *c)
{
	for (uint32_t r = 0; r < c->ranks; r++)
		if (c->pid[r] > 0)
			kill(c->pid[r], SIGKILL);
}

static int ranks_ended(struct ranks *c, uint32_t rank, int status)
{
	c->pid[rank] = 0;
	if (c->job_made)
		job_rank_ended(&c->job, rank, status);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	ranks_kill(c);
	if (WIFSIGNALED(status))
		return error_set(-EOWNERDEAD, "rank %u of the test was killed by signal %d (%s)",
				 rank, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return error_set(-EOWNERDEAD, "%s", c->shared->sentence);
}

/* Waits for every process; the first failure is the one that counts. */
static int ranks_wait(struct ranks *c, int rc)
{
	int status;
	pid_t pid;
	if (rc)
		ranks_kill(c);
	while ((pid = wait(&status)) > 0)
		for (uint32_t r = 0; r < c->ranks; r++)
			if (c->pid[r] == pid && rc == 0)
				rc = ranks_ended(c, r, status);
	return rc;
}

static int ranks_job(struct ranks *c)
{
	uint64_t budget;
	if (c->ranks == 1)
		return 0;
	int rc = setting_number(SETTING_MEMORY, &budget);
	if (!rc)
		rc = job_create(&c->job, c->ranks, budget);
	c->job_made = !rc;
	return rc;
}

static int ranks_open(struct ranks *c)
{
	c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (c->shared == MAP_FAILED)
		return error_set(-errno, "no memory for the raw limits: %s", strerror(errno));
	bind_plan(&c->bind, BINDING_CORE, c->ranks);
	c->bind.bound = c->ranks <= c->bind.count;
	int rc = ranks_job(c);
	if (rc)
		munmap(c->shared, sizeof *c->shared);
	return rc;
}

static void ranks_close(struct ranks *c)
{
	if (c->job_made) {
		job_unmap(&c->job);
		job_forget(&c->job);
	}
	munmap(c->shared, sizeof *c->shared);
}

int ranks_play(const struct test *test, uint32_t size, const struct part *parts, unsigned n,
	       unsigned rounds, struct ranks_result *result)
{
	struct ranks c = { .test = test, .parts = parts, .n = n, .size = size, .rounds = rounds };
	c.ranks = test_ranks(test, size);
	int rc = ranks_open(&c);
	if (rc)
		return rc;
	rc = ranks_wait(&c, ranks_start(&c));
	if (!rc)
		*result = c.shared->result;
	ranks_close(&c);
	return rc;
}

int ranks_run(const struct test *test, uint32_t size, uint64_t count, unsigned rounds,
	      struct ranks_result *result)
{
	struct part parts[PART_LIMIT + PERF_LIMITS] = { { .phase = test->measure } };
	for (int l = 0; l < PERF_LIMITS; l++)
		parts[PART_LIMIT + l].phase = test->limit[l];
	for (int i = 0; i < PART_LIMIT + PERF_LIMITS; i++) {
		parts[i].size = size;
		parts[i].count = count;
	}
	return ranks_play(test, size, parts, PART_LIMIT + PERF_LIMITS, rounds, result);
}
