/* SPDX-License-Identifier: BSD-3-Clause */
/* Warnings reach standard error, if it takes them. */
#include "base/error.h"

#include <fcntl.h>
#include <sys/time.h>

#include "lib/check.h"

enum { ALARMS = 3 };

static int ends[2];
static volatile sig_atomic_t alarms;

/* Empties the pipe once the write that waits for that was interrupted several times. */
static void alarm_comes(int signal)
{
	char bytes[4096];
	(void)signal;
	if (++alarms == ALARMS)
		while (read(ends[0], bytes, sizeof bytes) > 0)
			;
}

/* Standard error is a pipe that has no room. */
static void stderr_fill(void)
{
	static const char zeros[4096];
	REQUIRE(pipe2(ends, O_NONBLOCK) == 0);
	while (write(ends[1], zeros, sizeof zeros) > 0)
		;
	REQUIRE(fcntl(ends[1], F_SETFL, 0) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
}

TEST(a_warning_that_signals_interrupt_is_one_line_all_the_same)
{
	struct sigaction interrupt = { .sa_handler = alarm_comes };
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } }, never = { { 0, 0 }, { 0, 0 } };
	char line[100] = "";
	stderr_fill();
	REQUIRE(sigaction(SIGALRM, &interrupt, NULL) == 0);
	REQUIRE(setitimer(ITIMER_REAL, &often, NULL) == 0);
	error_warn("rank %d waits", 3);
	while (alarms < ALARMS)
		usleep(1000);
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(read(ends[0], line, sizeof line - 1) > 0);
	CHECK(strcmp(line, "tern: rank 3 waits\n") == 0);
}

TEST(a_warning_that_nobody_can_be_told_is_left_out)
{
	close(STDERR_FILENO);
	error_warn("nobody reads this");
	CHECK_IS(fcntl(STDERR_FILENO, F_GETFD), -1);
}
