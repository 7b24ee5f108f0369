/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that end before a link begins, while it waits, and while it does not look. */
#include "boot/link/monitor.h"

#include <sys/prctl.h>

#include "lib/left.h"

enum { RANKS = 3 };

static struct job job;
static struct monitor monitor;
static struct watched watched[RANKS];
static pid_t pid[RANKS];

static void ranks_begin(void)
{
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		pid[r] = fork();
		REQUIRE(pid[r] >= 0);
		if (pid[r] == 0)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (pid[r] == 0)
			pause();
		atomic_store(&job.rank[r].pid, pid[r]);
		atomic_store(&job.rank[r].born, process_born(pid[r]));
	}
}

static void monitor_begin(void)
{
	monitor_open(&monitor, &job, watched);
}

static void rank_kill(uint32_t rank)
{
	siginfo_t how;
	kill(pid[rank], SIGKILL);
	REQUIRE(waitid(P_PID, (id_t)pid[rank], &how, WEXITED | WNOWAIT) == 0);
}

static void round_play(void)
{
	struct pollfd p[1 + RANKS];
	unsigned n = monitor_polls(&monitor, p);
	CHECK_IS(n, 1 + RANKS);
	poll(p, n, 0);
	monitor_serve(&monitor, p);
}

static void check_dead(uint32_t rank, uint32_t left)
{
	CHECK_IS(job_rank_state(&job, rank), RANK_DEAD);
	CHECK_IS(atomic_load(&job.rank[rank].status), SIGKILL);
	CHECK_IS(monitor.left, left);
}

TEST(each_rank_that_ends_is_told_of_once_and_no_descriptor_is_left)
{
	struct left before;
	ranks_begin();
	left_before(&before);
	rank_kill(0);
	monitor_begin();
	CHECK_IS(monitor.left, RANKS);
	CHECK(!monitor_must_retry(&monitor));
	round_play();
	check_dead(0, 2);
	round_play();
	check_dead(0, 2);
	CHECK_IS(job_rank_state(&job, 1), RANK_EXPECTED);
	rank_kill(1);
	round_play();
	check_dead(1, 1);
	rank_kill(2);
	round_play();
	check_dead(2, 0);
	CHECK(!monitor_must_retry(&monitor));
	left_nothing_since(&before);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(waitpid(pid[r], NULL, 0), pid[r]);
}

/* How it ended, nobody can say who was not there. */
TEST(a_rank_that_ended_before_there_was_a_link_is_dead_and_one_that_had_closed_is_gone)
{
	ranks_begin();
	CHECK(job_rank_opens(&job, 0) && job_rank_opens(&job, 1) && job_rank_opens(&job, 2));
	job_rank_leaves(&job, 1, RANK_CLOSED);
	for (uint32_t r = 0; r < 2; r++) {
		rank_kill(r);
		CHECK_IS(waitpid(pid[r], NULL, 0), pid[r]);
	}
	monitor_begin();
	round_play();
	CHECK_IS(monitor.left, 1);
	CHECK_IS(job_rank_state(&job, 0), RANK_DEAD);
	CHECK_IS(atomic_load(&job.rank[0].status), STATUS_UNKNOWN);
	CHECK_IS(job_rank_state(&job, 1), RANK_GONE);
	rank_kill(2);
	round_play();
	check_dead(2, 0);
	CHECK_IS(waitpid(pid[2], NULL, 0), pid[2]);
}
