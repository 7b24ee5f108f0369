/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole jobs: the barrier, a rank that waits, memory; how long `tern run` takes to a first round
 * trip.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "job/job.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"
#include "tools/common/program.h"

/* -- Barrier -------------------------------------------------------------------- */

static REPEATS(barriers_pass, tern_barrier(p->t));

static const struct test test_barrier = {
	{ "barrier", "a barrier of all ranks", "us" },
	{ "ranks", 2, PERF_RANKS_MOST, { 2, { 2, 8 } }, { 1, { 8 } } },
	.amount = { .ranks = RANKS_BY_SIZE, .count = 100 },
	.play = { .measure = { .time = PHASE_ALL, .act = barriers_pass },
		  .limit = { { .time = PHASE_ALL, .act = raw_laps } } },
	.limit_name = LAPS_NAME,
	.bar = { { 8, "at most 0.40" } },
};

/* -- A rank that waits ------------------------------------------------------------ */

static uint64_t processor_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

static double idle_measure(struct bench_rank *p)
{
	if (p->rank) {
		struct timespec length = { .tv_sec = (time_t)(p->count / 1000),
					   .tv_nsec = (long)(p->count % 1000 * 1000000) };
		nanosleep(&length, NULL);
		p->rc = words_last(p->t, 0);
		return 0;
	}
	uint64_t began = clock_ns(), used = processor_ns();
	p->rc = words_serve(p->t, 1);
	return 100 * (double)(processor_ns() - used) / (double)(clock_ns() - began);
}

static const struct test test_idle = {
	{ "idle", "the part of a core that a rank uses while it waits, for --count ms", "%" },
	{ "ranks", 2, 2, { 1, { 2 } }, { 0 } },
	.amount = { .cores = TEST_NONE, .count = 1000, .rounds = 3, .warm = TEST_NONE },
	.play = { .open = words_open, .measure.figure = idle_measure },
	.bar = { { 2, "less than 1 %" } },
};

/* -- Memory --------------------------------------------------------------------- */

static double memory_measure(struct bench_rank *p)
{
	struct job_needs needs;
	job_needs(p->size, &needs);
	return (double)needs.neighbours / (1 << 20);
}

static const struct test test_memory = {
	{ "memory", "shared memory of a job whose ranks talk with their neighbours only", "MiB" },
	{ "ranks", 1, TERN_RANKS_MAX, { 2, { 64, 256 } }, { 0 } },
	.amount = { .ranks = 1,
		    .cores = TEST_NONE,
		    .count = TEST_NONE,
		    .rounds = 1,
		    .warm = TEST_NONE },
	.play = { .measure.figure = memory_measure },
	.bar = { { 64, "at most 16 MiB" }, { 256, "at most 256 MiB" } },
	.note = "computed, not measured",
};

extern char **environ;

/* Starts a program with the given output and no input; 0 or a negative code. */
static int spawn(const char *program, const char *const *argv, int out, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	int rc =
		-posix_spawn(pid, program, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* -- A job, to its first round trip ------------------------------------------------- */

enum { HANDLER_HELLO, HANDLER_BACK, HANDLER_LEAVE };

static _Atomic uint64_t came_back, may_leave;

static void hello(tern *t, const tern_msg *m)
{
	tern_reply(t, m, HANDLER_BACK);
}

static void back(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &came_back, 1);
}

static void leave(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &may_leave, 1);
}

static int everybody(tern *t, unsigned handler)
{
	int rc = 0;
	for (uint32_t r = 1; r < tern_size(t) && !rc; r++)
		rc = tern_request(t, r, handler);
	return rc;
}

/* Rank 0 talks with every rank, so that all of them have started. */
static int first_trip(tern *t, uint64_t began)
{
	int rc = everybody(t, HANDLER_HELLO);
	if (!rc)
		rc = tern_wait(t, &came_back, tern_size(t) - 1);
	if (rc)
		return rc;
	printf("%" PRIu64 "\n", clock_ns() - began);
	fflush(stdout);
	return everybody(t, HANDLER_LEAVE);
}

