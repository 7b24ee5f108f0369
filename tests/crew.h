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
#include "core/endpoint.h"

enum { CREW_MOST = 256 };

static struct job crew_job;
static uint32_t crew_size;
static pid_t crew_pid[CREW_MOST];

static inline void crew_setenv(const char *name, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof text, "%u", value);
	setenv(name, text, 1);
}

static inline tern *crew_open(void)
{
	tern *t = NULL;
	int rc = tern_open(&t, NULL);
	if (rc)
		printf("    %s\n", tern_strerror(rc));
	REQUIRE(rc == 0);
	return t;
}

__attribute__((noreturn)) static inline void crew_child(uint32_t rank, void (*rank_main)(void))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	crew_setenv("TERN_RANK", rank);
	crew_setenv("TERN_SIZE", crew_size);
	crew_setenv("TERN_JOB_FD", (uint32_t)crew_job.fd);
	rank_main();
	fflush(NULL);
	_exit(atomic_load(&check_failures) ? 1 : 0);
}

/* Starts n processes that run rank_main; it opens and closes its endpoint itself. */
static inline void crew_start(uint32_t n, uint64_t budget, void (*rank_main)(void))
{
	crew_size = n;
	REQUIRE(job_create(&crew_job, n, budget) == 0);
	fflush(NULL);
	for (uint32_t r = 0; r < n; r++) {
		crew_pid[r] = fork();
		REQUIRE(crew_pid[r] >= 0);
		if (crew_pid[r] == 0)
			crew_child(r, rank_main);
	}
}

static inline uint32_t crew_rank_of(pid_t pid)
{
	for (uint32_t r = 0; r < crew_size; r++)
		if (crew_pid[r] == pid)
			return r;
	return crew_size;
}

/* Takes in ranks that have ended, up to n or, without blocking, those there are; how many failed. */
static inline unsigned crew_reap(uint32_t n, int flags)
{
	unsigned failed = 0;
	int status;
	for (pid_t pid; n && (pid = waitpid(-1, &status, flags)) > 0; n--) {
		uint32_t r = crew_rank_of(pid);
		failed += status != 0;
		if (r == crew_size)
			continue;
		job_rank_ended(&crew_job, r, status);
		crew_pid[r] = 0;
	}
	return failed;
}

static inline void crew_end(void)
{
	job_unmap(&crew_job);
	job_forget(&crew_job);
}

/* All of it, for ranks of which none is to fail. */
static inline void crew_run(uint32_t n, void (*rank_main)(void))
{
	crew_start(n, 0, rank_main);
	CHECK_IS(crew_reap(n, 0), 0);
	crew_end();
}

/* -- Threads ------------------------------------------------------------------------ */

struct crew_task {
	tern *t;
	void (*rank_main)(tern *t);
};
static _Atomic uint32_t crew_over; /* threads whose rank has nothing more to do */

static inline void crew_nap(uint64_t ns)
{
	struct timespec length = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
	while (nanosleep(&length, &length) != 0 && errno == EINTR)
		;
}

/* Over a network the last word of a rank may be lost, and is said again only while somebody polls. */
static inline void *crew_task_run(void *arg)
{
	struct crew_task *task = arg;
	task->rank_main(task->t);
	atomic_fetch_add(&crew_over, 1);
	while (getenv("TERN_NET") && atomic_load(&crew_over) < tern_size(task->t)) {
		(void)!tern_poll(task->t);
		crew_nap(200000);
	}
	return NULL;
}

/* One endpoint per thread; prepare registers the handlers of each. */
static inline void crew_run_threads(uint32_t n, void (*prepare)(tern *t), void (*rank_main)(tern *t))
{
	static tern *t[CREW_MOST];
	static struct crew_task task[CREW_MOST];
	pthread_t thread[CREW_MOST];
	REQUIRE(tern_open_local(n, t) == 0);
	atomic_store(&crew_over, 0);
	for (uint32_t r = 0; r < n; r++)
		prepare(t[r]);
	for (uint32_t r = 0; r < n; r++) {
		task[r] = (struct crew_task){ t[r], rank_main };
		REQUIRE(pthread_create(&thread[r], NULL, crew_task_run, &task[r]) == 0);
	}
	for (uint32_t r = 0; r < n; r++)
		pthread_join(thread[r], NULL);
	for (uint32_t r = 0; r < n; r++)
		CHECK_IS(tern_close(t[r]), 0);
}

/* Zero memory that ranks share, threads or processes. */
static inline void *crew_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(p != MAP_FAILED);
	return p;
}

#endif
