/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes by number and start: the right one, or none. */
#include <errno.h>
#include <poll.h>

#include "base/process.h"
#include "lib/left.h"

/* A child that ends as told once a byte comes; not reaped. */
static pid_t child_that(int pipe_end[2], int exit_status, int signal_number)
{
	char byte;
	REQUIRE(pipe(pipe_end) == 0);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid)
		return pid;
	close(pipe_end[1]);
	(void)!read(pipe_end[0], &byte, 1);
	if (signal_number)
		raise(signal_number);
	_exit(exit_status);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, ms) == 1;
}

TEST(a_process_is_seen_to_end_and_how_before_its_parent_asks)
{
	int way[2], status = 0;
	pid_t pid = child_that(way, 7, 0);
	uint64_t born = process_born(pid);
	CHECK(born > 0);
	int fd = process_open(pid, born);
	REQUIRE(fd >= 0);
	CHECK(!readable(fd, 20));
	CHECK(!process_status(fd, pid, born, &status));
	close(way[1]);
	CHECK(readable(fd, 10000));
	CHECK(process_status(fd, pid, born, &status));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(!process_status(-1, pid, born + 1, &status)); /* another one's number */
	CHECK_IS(waitpid(pid, NULL, 0), pid);
	close(fd);
}

TEST(the_time_on_a_core_of_a_process_that_runs_grows_and_that_of_one_that_sleeps_does_not)
{
	int way[2];
	uint64_t used = 77, more = 0;
	pid_t pid = child_that(way, 0, 0);
	while (process_state(pid, &used) == 'R')
		usleep(1000);
	CHECK(used < 77);
	CHECK(process_state(pid, &more) == 'S' && more == used);
	close(way[1]);
	CHECK_IS(waitpid(pid, NULL, 0), pid);
	used = 77;
	CHECK(process_state(pid, &used) == 0 && used == 77);
	pid = fork();
	if (pid == 0)
		for (volatile unsigned i = 0;; i++)
			; /* for ever */
	REQUIRE(pid > 0);
	for (more = 0; more < 3;)
		process_state(pid, &more);
	CHECK(process_state(pid, &more) == 'R');
	kill(pid, SIGKILL);
	CHECK_IS(waitpid(pid, NULL, 0), pid);
}

TEST(the_signal_that_killed_a_process_is_known_while_it_is_not_reaped)
{
	int way[2], status = 0;
	pid_t pid = child_that(way, 0, SIGKILL);
	uint64_t born = process_born(pid);
	int fd = process_open(pid, born);
	REQUIRE(fd >= 0);
	close(way[1]);
	CHECK(readable(fd, 10000));
	CHECK(process_status(fd, pid, born, &status));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

TEST(once_reaped_the_status_is_the_right_one_or_unknown)
{
	int way[2], status = 0;
	pid_t pid = child_that(way, 9, 0);
	uint64_t born = process_born(pid);
	int fd = process_open(pid, born);
	REQUIRE(fd >= 0);
	close(way[1]);
	waitpid(pid, NULL, 0);
	CHECK(!process_status(fd, pid, born, &status) ||
	      WEXITSTATUS(status) == 9); /* Linux 6.15 knows */
	CHECK_IS(process_open(pid, born), -ESRCH);
	CHECK_IS(process_born(pid), 0);
	close(fd);
}

TEST(another_process_under_the_same_number_is_not_taken_for_it)
{
	int status;
	CHECK_IS(process_open(getpid(), process_born(getpid()) + 1), -ESRCH);
	CHECK(!process_status(-1, getpid(), process_born(getpid()) + 1, &status));
}

TEST(a_variable_of_a_process_is_found_by_its_whole_name)
{
	char value[64] = "none", small[4];
	char first[] = "PLACE_ONE=first", second[] = "PLACE=the second", third[] = "PLAC=third";
	char *const environment[] = { first, second, third, NULL };
	int in[2];
	REQUIRE(pipe(in) == 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(in[0], 0);
		close(in[1]);
		execle("/bin/cat", "cat", (char *)NULL, environment);
		_exit(1);
	}
	close(in[0]);
	while (!process_variable(child, "PLACE", value, sizeof value)) /* until it has executed */
		;
	CHECK(strcmp(value, "the second") == 0);
	CHECK(process_variable(child, "PLAC", value, sizeof value) && strcmp(value, "third") == 0);
	CHECK(process_variable(child, "PLACE_ONE", small, sizeof small) &&
	      strcmp(small, "fir") == 0);
	strcpy(value, "as before");
	CHECK(!process_variable(child, "PLA", value, sizeof value));
	CHECK(!process_variable(child, "PLACE_TWO", value, sizeof value));
	CHECK(strcmp(value, "as before") == 0);
	close(in[1]);
	REQUIRE(waitpid(child, NULL, 0) == child);
	CHECK(!process_variable(child, "PLACE", value, sizeof value));
}

TEST(whoever_asks_about_processes_has_no_descriptor_left)
{
	struct left before;
	char value[8];
	int way[2], status;
	uint64_t used;
	pid_t pid = child_that(way, 0, 0);
	left_before(&before);
	uint64_t born = process_born(pid);
	const struct process_name name = { .pid = pid, .born = born };
	CHECK(!process_ended(&name) && process_state(pid, &used));
	CHECK_IS(process_parent(pid), getpid());
	CHECK_IS(process_open(pid, born + 1), -ESRCH);
	CHECK(!process_status(-1, pid, born, &status));
	CHECK(!process_variable(pid, "NOBODY_HAS_THIS", value, sizeof value));
	CHECK(process_variable(pid, "PATH", value, sizeof value));
	CHECK(process_launcher("PATH").pid != getpid());
	int copy = process_descriptor(pid, way[0]);
	if (copy >= 0) /* not every container allows it */
		close(copy);
	left_nothing_since(&before);
	close(way[1]);
	CHECK_IS(waitpid(pid, NULL, 0), pid);
}
