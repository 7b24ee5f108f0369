/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long `tern run` takes to a first round trip. This command starts itself: as
 * `tern run`, and as the program that it runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "tools/perf/perf.h"

extern char **environ;

static const char itself[] = "/proc/self/exe"; /* also when the file has been replaced meanwhile */

/* Starts argv with the given output and no input; 0 or a negative code. */
static int spawn(const char *const *argv, int out, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	int rc = -posix_spawn(pid, itself, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
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
	char n[16], began[32];
	const char *argv[] = { "tern", "run", "-n", n, itself, "perf", "--first-trip", began, NULL };
	snprintf(n, sizeof n, "%u", ranks);
	snprintf(began, sizeof began, "%" PRIu64, clock_ns());
	return spawn(argv, out, pid);
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
	return sscanf(text, "%" SCNu64, ns) == 1 ? 0
						 : error_set(-EPROTO, "a job that was started said nothing");
}

static double start_measure(struct player *p)
{
	int ends[2];
	pid_t pid;
	uint64_t ns = 0;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		p->rc = error_system("making a pipe");
		return 0;
	}
	p->rc = job_start(p->size, ends[1], &pid);
	close(ends[1]);
	if (!p->rc) {
		p->rc = job_answer(ends[0], &ns);
		waitpid(pid, NULL, 0);
	}
	close(ends[0]);
	return (double)ns / 1e6;
}

/* -- As many processes, and nothing else -------------------------------------------- */

int start_bare(void)
{
	return write(STDOUT_FILENO, "", 1) == 1 ? 0 : 1;
}

/* Nanoseconds until each of `count` has written its byte. Closes the writing end. */
static int bare_run(uint32_t count, const int *ends, uint64_t *ns)
{
	const char *argv[] = { "tern", "perf", "--bare", NULL };
	uint64_t began = clock_ns();
	uint32_t started = 0, heard = 0;
	int rc = 0;
	for (; started < count && !rc; started += !rc) {
		pid_t pid;
		rc = spawn(argv, ends[1], &pid);
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

static double start_limit(struct player *p)
{
	int ends[2];
	uint64_t ns = 0;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		p->rc = error_system("making a pipe");
		return 0;
	}
	p->rc = bare_run(p->size, ends, &ns);
	close(ends[0]);
	return (double)ns / 1e6;
}

const struct test test_start = {
	.name = "start",
	.purpose = "`tern run` until rank 0 has had an answer from every rank",
	.size_name = "ranks",
	.size_least = 1,
	.size_most = 256,
	.sizes = { 2, { 2, 64 } },
	.quick = { 1, { 2 } },
	.unit = "ms",
	.ranks = 1,
	.count = 1,
	.rounds = 11,
	.warm = 1,
	.measure = start_measure,
	.limit = { start_limit },
	.limit_name = "as many processes of the same program that write one byte",
	.bar = { { 2, "at most 10 ms" }, { 64, "at most 100 ms" } },
};
