/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks as processes or as threads, run by the test itself, which plays the
 * launcher: it makes the job, starts the ranks, and tells the job how each ended.
 */
#ifndef TERN_TESTS_CREW_H
#define TERN_TESTS_CREW_H

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <tern/tern.h>

#include "base/clock.h"
#include "check.h"
#include "endpoint/endpoint.h"
#include "far.h"
#include "left.h"

enum { RANKS_AT_MOST = 512 };

static struct job ranks_job;
static uint32_t ranks_size;
static pid_t ranks_pid[RANKS_AT_MOST];

static inline void ranks_setenv(const char *name, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof text, "%u", value);
	setenv(name, text, 1);
}

static inline tern *ranks_open(void)
{
	tern *t = NULL;
	int rc = tern_open(&t, NULL);
	if (rc)
		printf("    %s\n", tern_strerror(rc));
	REQUIRE(rc == 0);
	return t;
}

__attribute__((noreturn)) static inline void ranks_child(uint32_t rank, void (*rank_main)(void))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ranks_setenv("TERN_RANK", rank);
	ranks_setenv("TERN_SIZE", ranks_size);
	ranks_setenv("TERN_JOB_FD", (uint32_t)ranks_job.fd);
	struct left before;
	left_before(&before);
	rank_main();
	if (atomic_load(&ranks_job.rank[rank].state) != RANK_OPEN)
		left_open_since(&before);
	fflush(NULL);
	_exit(atomic_load(&check_failures) ? 1 : 0);
}

/* Starts n processes that run rank_main; it opens and closes its endpoint itself. */
static inline void ranks_start(uint32_t n, uint64_t budget, void (*rank_main)(void))
{
	check_skip_crowd(n);
	far_need(getenv("TERN_NET"));
	far_ready(getenv("TERN_NET"));
	ranks_size = n;
	REQUIRE(job_create(&ranks_job, n, budget) == 0);
	fflush(NULL);
	for (uint32_t r = 0; r < n; r++) {
		ranks_pid[r] = fork();
		REQUIRE(ranks_pid[r] >= 0);
		if (ranks_pid[r] == 0)
			ranks_child(r, rank_main);
	}
}

static inline uint32_t ranks_rank_of(pid_t pid)
{
	for (uint32_t r = 0; r < ranks_size; r++)
		if (ranks_pid[r] == pid)
			return r;
	return ranks_size;
}

/*
 * Takes in ranks that have ended, up to n or, without blocking, those there are; how many failed.
 */
static inline unsigned ranks_reap(uint32_t n, int flags)
{
	unsigned failed = 0;
	int status;
	for (pid_t pid; n && (pid = waitpid(-1, &status, flags)) > 0; n--) {
		uint32_t r = ranks_rank_of(pid);
		failed += status != 0;
		if (r == ranks_size)
			continue;
		job_rank_ended(&ranks_job, r, status);
		ranks_pid[r] = 0;
	}
	return failed;
}

static inline void ranks_end(void)
{
	job_unmap(&ranks_job);
	job_forget(&ranks_job);
}

/* All of it, for ranks of which none is to fail. */
static inline void ranks_run(uint32_t n, void (*rank_main)(void))
{
	ranks_start(n, 0, rank_main);
	CHECK_IS(ranks_reap(n, 0), 0);
	ranks_end();
}

/* -- Threads ------------------------------------------------------------------------ */

struct ranks_task {
	tern *t;
	void (*rank_main)(tern *t);
};
static _Atomic uint32_t ranks_over; /* threads whose rank has nothing more to do */

static inline void ranks_nap(uint64_t ns)
{
	struct timespec length = { .tv_sec = (time_t)(ns / 1000000000),
				   .tv_nsec = (long)(ns % 1000000000) };
	while (nanosleep(&length, &length) != 0 && errno == EINTR)
		;
}

/*
 * Over a network the last word of a rank may be lost, and is said again only while somebody polls.
 */
static inline void *ranks_task_run(void *arg)
{
	struct ranks_task *task = arg;
	task->rank_main(task->t);
	atomic_fetch_add(&ranks_over, 1);
	while (getenv("TERN_NET") && atomic_load(&ranks_over) < tern_size(task->t)) {
		(void)!tern_poll(task->t);
		ranks_nap(200000);
	}
	return NULL;
}

/* One endpoint per thread; prepare registers the handlers of each. */
static inline void ranks_run_threads(uint32_t n, void (*prepare)(tern *t),
				     void (*rank_main)(tern *t))
{
	static tern *t[RANKS_AT_MOST];
	static struct ranks_task task[RANKS_AT_MOST];
	pthread_t thread[RANKS_AT_MOST];
	far_need(getenv("TERN_NET"));
	REQUIRE(tern_open_local(n, t) == 0);
	atomic_store(&ranks_over, 0);
	for (uint32_t r = 0; r < n; r++)
		prepare(t[r]);
	for (uint32_t r = 0; r < n; r++) {
		task[r] = (struct ranks_task){ t[r], rank_main };
		REQUIRE(pthread_create(&thread[r], NULL, ranks_task_run, &task[r]) == 0);
	}
	for (uint32_t r = 0; r < n; r++)
		pthread_join(thread[r], NULL);
	for (uint32_t r = 0; r < n; r++)
		CHECK_IS(tern_close(t[r]), 0);
}

/* Zero memory that ranks share, threads or processes. */
static inline void *ranks_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(p != MAP_FAILED);
	return p;
}

#endif
