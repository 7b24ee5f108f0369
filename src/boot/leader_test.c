/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing the job's memory: who gets it, and who does not. This process is rank 0, the leader. */
#include "boot/leader.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <tern/tern.h>

#include "../../tests/check.h"
#include "base/cpu.h"
#include "base/process.h"

/* All on one machine. */
static const struct leader_plan *plan_of(uint32_t size)
{
	static const uint32_t machine[8];
	static struct leader_plan plan;
	plan = (struct leader_plan){ .size = size, .machine = machine, .machines = 1 };
	return &plan;
}

static struct leader_address address;
static int door;
static struct process_name leader; /* this process, unless a test says otherwise */

static int member_join(uint32_t rank, struct job *j)
{
	return leader_join(
		&(struct leader_name){ .rank = 0, .address = address, .process = leader }, rank, j);
}

static void member_start(void (*member)(uint32_t rank), uint32_t rank)
{
	if (!leader.pid)
		leader = (struct process_name){ .pid = getpid(), .born = process_born(getpid()) };
	fflush(NULL);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	member(rank);
	fflush(NULL);
	_exit(atomic_load(&check_failures) ? 1 : 0);
}

static unsigned members_failed(void)
{
	unsigned failed = 0;
	int status;
	while (waitpid(-1, &status, 0) > 0)
		failed += status != 0;
	return failed;
}

static void member_comes(uint32_t rank)
{
	struct job j;
	CHECK_IS(member_join(rank, &j), 0);
	CHECK_IS(j.size, 4);
	CHECK_IS(atomic_load(&j.rank[rank].pid), getpid());
	CHECK_IS(atomic_load(&j.rank[rank].born), process_born(getpid()));
	CHECK_IS(atomic_load(&j.rank[0].pid), getppid());
	atomic_store(&j.rank[rank].word, rank + 1); /* it is one memory */
}

TEST(every_rank_gets_the_memory_and_the_job_knows_its_process)
{
	struct job j;
	REQUIRE(leader_listen(&door, &address) == 0);
	for (uint32_t r = 1; r < 4; r++)
		member_start(member_comes, r);
	REQUIRE(leader_share(door, &address, 0, plan_of(4), &j) == 0);
	CHECK_IS(members_failed(), 0);
	for (uint32_t r = 1; r < 4; r++)
		CHECK_IS(atomic_load(&j.rank[r].word), r + 1);
}

/* -- Strangers -------------------------------------------------------------------------- */

static void member_is_refused(void)
{
	struct job j;
	int rc = member_join(1, &j);
	CHECK(rc == -ECONNRESET || rc == -EPIPE || rc == -EPERM);
}

static void stranger_then_member(void (*disguise)(void), uint32_t rank)
{
	fflush(NULL);
	pid_t stranger = fork();
	if (stranger == 0) {
		disguise();
		member_is_refused();
		fflush(NULL);
		_exit(atomic_load(&check_failures) ? 1 : 0);
	}
	int status;
	waitpid(stranger, &status, 0);
	CHECK_IS(status, 0);
	struct job j;
	CHECK_IS(member_join(rank, &j), 0);
}

static void with_another_key(void)
{
	address.key[3] ^= 1;
}

static void comes_behind_a_wrong_key(uint32_t rank)
{
	stranger_then_member(with_another_key, rank);
}

TEST(whoever_has_another_key_is_sent_away_and_the_rank_still_comes)
{
	struct job j;
	REQUIRE(leader_listen(&door, &address) == 0);
	member_start(comes_behind_a_wrong_key, 1);
	REQUIRE(leader_share(door, &address, 0, plan_of(2), &j) == 0);
	CHECK_IS(members_failed(), 0);
}

static void as_another_user(void)
{
	REQUIRE(setuid(65534) == 0);
}

static void comes_behind_another_user(uint32_t rank)
{
	stranger_then_member(as_another_user, rank);
}

TEST(another_user_is_sent_away_though_the_key_is_right)
{
	struct job j;
	if (geteuid() != 0) {
		printf("    skipped: only root can become another user\n");
		return;
	}
	REQUIRE(leader_listen(&door, &address) == 0);
	member_start(comes_behind_another_user, 1);
	REQUIRE(leader_share(door, &address, 0, plan_of(2), &j) == 0);
	CHECK_IS(members_failed(), 0);
}

static void member_meets_a_stranger(uint32_t rank)
{
	struct job j;
	CHECK_IS(member_join(rank, &j), -EPERM);
}

TEST(a_rank_does_not_tell_the_key_to_another_users_process)
{
	if (geteuid() != 0) {
		printf("    skipped: only root can become another user\n");
		return;
	}
	struct hello_like {
		char bytes[64];
	} got;
	REQUIRE(setresuid(65534, 65534, 0) == 0);
	REQUIRE(leader_listen(&door, &address) == 0);
	REQUIRE(setresuid(0, 0, 0) == 0);
	member_start(member_meets_a_stranger, 1);
	int fd = accept(door, NULL, NULL);
	REQUIRE(fd >= 0);
	CHECK_IS(recv(fd, &got, sizeof got, 0), 0);
	CHECK_IS(members_failed(), 0);
}

