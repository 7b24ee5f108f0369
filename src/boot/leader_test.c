/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing the job's memory: who gets it, and who does not. This process is rank 0, the leader. */
#include "boot/leader.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <tern/tern.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/process.h"
#include "lib/check.h"

static int door;
static uint32_t machine[8];
static struct card card[8];
static struct joiners all = { .card = card, .machine = machine };

static struct process_name process_of(pid_t pid)
{
	return (struct process_name){ .pid = pid, .born = process_born(pid) };
}

/* As many ranks, all on one machine. */
static void leader_begin(uint32_t size)
{
	memset(machine, 0, sizeof machine);
	all.size = size;
	all.machines = 1;
	card[0].process = process_of(getpid());
	REQUIRE(leader_listen(&door, card[0].door) == 0);
}

static int begins(struct job *job, void *arg)
{
	(void)job, (void)arg;
	return 0;
}

static int leader_shares(struct job *j)
{
	return leader_share(door, &all, begins, NULL, j);
}

static int member_join(uint32_t rank, struct job *j)
{
	all.rank = rank;
	return leader_join(&all, 0, j);
}

static void member_start(void (*member)(uint32_t rank), uint32_t rank)
{
	fflush(NULL);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid) {
		card[rank].process = process_of(pid);
		return;
	}
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
	leader_begin(4);
	for (uint32_t r = 1; r < 4; r++)
		member_start(member_comes, r);
	REQUIRE(leader_shares(&j) == 0);
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
	leader_begin(2);
	close(STDIN_FILENO);
	member_start(member_of_two_comes, 1);
	CHECK_IS(leader_shares(&j), 0);
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

static void as_another_process(void)
{
}

static void comes_behind_another_process(uint32_t rank)
{
	stranger_then_member(as_another_process, rank);
}

TEST(a_process_that_no_card_names_is_sent_away_and_the_rank_still_comes)
{
	struct job j;
	leader_begin(2);
	member_start(comes_behind_another_process, 1);
	REQUIRE(leader_shares(&j) == 0);
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

TEST(another_user_is_sent_away)
{
	struct job j;
	if (geteuid() != 0) {
		printf("    skipped: only root can become another user\n");
		return;
	}
	leader_begin(2);
	member_start(comes_behind_another_user, 1);
	REQUIRE(leader_shares(&j) == 0);
	CHECK_IS(members_failed(), 0);
}

static void member_meets_a_stranger(uint32_t rank)
{
	struct job j;
	CHECK_IS(member_join(rank, &j), -EPERM);
}

TEST(a_rank_takes_no_memory_from_another_users_process)
{
	if (geteuid() != 0) {
		printf("    skipped: only root can become another user\n");
		return;
	}
	struct hello_like {
		char bytes[64];
	} got;
	REQUIRE(setresuid(65534, 65534, 0) == 0);
	leader_begin(2);
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
	leader_begin(4);
	for (uint32_t r = 1; r < 4; r++)
		member_start(member_hears_why, r);
	CHECK_IS(leader_shares(&j), -ENOMEM);
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
	leader_begin(2);
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
	struct process_name name = process_of(pid);
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
	leader_begin(2);
	close(door);
	card[0].process = process_dead();
	member_start(member_names_the_leader, 1);
	CHECK_IS(members_failed(), 0);
}

TEST(a_member_whose_process_has_ended_is_named_and_not_waited_for)
{
	struct job j;
	leader_begin(3);
	card[1].process = card[0].process; /* lives, and does not come */
	card[2].process = process_dead();
	CHECK_IS(leader_shares(&j), -EOWNERDEAD);
	CHECK(strstr(tern_strerror(-EOWNERDEAD), "rank 2 ended while the ranks joined"));
	CHECK_IS(members_failed(), 0);
}

TEST(a_member_that_lives_and_does_not_come_is_waited_for_as_long_as_asked)
{
	struct job j;
	setenv("TERN_JOIN", "1", 1);
	leader_begin(2);
	card[1].process = card[0].process;
	CHECK_IS(leader_shares(&j), -ETIMEDOUT);
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
	CHECK(memcmp(j.rank[2].link, &card[2].link, sizeof card[2].link) == 0);
}

static void *comes_again(void *rc)
{
	struct job j;
	*(int *)rc = leader_join(&all, 0, &j);
	return NULL;
}

/* One of the two is sent away, and the other gets the memory. */
static void comes_twice(uint32_t rank)
{
	struct job j;
	pthread_t thread;
	int again = 0;
	all.rank = rank;
	REQUIRE(pthread_create(&thread, NULL, comes_again, &again) == 0);
	int rc = leader_join(&all, 0, &j);
	pthread_join(thread, NULL);
	CHECK((rc == 0) == (again != 0));
}

TEST(only_ranks_of_this_machine_get_the_memory_and_each_once)
{
	struct job j;
	leader_begin(4);
	machine[2] = 1;
	all.machines = 2;
	card[0].id = 0x1234567890;
	card[0].key[5] = 77;
	card[2].link.sin6_family = AF_INET6;
	member_start(comes_behind_others, 1);
	member_start(comes_twice, 3);
	REQUIRE(leader_shares(&j) == 0);
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
	leader_begin(3);
	int next = dup(door);
	close(next);
	for (uint32_t r = 1; r < 3; r++)
		member_start(member_hears_of_the_link, r);
	CHECK_IS(leader_share(door, &all, begin_fails, &door, &j), -ENETUNREACH);
	CHECK_IS(members_failed(), 0);
	CHECK_IS(dup(door), next);
}

static struct error_kept said;
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
	leader_begin(2);
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
	struct error_kept good = { .rc = 0 };
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
	leader_begin(2);
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
	leader_begin(2);
	member_start(member_waits_in_vain, 1);
	CHECK_IS(members_failed(), 0);
	unsetenv("TERN_JOIN");
}

TEST(an_address_that_no_socket_has_is_refused)
{
	struct job j;
	leader_begin(2);
	memset(card[0].door, 'x', CARD_DOOR);
	CHECK_IS(member_join(1, &j), -ENOENT);
	card[0].door[0] = '\0';
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
	leader_begin(2);
	member_start(member_bound, 1);
	bind_to_the(0);
	REQUIRE(leader_shares(&j) == 0);
	CHECK_IS(members_failed(), 0);
}
