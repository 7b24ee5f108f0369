/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a watchdog says of handlers and holds that last too long, that it ends the job then, and
 * that it says nothing of others.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "lib/local.h"

enum {
	SLOW,
	QUICK,
	LIMIT_MS = 40,
	TOO_LONG_MS = 1500 /* a busy machine lets the watchdog look late */
};

static _Atomic unsigned slow_done;

static void sleep_ms(long ms)
{
	struct timespec length = { ms / 1000, ms % 1000 * 1000000 };
	while (nanosleep(&length, &length) != 0)
		;
}

static void be_slow(tern *t, const tern_msg *m)
{
	(void)t;
	sleep_ms((long)tern_msg_word(m, 0));
	slow_done++;
}

static void be_quick(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
}

static void ranks_open(uint32_t n)
{
	local_polled();
	setenv("TERN_WATCHDOG", "40", 0);
	setenv("TERN_WATCHDOG_END", "0", 0);
	local_open(n);
	local_on(SLOW, be_slow);
	local_on(QUICK, be_quick);
}

static void (*meanwhile)(pid_t child); /* in the parent, if there is something to do */

/* What `scene` writes to standard error, in a child; its exit status goes to *status. */
static const char *said(void (*scene)(void), int *status)
{
	static char text[4096];
	int ends[2];
	REQUIRE(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		scene();
		_exit(0);
	}
	close(ends[1]);
	size_t used = 0;
	ssize_t got;
	if (meanwhile)
		meanwhile(child);
	while ((got = read(ends[0], text + used, sizeof text - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	close(ends[0]);
	REQUIRE(waitpid(child, status, 0) == child);
	return text;
}

static unsigned times(const char *text, const char *part)
{
	unsigned n = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

static void slow_handler(void)
{
	ranks_open(3);
	CHECK_IS(tern_request(local[0], 1, SLOW, TOO_LONG_MS), 0);
	CHECK_IS(tern_request(local[2], 1, QUICK), 0);
	CHECK_IS(tern_poll_requests(local[1]), 2);
	local_close();
}

TEST(a_handler_that_lasts_too_long_is_named_once_with_those_who_wait_behind_it)
{
	int status;
	const char *text = said(slow_handler, &status);
	CHECK_IS(status, 0);
	CHECK(strstr(text, "rank 1: handler 0 (be_slow), of a message from rank 0, runs for") !=
	      NULL);
	CHECK(strstr(text, "messages from rank 2 wait behind it") != NULL ||
	      strstr(text, "no message waits behind it") != NULL); /* if 2 was handled first */
	CHECK_IS(times(text, "runs for"), 1);
}

static void long_hold(void)
{
	ranks_open(2);
	tern_hold(local[1]);
	CHECK_IS(tern_request(local[0], 1, QUICK), 0);
	tern_hold(local[1]);
	tern_release(local[1]);
	sleep_ms(TOO_LONG_MS);
	tern_release(local[1]);
	sleep_ms(3 * LIMIT_MS);
	local_close();
}

TEST(a_hold_that_lasts_too_long_is_told_once)
{
	int status;
	const char *text = said(long_hold, &status);
	CHECK_IS(status, 0);
	CHECK(strstr(text, "rank 1: its program has held for") != NULL);
	CHECK_IS(times(text, "has held"), 1);
}

static void short_ones(void)
{
	setenv("TERN_WATCHDOG", "20000",
	       1); /* a busy machine makes short ones long, but not so long */
	ranks_open(2);
	for (int i = 0; i < 60; i++) {
		CHECK_IS(tern_request(local[0], 1, SLOW, 20), 0);
		CHECK_IS(tern_poll(local[1]), 1);
		tern_hold(local[0]);
		sleep_ms(20);
		tern_release(local[0]);
	}
	local_close();
}

TEST(short_handlers_and_holds_are_not_spoken_of_however_many)
{
	int status;
	const char *text = said(short_ones, &status);
	CHECK_IS(status, 0);
	CHECK_IS(times(text, "tern:"), 0);
}

static uint64_t on_core_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void be_busy(tern *t, const tern_msg *m)
{
	uint64_t until = on_core_ms() + tern_msg_word(m, 0);
	(void)t;
	(void)!write(STDERR_FILENO, "busy\n", 5);
	while (on_core_ms() < until)
		;
}

static void busy_handler(void)
{
	setenv("TERN_WATCHDOG", "1000", 1);
	ranks_open(2);
	local_on(SLOW, be_busy);
	CHECK_IS(tern_request(local[0], 1, SLOW, 300), 0);
	CHECK_IS(tern_poll(local[1]), 1);
	local_close();
}

/* In the middle of the handler, as a debugger does; and as a scheduler with too much to do. */
static void stop_for_long(pid_t child)
{
	sleep_ms(100);
	kill(child, SIGSTOP);
	sleep_ms(TOO_LONG_MS);
	kill(child, SIGCONT);
}

TEST(time_that_a_handler_has_no_core_for_does_not_count)
{
	int status;
	meanwhile = stop_for_long;
	const char *text = said(busy_handler, &status);
	meanwhile = NULL;
	CHECK_IS(status, 0);
	CHECK(strstr(text, "busy") != NULL);
	CHECK_IS(times(text, "tern:"), 0);
}

static void endless_handler(void)
{
	setenv("TERN_WATCHDOG", "40", 1);
	ranks_open(2);
	local_on(SLOW, be_busy);
	CHECK_IS(tern_request(local[0], 1, SLOW, TOO_LONG_MS), 0);
	CHECK_IS(tern_poll(local[1]), 1);
	local_close();
}

TEST(a_handler_that_computes_for_too_long_is_named)
{
	int status;
	const char *text = said(endless_handler, &status);
	CHECK_IS(status, 0);
	CHECK(strstr(text, "rank 1: handler 0 (be_busy), of a message from rank 0, runs for") !=
	      NULL);
}

static void ending(void)
{
	setenv("TERN_WATCHDOG_END", "1", 1);
	slow_handler();
}

TEST(the_job_ends_with_a_sentence_that_names_handler_and_rank)
{
	int status;
	const char *text = said(ending, &status);
	CHECK(WIFEXITED(status));
	CHECK_IS(WEXITSTATUS(status), EX_SOFTWARE);
	CHECK(strstr(text, "rank 1: handler 0 (be_slow), of a message from rank 0, runs for") !=
	      NULL);
	CHECK(strstr(text, "the job ends (TERN_WATCHDOG)") != NULL);
}

static void by_thread(void)
{
	ranks_open(2);
	CHECK_IS(tern_delivery_set(local[1], TERN_DELIVERY_THREAD), 0);
	CHECK_IS(tern_request(local[0], 1, SLOW, TOO_LONG_MS), 0);
	while (!slow_done)
		sleep_ms(LIMIT_MS);
	local_close();
}

TEST(handlers_on_the_communication_thread_are_watched_too)
{
	int status;
	const char *text = said(by_thread, &status);
	CHECK_IS(status, 0);
	CHECK(strstr(text, "rank 1: handler 0 (be_slow), of a message from rank 0, runs for") !=
	      NULL);
}
