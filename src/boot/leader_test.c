/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing the job's memory: who gets it, and who does not. This process is rank 0, the leader. */
#include "boot/leader.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <tern/tern.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/process.h"
#include "lib/check.h"

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

static void member_of_two_comes(uint32_t rank)
{
	struct job j;
	CHECK_IS(member_join(rank, &j), 0);
}

TEST(a_leader_whose_standard_input_is_closed_gives_a_member_its_number)
{
	struct job j;
	setenv("TERN_JOIN", "1", 1); /* not for ever */
	REQUIRE(leader_listen(&door, &address) == 0);
	close(STDIN_FILENO);
	member_start(member_of_two_comes, 1);
	CHECK_IS(leader_share(door, &address, 0, plan_of(2), &j), 0);
	CHECK_IS(members_failed(), 0);
	unsetenv("TERN_JOIN");
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

/* -- Who is no member ------------------------------------------------------------------ */

static void refused_as(uint32_t rank)
{
	struct job j;
	int rc = member_join(rank, &j);
	CHECK(rc == -ECONNRESET || rc == -EPIPE);
	CHECK(strstr(tern_strerror(rc), "cannot get the job's memory from rank 0"));
}

static void comes_behind_others(uint32_t rank)
{
	struct job j;
	refused_as(0);          /* the leader itself, */
	refused_as(2);          /* a rank of another machine, */
	refused_as(4);          /* one that there is not, */
	refused_as(UINT32_MAX); /* nor can be */
	CHECK_IS(member_join(rank, &j), 0);
	CHECK_IS(j.head->machines, 2);
	CHECK_IS(j.head->here, 3);
	CHECK(job_here(&j, 1) && !job_here(&j, 2) && job_here(&j, 3));
	CHECK_IS(j.head->id, 0x1234567890);
	CHECK_IS(j.head->key[5], 77);
}

static void comes_twice(uint32_t rank)
{
	struct job j;
	pid_t again = fork();
	if (again == 0) { /* one of the two is sent away, and the other gets the memory */
		int rc = member_join(rank, &j);
		_exit(rc == 0 ? 7 : 8);
	}
	int status, rc = member_join(rank, &j);
	waitpid(again, &status, 0);
	CHECK((rc == 0) == (WEXITSTATUS(status) == 8));
}

TEST(only_ranks_of_this_machine_get_the_memory_and_each_once)
{
	static const uint32_t machine[4] = { 0, 0, 1, 0 };
	struct leader_plan plan = { .size = 4, .machine = machine, .machines = 2 };
	struct job j;
	plan.id = 0x1234567890;
	plan.key[5] = 77;
	REQUIRE(leader_listen(&door, &address) == 0);
	member_start(comes_behind_others, 1);
	member_start(comes_twice, 3);
	REQUIRE(leader_share(door, &address, 0, &plan, &j) == 0);
	CHECK_IS(members_failed(), 0);
	CHECK_IS(atomic_load(&j.rank[2].pid), 0);
}

static int begin_fails(struct job *job, void *arg)
{
	CHECK_IS(job->size, 3);
	CHECK(arg == &door);
	return error_set(-ENETUNREACH, "the link has no network");
}

static void member_hears_of_the_link(uint32_t rank)
{
	struct job j;
	int rc = member_join(rank, &j);
	CHECK_IS(rc, -ENETUNREACH);
	CHECK(strstr(tern_strerror(rc), "the link has no network"));
}

TEST(if_the_link_cannot_begin_every_rank_hears_why_and_nothing_stays_open)
{
	struct job j;
	struct leader_plan plan = *plan_of(3);
	plan.begin = begin_fails;
	plan.arg = &door;
	REQUIRE(leader_listen(&door, &address) == 0);
	int next = dup(door);
	close(next);
	for (uint32_t r = 1; r < 3; r++)
		member_start(member_hears_of_the_link, r);
	CHECK_IS(leader_share(door, &address, 0, &plan, &j), -ENETUNREACH);
	CHECK_IS(members_failed(), 0);
	CHECK_IS(dup(door), next);
}

/* What a leader answers, in its bytes. */
struct answer {
	int32_t rc;
	char text[400];
};

static struct answer said;
static int expected_code;
static const char *expected_words;

static void member_is_answered(uint32_t rank)
{
	struct job j;
	int rc = member_join(rank, &j);
	CHECK_IS(rc, expected_code);
	CHECK(strstr(tern_strerror(rc), expected_words));
}

static void check_answered(size_t len, int code, const char *words)
{
	char hello[64];
	expected_code = code;
	expected_words = words;
	REQUIRE(leader_listen(&door, &address) == 0);
	member_start(member_is_answered, 1);
	int fd = accept(door, NULL, NULL);
	REQUIRE(fd >= 0 && recv(fd, hello, sizeof hello, 0) > 0);
	REQUIRE(send(fd, &said, len, 0) == (ssize_t)len);
	CHECK_IS(members_failed(), 0);
	close(fd);
	close(door);
}

TEST(an_answer_without_the_memory_is_refused)
{
	check_answered(sizeof said, -EPROTO, "without the job's memory");
	said.rc = 5; /* no code of an error */
	snprintf(said.text, sizeof said.text, "five");
	check_answered(sizeof said, -EPROTO, "without the job's memory");
	said.rc = -EIO;
	check_answered(sizeof said, -EIO, "five");
	memset(said.text, 'x', sizeof said.text); /* which does not end */
	check_answered(sizeof said, -EIO, "xxx");
	said.text[0] = '\0';
	check_answered(sizeof said, -EPROTO, "without the job's memory");
	check_answered(sizeof said - 1, -ECONNRESET, "cannot get the job's memory");
}

static void member_gets_no_memory(uint32_t rank)
{
	struct job j;
	int next = dup(door);
	close(next);
	CHECK(member_join(rank, &j) < 0);
	CHECK_IS(dup(door), next); /* what came instead is closed */
}

TEST(a_descriptor_that_is_no_memory_of_a_job_is_refused_and_closed)
{
	struct answer good = { .rc = 0 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} beside = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec text = { .iov_base = &good, .iov_len = sizeof good };
	struct msghdr m = { .msg_iov = &text,
			    .msg_iovlen = 1,
			    .msg_control = &beside,
			    .msg_controllen = sizeof beside.room };
	char hello[64];
	REQUIRE(leader_listen(&door, &address) == 0);
	beside.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&beside.head), &door, sizeof door);
	member_start(member_gets_no_memory, 1);
	int fd = accept(door, NULL, NULL);
	REQUIRE(fd >= 0 && recv(fd, hello, sizeof hello, 0) > 0);
	REQUIRE(sendmsg(fd, &m, 0) == (ssize_t)sizeof good);
	CHECK_IS(members_failed(), 0);
}

static void member_waits_in_vain(uint32_t rank)
{
	struct job j;
	CHECK_IS(member_join(rank, &j), -ETIMEDOUT);
	CHECK(strstr(tern_strerror(-ETIMEDOUT),
		     "rank 0 has given rank 1 no memory within 1 s (TERN_JOIN)"));
}

TEST(a_leader_that_does_not_answer_is_waited_for_as_long_as_asked)
{
	setenv("TERN_JOIN", "1", 1);
	REQUIRE(leader_listen(&door, &address) == 0);
	member_start(member_waits_in_vain, 1);
	CHECK_IS(members_failed(), 0);
	unsetenv("TERN_JOIN");
}

TEST(an_address_that_no_socket_has_is_refused)
{
	struct job j;
	address.name_len = LEADER_NAME + 1;
	CHECK_IS(member_join(1, &j), -EPROTO);
	address.name_len = LEADER_NAME;
	CHECK_IS(member_join(1, &j), -ECONNREFUSED);
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
