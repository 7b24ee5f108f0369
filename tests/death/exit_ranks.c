/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit_ranks WHERE STATUS [WHO]: rank WHO, 1 unless said, ends the job with STATUS while the others
 * wait in a barrier. For tests/death/exit_test.sh and the tests of other launchers.
 *
 * WHERE: program; handler; asked, a handler
 * that another rank's request runs while the rank computes; light, a light thread; deferred, a
 * deferred function; hold, under a hold; both, ranks 0 and 1 at once; abort, with a sentence
 * instead of a status; compute, where the others compute; flood, where they send to it; refused,
 * where the statuses are out of range; child, in a child of fork(); cleanup, where the others catch
 * SIGTERM; stuck, a handler that does not return, which TERN_WATCHDOG sees; slow, one that replies
 * and then computes for 4 s of processor time; busy, handlers for as long that return soon;
 * stopped, one that is stopped for 4 s.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tern/tern.h>
#include <tern/thread.h>

enum { EXIT, LIGHT, NOTHING, STUCK, SLOW, STOPPED, BUSY, SLOW_S = 4 };

static int status;
static tern_flag never;
static const char *where;
static volatile uint64_t computed;

static int is(const char *what)
{
	return strcmp(where, what) == 0;
}

static void on_exit_asked(tern *t, const tern_msg *m)
{
	(void)m;
	tern_exit(t, status);
	abort(); /* it does not return */
}

static void exit_later(tern *t, void *arg)
{
	(void)arg;
	on_exit_asked(t, NULL);
}

static void on_nothing(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

static void on_stuck(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	while (!never)
		computed++;
}

static double used(void)
{
	struct timespec at;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void on_slow(tern *t, const tern_msg *m)
{
	tern_reply(t, m, NOTHING);
	for (double begun = used(); used() - begun < SLOW_S;)
		computed++;
	tern_defer(t, exit_later, NULL);
}

static void on_busy(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	for (double begun = used(); used() - begun < 0.02;)
		computed++;
}

static void on_stopped(tern *t, const tern_msg *m)
{
	pid_t pid = fork();
	(void)m;
	if (pid == 0) {
		sleep(SLOW_S);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
	waitpid(pid, NULL, 0);
	tern_defer(t, exit_later, NULL);
}

static uint64_t exit_lightly(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)word;
	on_exit_asked(t, NULL);
	return 0;
}

static void clean_up(int signal)
{
	static const char text[] = "cleaned up\n";
	(void)signal;
	(void)!write(STDOUT_FILENO, text, sizeof text - 1);
	_exit(9);
}

/* Whether every status that is none is refused, with a sentence. */
static int refused(tern *t)
{
	static const int wrong[] = { -1, 256, 1000 };
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (tern_exit(t, wrong[i]) != -EINVAL ||
		    !strstr(tern_strerror(-EINVAL), "0 to 255"))
			return 0;
	return 1;
}

static int refused_in_child(tern *t)
{
	int s;
	pid_t pid = fork();
	if (pid == 0)
		_exit(tern_exit(t, 0) == -EPERM ? 7 : 8);
	return waitpid(pid, &s, 0) == pid && WIFEXITED(s) && WEXITSTATUS(s) == 7;
}

static void end_job(tern *t)
{
	uint32_t me = tern_rank(t);
	if (is("handler"))
		tern_request(t, me, EXIT);
	else if (is("stuck"))
		tern_request(t, me, STUCK);
	else if (is("slow"))
		tern_request(t, me, SLOW);
	else if (is("stopped"))
		tern_request(t, me, STOPPED);
	else if (is("light"))
		tern_spawn(t, me, LIGHT, NULL, NULL);
	else if (is("deferred"))
		tern_defer(t, exit_later, NULL);
	else if (is("asked"))
		while (!never) /* until it is interrupted */
			computed++;
	else if (is("busy")) {
		for (double begun = used(); used() - begun < SLOW_S; tern_poll(t))
			tern_request(t, me, BUSY);
		tern_exit(t, status);
	} else if (is("abort"))
		tern_abort(t, "the disk is full");
	else if (is("refused") && !refused(t))
		tern_exit(t, 99);
	else if (is("child") && !refused_in_child(t))
		tern_exit(t, 98);
	else
		tern_exit(t, status);
}

static void others(tern *t, uint32_t who)
{
	while (is("compute"))
		computed++;
	while (is("flood"))
		tern_request(t, who, NOTHING);
	if (is("asked") && tern_rank(t) == 0)
		tern_request(t, who, EXIT);
}

int main(int argc, char **argv)
{
	tern *t;
	where = argc > 1 ? argv[1] : "program";
	status = argc > 2 ? atoi(argv[2]) : 0;
	uint32_t who = argc > 3 ? (uint32_t)atoi(argv[3]) : 1;
	if (is("cleanup"))
		signal(SIGTERM, clean_up);
	const tern_options options = { .signal = SIGUSR1 }; /* for TERN_DELIVERY=interrupt */
	if (tern_open(&t, &options) || tern_on(t, EXIT, on_exit_asked) ||
	    tern_on(t, NOTHING, on_nothing) || tern_on(t, STUCK, on_stuck) ||
	    tern_on(t, SLOW, on_slow) || tern_on(t, STOPPED, on_stopped) ||
	    tern_on(t, BUSY, on_busy) || tern_thread_on(t, LIGHT, exit_lightly, NULL))
		return 102;
	if (tern_rank(t) == who)
		printf("rank %u has its answer\n", who); /* which is buffered */
	if (tern_barrier(t))
		return 101;
	if (tern_rank(t) == who || (is("both") && tern_rank(t) == 0)) {
		end_job(t);
		tern_wait(t, &never, 1);
	}
	others(t, who);
	int rc = tern_barrier(t);
	fprintf(stderr, "rank %u goes on: %s\n", tern_rank(t), tern_strerror(rc));
	return 103;
}