/* -- What goes wrong -------------------------------------------------------------------- */

static void member_hears_why(uint32_t rank)
{
	struct job j;
	int rc = member_join(rank, &j);
	CHECK_IS(rc, -ENOMEM);
	CHECK(strstr(tern_strerror(rc), "TERN_MEMORY"));
}

TEST(if_the_leader_cannot_make_the_memory_every_rank_hears_why)
{
	struct job j;
	setenv("TERN_MEMORY", "1K", 1);
	REQUIRE(leader_listen(&door, &address) == 0);
	for (uint32_t r = 1; r < 4; r++)
		member_start(member_hears_why, r);
	CHECK_IS(leader_share(door, &address, 0, plan_of(4), &j), -ENOMEM);
	CHECK_IS(members_failed(), 0);
}

static void member_finds_nobody(uint32_t rank)
{
	struct job j;
	int rc = member_join(rank, &j);
	CHECK(rc < 0);
	CHECK(strstr(tern_strerror(rc), "rank 1 cannot get the job's memory"));
}

TEST(a_leader_that_has_died_is_an_error_and_no_wait)
{
	REQUIRE(leader_listen(&door, &address) == 0);
	close(door);
	member_start(member_finds_nobody, 1);
	CHECK_IS(members_failed(), 0);
}

/* A process that has ended, and nobody has asked how. */
static struct process_name process_dead(void)
{
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0)
		_exit(0);
	struct process_name name = { .pid = pid, .born = process_born(pid) };
	siginfo_t how;
	REQUIRE(waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT) == 0);
	return name;
}

static void member_names_the_leader(uint32_t rank)
{
	struct job j;
	CHECK_IS(member_join(rank, &j), -EOWNERDEAD);
	CHECK(strstr(tern_strerror(-EOWNERDEAD), "rank 0 ended while the ranks joined"));
}

TEST(a_leader_whose_process_has_ended_is_named)
{
	REQUIRE(leader_listen(&door, &address) == 0);
	close(door);
	leader = process_dead();
	member_start(member_names_the_leader, 1);
	CHECK_IS(members_failed(), 0);
	leader.pid = 0;
}

TEST(a_member_whose_process_has_ended_is_named_and_not_waited_for)
{
	struct job j;
	struct leader_plan plan = *plan_of(3);
	struct process_name process[3] = { { .pid = getpid(), .born = process_born(getpid()) } };
	process[1] = process[0]; /* lives, and does not come */
	process[2] = process_dead();
	plan.process = process;
	REQUIRE(leader_listen(&door, &address) == 0);
	CHECK_IS(leader_share(door, &address, 0, &plan, &j), -EOWNERDEAD);
	CHECK(strstr(tern_strerror(-EOWNERDEAD), "rank 2 ended while the ranks joined"));
	CHECK_IS(members_failed(), 0);
}

TEST(a_member_that_lives_and_does_not_come_is_waited_for_as_long_as_asked)
{
	struct job j;
	struct leader_plan plan = *plan_of(2);
	struct process_name process[2] = { { .pid = getpid(), .born = process_born(getpid()) } };
	process[1] = process[0];
	plan.process = process;
	setenv("TERN_JOIN", "1", 1);
	REQUIRE(leader_listen(&door, &address) == 0);
	CHECK_IS(leader_share(door, &address, 0, &plan, &j), -ETIMEDOUT);
	CHECK(strstr(tern_strerror(-ETIMEDOUT), "rank 1 has not come") &&
	      strstr(tern_strerror(-ETIMEDOUT), "TERN_JOIN"));
	unsetenv("TERN_JOIN");
}

/* -- Cores ------------------------------------------------------------------------------ */

static void bind_to_the(unsigned which)
{
	cpu_set_t may, one;
	REQUIRE(sched_getaffinity(0, sizeof may, &may) == 0);
	unsigned core = 0;
	for (; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, &may) && which-- == 0)
			break;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
}

static void member_bound(uint32_t rank)
{
	struct job j;
	bind_to_the(rank);
	CHECK_IS(member_join(rank, &j), 0);
	CHECK_IS(j.head->cores, 2);
}

TEST(ranks_bound_to_a_core_each_have_as_many_cores_as_ranks)
{
	struct job j;
	if (cpu_count() < 2) {
		printf("    skipped: there is one core\n");
		return;
	}
	REQUIRE(leader_listen(&door, &address) == 0);
	member_start(member_bound, 1);
	bind_to_the(0);
	REQUIRE(leader_share(door, &address, 0, plan_of(2), &j) == 0);
	CHECK_IS(members_failed(), 0);
}