static int first_trip_job(uint64_t began)
{
	tern *t;
	int rc = tern_open(&t, NULL);
	if (rc)
		return rc;
	tern_on(t, HANDLER_HELLO, hello);
	tern_on(t, HANDLER_BACK, back);
	tern_on(t, HANDLER_LEAVE, leave);
	rc = tern_rank(t) ? tern_wait(t, &may_leave, 1) : first_trip(t, began);
	int closed = tern_close(t);
	return rc ? rc : closed;
}

int start_first_trip(const char *began)
{
	int rc = first_trip_job(strtoull(began, NULL, 10));
	if (!rc)
		return 0;
	fprintf(stderr, "tern perf: %s\n", tern_strerror(rc));
	return 1;
}

static int job_start(uint32_t ranks, int out, pid_t *pid)
{
	char n[16], began[32], itself[32], command[PATH_MAX];
	const char *argv[] = { "tern", "run", "-n", n, itself, "--first-trip", began, NULL };
	if (!program_locate("tern", command))
		return error_set(-ENOENT,
				 "the command tern is neither beside tern-perf nor on PATH");
	/* Not self, which would be `tern run`; and right when the file has been replaced. */
	snprintf(itself, sizeof itself, "/proc/%d/exe", (int)getpid());
	snprintf(n, sizeof n, "%u", ranks);
	snprintf(began, sizeof began, "%" PRIu64, clock_ns());
	return spawn(command, argv, out, pid);
}

/* Reads what the job printed: nanoseconds. */
static int job_answer(int in, uint64_t *ns)
{
	char text[32];
	size_t len = 0;
	ssize_t n;
	while (len < sizeof text - 1 && (n = read(in, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return sscanf(text, "%" SCNu64, ns) == 1
		       ? 0
		       : error_set(-EPROTO, "a job that was started said nothing");
}

/* Nanoseconds until the job of the size has answered. Closes the writing end. */
static int job_run(uint32_t ranks, const int *ends, uint64_t *ns)
{
	pid_t pid;
	int rc = job_start(ranks, ends[1], &pid);
	close(ends[1]);
	if (rc)
		return rc;
	rc = job_answer(ends[0], ns);
	waitpid(pid, NULL, 0);
	return rc;
}

/* -- As many processes, and nothing else -------------------------------------------- */

int start_bare(void)
{
	return write(STDOUT_FILENO, "", 1) == 1 ? 0 : 1;
}

/* Nanoseconds until each of `count` has written its byte. Closes the writing end. */
static int bare_run(uint32_t count, const int *ends, uint64_t *ns)
{
	const char *argv[] = { "tern-perf", "--bare", NULL };
	uint64_t began = clock_ns();
	uint32_t started = 0, heard = 0;
	int rc = 0;
	for (; started < count && !rc; started += !rc) {
		pid_t pid;
		rc = spawn("/proc/self/exe", argv, ends[1], &pid);
	}
	close(ends[1]); /* so that a read ends when nobody is left who could write */
	for (char byte; !rc && heard < started; heard++)
		if (read(ends[0], &byte, 1) != 1)
			rc = error_set(-EPROTO, "a process that was started said nothing");
	*ns = clock_ns() - began;
	while (started--)
		wait(NULL);
	return rc;
}

/* Milliseconds by `run`, one of the two above, which has a pipe for what is started. */
static double start_time(struct bench_rank *p, int (*run)(uint32_t, const int *, uint64_t *))
{
	int ends[2];
	uint64_t ns = 0;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		p->rc = error_system("making a pipe");
		return 0;
	}
	p->rc = run(p->size, ends, &ns);
	close(ends[0]);
	return (double)ns / 1e6;
}

static double start_measure(struct bench_rank *p)
{
	return start_time(p, job_run);
}

static double start_limit(struct bench_rank *p)
{
	return start_time(p, bare_run);
}

static const struct test test_start = {
	{ "start", "`tern run` until rank 0 has had an answer from every rank", "ms" },
	{ "ranks", 1, 256, { 2, { 2, 64 } }, { 1, { 2 } } },
	.amount = { .ranks = 1, .cores = TEST_NONE, .count = 1, .rounds = 11, .warm = 1 },
	.play = { .measure.figure = start_measure, .limit[0].figure = start_limit },
	.limit_name = "as many processes of the same program that write one byte",
	.bar = { { 2, "at most 10 ms" }, { 64, "at most 100 ms" } },
};

const struct test *const job_tests[] = { &test_barrier, &test_idle, &test_start, &test_memory,
					 NULL };
