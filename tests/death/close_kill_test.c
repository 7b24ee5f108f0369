/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: LABELS slow TIMEOUT 600 */
/*
 * A rank that is killed inside tern_close(), at every point where the job's memory looks otherwise
 * than an instruction before. The test plays the launcher and steps through the call. The others
 * can open the next session whenever it happened, whether that rank was the first to leave or the
 * last.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "lib/ranks.h"
#include "net/udp/udp.h"

#if !defined(__x86_64__)
TEST(a_close_is_stepped_through)
{
	check_skip("single-stepping is written for x86-64");
}
#else

enum { RANKS = 3, VICTIM = 1, KILLS_MOST = 400 };

static bool victim_is_last;
struct board {
	_Atomic unsigned ready; /* ranks that wait until the victim has left */
	_Atomic bool go;        /* and may leave now */
	_Atomic unsigned good;  /* ranks that have opened the next session and were told of the
				   victim there */
};

static struct board *board;

#define STOP_HERE() __asm__ volatile("int3" : : : "memory")

static void victim_main(tern *t)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	(void)!tern_close(t);
	STOP_HERE();
	_exit(1);
}

static void rank_main(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == VICTIM)
		victim_main(t);
	board->ready++;
	while (!victim_is_last && !board->go)
		ranks_nap(100000);
	CHECK_IS(tern_close(t), 0);
	CHECK_IS(tern_open(&t, NULL), 0);
	int rc = tern_barrier(t);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	board->good++;
	while (board->good < RANKS - 1) /* else the other is told that this one has left */
		ranks_nap(100000);
	CHECK_IS(tern_close(t), 0);
}

/* What the victim's tern_close() changes for others: the head of the job, and the ranks. */
struct looks {
	struct job_head head;
	struct job_rank rank[RANKS];
};

static void looks_take(struct looks *l)
{
	memcpy((void *)&l->head, (void *)ranks_job.head, sizeof l->head);
	memcpy((void *)l->rank, (void *)ranks_job.rank, sizeof l->rank);
}

static bool victim_step(void)
{
	pid_t pid = ranks_pid[VICTIM];
	struct user_regs_struct regs;
	int status;
	REQUIRE(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0);
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
		WSTOPSIG(status) == SIGTRAP);
	REQUIRE(ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0);
	return *(const unsigned char *)(uintptr_t)regs.rip != 0xcc;
}

/* Steps on until the memory has changed so many times; false if the call is over before. */
static bool victim_goes(unsigned changes)
{
	struct looks before, now;
	looks_take(&before);
	while (changes) {
		if (!victim_step())
			return false;
		looks_take(&now);
		changes -= memcmp(&before, &now, sizeof now) != 0;
		before = now;
	}
	return true;
}

static void victim_wait(void)
{
	int status;
	REQUIRE(waitpid(ranks_pid[VICTIM], &status, 0) == ranks_pid[VICTIM]);
	if (!WIFSTOPPED(status))
		check_skip("this machine does not let a process trace its child");
	ptrace(PTRACE_SETOPTIONS, ranks_pid[VICTIM], NULL, (void *)(uintptr_t)PTRACE_O_EXITKILL);
	while ((victim_is_last ? job_left(&ranks_job) : board->ready) < RANKS - 1)
		ranks_nap(100000);
}

/* False if the victim's call was over before the memory had changed so many times. */
static bool kill_after(unsigned changes)
{
	int status;
	board->go = false;
	board->ready = board->good = 0;
	ranks_start(RANKS, 0, rank_main);
	victim_wait();
	bool within = victim_goes(changes);
	kill(ranks_pid[VICTIM], SIGKILL);
	REQUIRE(waitpid(ranks_pid[VICTIM], &status, 0) == ranks_pid[VICTIM]);
	job_rank_ended(&ranks_job, VICTIM, status);
	ranks_pid[VICTIM] = 0;
	board->go = true;
	if (!CHECK_IS(ranks_reap(RANKS - 1, 0), 0) || !CHECK_IS(board->good, RANKS - 1))
		printf("    killed after %u changes\n", changes);
	ranks_end();
	return within;
}

static void kill_everywhere(const char *net, bool last)
{
	unsigned n = 0;
	board = ranks_shared(sizeof *board);
	victim_is_last = last;
	setenv("TERN_NET", net, 1);
	setenv("TERN_DELIVERY", "poll", 1); /* one thread, which is stepped through */
	while (kill_after(n) && !check_failures)
		REQUIRE(++n < KILLS_MOST);
	printf("    killed at %u points\n", n);
	CHECK(n > (last ? 6u : 2u));
}

TEST(the_others_can_open_again_when_the_first_to_leave_was_killed_anywhere_in_its_close)
{
	kill_everywhere("shm", false);
}

TEST(the_others_can_open_again_when_the_last_to_leave_was_killed_anywhere_in_its_close)
{
	kill_everywhere("shm", true);
}

TEST(the_same_holds_where_the_ranks_talk_over_udp)
{
	char why[200];
	if (!udp_ops.usable(why, sizeof why))
		check_skip(why);
	kill_everywhere("udp", false);
	kill_everywhere("udp", true);
}
#endif
