/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Light threads cost nobody anything: messages take the instructions that they take without them,
 * and no signal is handled but the one that tells of a stack's overflow.
 */
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <tern/thread.h>

#include "lib/local.h"

enum { EMPTY, THREAD = 0, REQUESTS = 50, STEPS_MOST = 200000 };

static uint64_t nothing(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	return word[0];
}

/* With threads, one of which has run, or without. */
static void open_two(bool threads)
{
	tern_thread thread;
	unsetenv("TERN_SLICE");
	local_polled();
	local_open(2);
	for (unsigned r = 0; threads && r < 2; r++) {
		CHECK_IS(tern_thread_on(local[r], THREAD, nothing, NULL), 0);
		CHECK_IS(tern_thread_start(local[r], r, THREAD, &thread, 1), 0);
		CHECK_IS(tern_thread_join(local[r], &thread, NULL), 0);
	}
}

TEST(a_light_thread_takes_no_signal_but_that_of_stacks)
{
	struct sigaction before[65], after;
	for (int n = 1; n <= SIGRTMAX; n++)
		sigaction(n, NULL, &before[n]);
	open_two(true);
	for (int n = 1; n <= SIGRTMAX; n++)
		if (n != SIGSEGV && sigaction(n, NULL, &after) == 0)
			CHECK(after.sa_handler == before[n].sa_handler);
	local_close();
}

static void empty(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

static void requests_go(void)
{
	for (uint64_t i = 0; i < REQUESTS; i++) {
		(void)!tern_request(local[0], 1, EMPTY, i, i, i, i);
		if (i % 10 == 9)
			(void)!tern_poll(local[1]);
	}
}

static void stop_here(void)
{
	syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP);
}

__attribute__((noreturn)) static void child_main(bool threads)
{
	open_two(threads);
	local_on(EMPTY, empty);
	/* Creating a thread here opens the rank's ring to itself, which polls then look at. */
	for (unsigned r = 0; r < 2; r++)
		CHECK_IS(tern_request(local[r], r, EMPTY), 0);
	local_settle();
	requests_go(); /* what happens once has happened */
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	stop_here();
	requests_go();
	stop_here();
	_exit(0);
}

/* Instructions until it stops itself again. */
static long steps_to_stop(pid_t child)
{
	int status;
	for (long n = 0; n < STEPS_MOST; n++) {
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) ||
		    waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) == SIGSTOP)
			return n;
	}
	return -1;
}

static long count(bool threads)
{
	int status;
	pid_t child = fork();
	REQUIRE(child >= 0);
	if (child == 0)
		child_main(threads);
	REQUIRE(waitpid(child, &status, 0) == child);
	if (!WIFSTOPPED(status))
		check_skip("this machine does not let a process trace its child");
	long steps = steps_to_stop(child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return steps;
}

TEST(requests_take_the_same_instructions_with_light_threads)
{
	if (check_threads_watched())
		check_skip("the thread sanitizer's own instructions vary");
	long without = count(false), with = count(true);
	printf("    %d requests: %ld instructions, with threads %ld\n", REQUESTS, without, with);
	if (without < 0)
		check_skip("this machine cannot step through atomic instructions");
	CHECK(without > REQUESTS);
	CHECK_IS(with, without);
}
