/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: LABELS slow TIMEOUT 300 */
/*
 * A rank that is killed while a ring grows, at every point where the memory of the pair looks
 * otherwise than an instruction before: the sender that makes it grow, or the receiver that goes on
 * in the larger ring. The receiver has handled the first messages that were sent, in order and
 * once, and whoever lives is told of the death and goes on with the third rank.
 */
#include <sys/ptrace.h>
#include <sys/user.h>

#include "lib/ranks.h"
#include "net/talk.h"

#if !defined(__x86_64__)
TEST(growth_is_stepped_through)
{
	check_skip("single-stepping is written for x86-64");
}
#else

enum { SENDER, RECEIVER, THIRD, RANKS };
enum { ASK, TELL, MESSAGES = 8, KILLS_MOST = 400 };

struct board {
	_Atomic uint64_t sent;  /* messages that the sender knows it has sent */
	_Atomic uint64_t taken; /* and the receiver has handled */
	_Atomic uint32_t ready; /* ranks that the victim is stepped through beside */
	_Atomic bool passed, killed;
	_Atomic uint32_t good; /* ranks that were told of the death, and went on */
};

static struct board *board;
static uint32_t victim;
static tern_flag answers;

#define STOP_HERE() __asm__ volatile("int3" : : : "memory")

static void on_ask(tern *t, const tern_msg *m)
{
	if (tern_rank(t) == RECEIVER && tern_msg_src(m) == SENDER)
		CHECK_IS(tern_msg_word(m, 0), atomic_fetch_add(&board->taken, 1));
	int rc = tern_reply(t, m, TELL, tern_msg_word(m, 0), 1, 2);
	CHECK(!rc || (rc == -EOWNERDEAD && tern_msg_src(m) == victim));
}

static void on_tell(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answers, 1);
}

static void send_all(tern *t)
{
	for (uint64_t i = 0; i < MESSAGES; i++) {
		CHECK_IS(tern_request(t, RECEIVER, ASK, i, 1, 2, 3), 0);
		atomic_fetch_add(&board->sent, 1);
	}
}

static void take_all(tern *t)
{
	while (board->taken < MESSAGES)
		(void)!tern_poll(t);
}

static void victim_main(tern *t)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	if (victim == SENDER)
		send_all(t);
	else
		take_all(t);
	STOP_HERE();
	_exit(1);
}

/* Ranks that live talk with each other until rings of theirs have grown. */
static void live_on(tern *t)
{
	uint32_t other = tern_rank(t) == THIRD ? (victim == SENDER ? RECEIVER : SENDER) : THIRD;
	for (uint64_t i = 0; i < 100; i++)
		CHECK_IS(tern_request(t, other, ASK, i), 0);
	CHECK_IS(tern_wait(t, &answers, 100), 0);
}

/* The sender has sent everything before the receiver takes any of it, so both know their part. */
static void rank_main(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_on(t, TELL, on_tell), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == RECEIVER)
		board->passed = true;
	while (!board->passed) /* the receiver's barrier would take what is sent */
		ranks_nap(100000);
	if (tern_rank(t) == SENDER && victim == RECEIVER)
		send_all(t);
	board->ready++;
	if (tern_rank(t) == victim)
		victim_main(t);
	while (!board->killed)
		ranks_nap(100000);
	tern_flag never = 0;
	CHECK_IS(tern_wait(t, &never, 1), -EOWNERDEAD); /* what the dead rank had sent is handled */
	CHECK_IS(tern_forgive(t, victim), 0);
	atomic_store(&answers, 0);
	live_on(t);
	if (tern_rank(t) == RECEIVER) /* the last one may have been sent and not counted */
		CHECK(board->taken == board->sent || board->taken == board->sent + 1);
	board->good++;
	while (board->good < RANKS - 1)
		(void)!tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

/* What the victim changes: the rings of the pair, and where they go on. */
struct looks {
	char small[2 * SMALL_TALK_BYTES];
	char large[MESSAGES * TERN_LINE];
};

/* The larger ring is a hole until it is committed, which a look must not fill. */
static void looks_take(struct looks *l)
{
	size_t small = job_pair_at(&ranks_job, SENDER, RECEIVER),
	       large = job_talk_at(&ranks_job, SENDER, RECEIVER);
	memset(l, 0, sizeof *l);
	memcpy(l->small, ranks_job.base + small, sizeof l->small);
	if (lseek(ranks_job.fd, (off_t)large, SEEK_DATA) == (off_t)large)
		memcpy(l->large, ranks_job.base + large, sizeof l->large);
}

static bool victim_step(void)
{
	pid_t pid = ranks_pid[victim];
	struct user_regs_struct regs;
	int status;
	REQUIRE(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0);
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
		WSTOPSIG(status) == SIGTRAP);
	REQUIRE(ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0);
	return *(const unsigned char *)(uintptr_t)regs.rip != 0xcc;
}

/* Steps on until the memory has changed so many times; false if the calls are over before. */
static bool victim_goes(unsigned changes)
{
	static struct looks before, now;
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
	REQUIRE(waitpid(ranks_pid[victim], &status, 0) == ranks_pid[victim]);
	if (!WIFSTOPPED(status))
		check_skip("this machine does not let a process trace its child");
	ptrace(PTRACE_SETOPTIONS, ranks_pid[victim], NULL, (void *)(uintptr_t)PTRACE_O_EXITKILL);
	while (board->ready < RANKS)
		ranks_nap(100000);
}

static bool kill_after(unsigned changes)
{
	int status;
	memset((void *)board, 0, sizeof *board);
	ranks_start(RANKS, 0, rank_main);
	victim_wait();
	bool within = victim_goes(changes);
	kill(ranks_pid[victim], SIGKILL);
	REQUIRE(waitpid(ranks_pid[victim], &status, 0) == ranks_pid[victim]);
	job_rank_ended(&ranks_job, victim, status);
	ranks_pid[victim] = 0;
	board->killed = true;
	if (!CHECK_IS(ranks_reap(RANKS - 1, 0), 0) || !CHECK_IS(board->good, RANKS - 1))
		printf("    killed after %u changes\n", changes);
	ranks_end();
	return within;
}

static void kill_everywhere(uint32_t who)
{
	unsigned n = 0;
	board = ranks_shared(sizeof *board);
	victim = who;
	setenv("TERN_GROW", "2", 1);        /* leaves of two messages: within MESSAGES */
	setenv("TERN_DELIVERY", "poll", 1); /* one thread, which is stepped through */
	while (kill_after(n) && !check_failures)
		REQUIRE(++n < KILLS_MOST);
	printf("    killed at %u points\n", n);
	CHECK(n > 8);
}

TEST(a_sender_that_is_killed_while_its_ring_grows_has_sent_what_it_had_and_no_more)
{
	kill_everywhere(SENDER);
}

TEST(a_receiver_that_is_killed_on_its_way_into_the_larger_ring_holds_up_nobody)
{
	kill_everywhere(RECEIVER);
}
#endif
