/* SPDX-License-Identifier: BSD-3-Clause */
/* Which variables mean what, and the protocol of PMI-1 with a manager that the test plays. */
#include "boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <tern/tern.h>

#include "boot/join.h"
#include "boot/link/connection.h"
#include "job/job.h"
#include "lib/local.h"

static void environment_clear(void)
{
	static const char *const names[] = { "PMIX_RANK",
					     "PMI_FD",
					     "PMI_RANK",
					     "PMI_SIZE",
					     "OMPI_COMM_WORLD_SIZE",
					     "SLURM_STEP_NUM_TASKS",
					     "MPI_LOCALNRANKS",
					     "TERN_ALONE",
					     "TERN_JOB_FD" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
}

/* -- Refusals --------------------------------------------------------------------------- */

static void check_refused(const char *variable, const char *value, const char *fix)
{
	struct boot b;
	environment_clear();
	setenv(variable, value, 1);
	int rc = boot_find(&b, NULL, NULL);
	CHECK(rc < 0);
	CHECK(sentence_has(rc, variable) && sentence_has(rc, value) && sentence_has(rc, fix));
	CHECK(sentence_has(rc, "TERN_ALONE") && sentence_has(rc, "tern run"));
	setenv("TERN_ALONE", "1", 1);
	CHECK_IS(boot_find(&b, NULL, NULL), 0);
	CHECK_IS(b.size, 1);
}

TEST(several_ranks_without_a_manager_are_refused_with_the_variable_and_what_to_do)
{
	check_refused("OMPI_COMM_WORLD_SIZE", "4", "PMIX_RANK");
	check_refused("PMI_SIZE", "3", "PMI_FD");
	check_refused("MPI_LOCALNRANKS", "2", "mpiexec");
	check_refused("FLUX_JOB_SIZE", "2", "Flux");
	check_refused("SLURM_STEP_NUM_TASKS", "4", "srun --mpi=pmix");
}

TEST(a_manager_that_does_not_answer_is_refused_with_its_variable)
{
	check_refused("PMI_FD", "987", "PMI_RANK");
}

/* A manager that says what is needed before cards, and ranks that there cannot be. */
static void check_impossible(const char *rank, const char *size)
{
	static const char says[] =
		"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=finalize_ack\n";
	struct boot b;
	char number[16];
	int fd[2];
	environment_clear();
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	REQUIRE(write(fd[1], says, sizeof says - 1) == sizeof says - 1);
	snprintf(number, sizeof number, "%d", fd[0]);
	setenv("PMI_FD", number, 1);
	setenv("PMI_RANK", rank, 1);
	setenv("PMI_SIZE", size, 1);
	int rc = boot_find(&b, NULL, NULL);
	CHECK(rc < 0);
	CHECK(sentence_has(rc, rank) && sentence_has(rc, size));
}

TEST(a_rank_that_its_job_has_not_is_refused)
{
	check_impossible("2", "2");
}

TEST(a_job_without_ranks_is_refused)
{
	check_impossible("0", "0");
}

TEST(jobs_of_one_rank_need_no_manager)
{
	struct boot b;
	environment_clear();
	setenv("PMIX_RANK", "0", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
	setenv("SLURM_STEP_NUM_TASKS", "8", 1); /* the step that mpirun was started in */
	CHECK_IS(boot_find(&b, NULL, NULL), 0);
	CHECK_IS(b.size, 1);
	CHECK_IS(b.fd, -1);
	environment_clear();
	setenv("SLURM_STEP_NUM_TASKS", "1", 1);
	CHECK_IS(boot_find(&b, NULL, NULL), 0);
	CHECK_IS(b.size, 1);
}

/* -- A manager --------------------------------------------------------------------------- */

enum { RANKS = 3, CARDS = 64 };

static struct {
	char key[CARDS][64], value[CARDS][1024];
	unsigned count;
} table;

static void answer(int fd, const char *format, ...)
{
	char text[8192];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	for (int i = 0; i < len;
	     i++) /* in pieces, as a stream may deliver them; the rank may have left */
		send(fd, text + i, 1, MSG_NOSIGNAL);
}

static const char *value_of(const char *key)
{
	for (unsigned i = 0; i < table.count; i++)
		if (strcmp(table.key[i], key) == 0)
			return table.value[i];
	return NULL;
}

/* False: the rank has left. */
static bool manager_serve(int fd, unsigned *arrived)
{
	char line[4096], key[64], value[1024];
	size_t len = 0;
	do {
		if (read(fd, line + len, 1) != 1)
			return false;
	} while (line[len++] != '\n');
	line[len - 1] = '\0';
	if (strcmp(line, "cmd=init pmi_version=1 pmi_subversion=1") == 0)
		answer(fd, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
	else if (strcmp(line, "cmd=get_my_kvsname") == 0)
		answer(fd, "cmd=my_kvsname kvsname=kvs_7_0\n");
	else if (sscanf(line, "cmd=put kvsname=kvs_7_0 key=%63s value=%1023s", key, value) == 2) {
		strcpy(table.key[table.count], key);
		strcpy(table.value[table.count++], value);
		answer(fd, "cmd=put_result rc=0 msg=success\n");
	} else if (strcmp(line, "cmd=barrier_in") == 0)
		++*arrived;
	else if (sscanf(line, "cmd=get kvsname=kvs_7_0 key=%63s", key) == 1)
		answer(fd,
		       value_of(key) ? "cmd=get_result rc=0 msg=success value=%s\n"
				     : "cmd=get_result rc=-1 msg=%s\n",
		       value_of(key) ? value_of(key) : "key_not_found");
	else if (strcmp(line, "cmd=finalize") == 0)
		answer(fd, "cmd=finalize_ack\n");
	else
		answer(fd, "cmd=what rc=-1\n");
	return true;
}

static int rank_socket[RANKS];
static unsigned fence_of = RANKS; /* how many come to a fence */
static pid_t rank_pid[RANKS];
static int doomed =
	-1; /* killed when all have put their cards, before any of the others may get them */

static void manager_kill(void)
{
	if (doomed < 0)
		return;
	kill(rank_pid[doomed], SIGKILL);
	waitpid(rank_pid[doomed], NULL, 0);
	doomed = -1;
}

/* Serves everybody, in whatever order they speak, until all have left. */
static void manager_run(void)
{
	struct pollfd p[RANKS];
	unsigned arrived = 0, left = RANKS;
	for (int r = 0; r < RANKS; r++)
		p[r] = (struct pollfd){ .fd = rank_socket[r], .events = POLLIN };
	while (left) {
		poll(p, RANKS, -1);
		for (int r = 0; r < RANKS; r++)
			if (p[r].revents && !manager_serve(p[r].fd, &arrived)) {
				p[r].fd = -1;
				left--;
			}
		if (arrived < fence_of)
			continue;
		manager_kill();
		for (int r = 0; r < RANKS; r++)
			answer(p[r].fd, "cmd=barrier_out\n");
		arrived = 0;
	}
}

static void ranks_start(void (*rank_main)(uint32_t rank))
{
	environment_clear();
	fflush(NULL);
	for (uint32_t r = 0; r < RANKS; r++) {
		int pair[2];
		char text[16];
		REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		pid_t pid = fork();
		REQUIRE(pid >= 0);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (uint32_t before = 0; before < r; before++)
				close(rank_socket[before]);
			close(pair[0]);
			snprintf(text, sizeof text, "%d", pair[1]);
			setenv("PMI_FD", text, 1);
			snprintf(text, sizeof text, "%u", r);
			setenv("PMI_RANK", text, 1);
			setenv("PMI_SIZE", "3", 1);
			rank_main(r);
			fflush(NULL);
			_exit(atomic_load(&check_failures) ? 1 : 0);
		}
		close(pair[1]);
		rank_socket[r] = pair[0];
		rank_pid[r] = pid;
	}
}

static unsigned ranks_failed(void)
{
	unsigned failed = 0;
	int status;
	while (waitpid(-1, &status, 0) > 0)
		failed += status != 0;
	return failed;
}

static void rank_greets(uint32_t rank)
{
	tern *t;
	for (int session = 0; session < 3; session++) {
		int rc = tern_open(&t, NULL);
		if (rc)
			printf("    %s\n", tern_strerror(rc));
		REQUIRE(rc == 0);
		CHECK_IS(tern_rank(t), rank);
		CHECK_IS(tern_size(t), RANKS);
		CHECK_IS(tern_on(t, 0, note_request), 0);
		CHECK_IS(tern_request(t, (rank + 1) % RANKS, 0), 0);
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(requests.count, (unsigned)session + 1);
		CHECK_IS(tern_close(t), 0);
	}
}

TEST(ranks_of_a_pmi_1_manager_join_once_and_have_session_after_session)
{
	ranks_start(rank_greets);
	manager_run();
	CHECK_IS(ranks_failed(), 0);
}

static int complaints[2];

/* Rank 2 comes when the others have complained of it. */
static void rank_complains(uint32_t rank)
{
	struct boot b;
	char text[2000] = "";
	size_t len = 0;
	setenv("TERN_STUCK", "1", 1);
	if (rank != 2)
		REQUIRE(dup2(complaints[1], STDERR_FILENO) >= 0);
	while (rank == 2 &&
	       (!strstr(text, "rank 0 has waited") || !strstr(text, "rank 1 has waited")))
		len += (size_t)read(complaints[0], text + len, sizeof text - 1 - len);
	CHECK_IS(boot_find(&b, NULL, NULL), 0);
}

TEST(whoever_waits_long_for_the_others_to_join_says_so)
{
	REQUIRE(pipe(complaints) == 0);
	ranks_start(rank_complains);
	manager_run();
	CHECK_IS(ranks_failed(), 0);
}

/* -- Ranks that do not join ---------------------------------------------------------------- */

static char expected_words[64];

static void rank_names_it(uint32_t rank)
{
	tern *t;
	(void)rank;
	int rc = tern_open(&t, NULL);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(sentence_has(rc, expected_words));
	CHECK_IS(tern_open(&t, NULL), -EOWNERDEAD); /* and does not wait for it again */
}

TEST(a_rank_that_dies_while_joining_is_named_by_the_others)
{
	for (int victim = 0; victim < RANKS; victim++) {
		snprintf(expected_words, sizeof expected_words,
			 "rank %d ended while the ranks joined", victim);
		doomed = victim;
		table.count = 0;
		ranks_start(rank_names_it);
		manager_run();
		CHECK_IS(ranks_failed(), 0);
	}
}

/* It ended before it could put its card, and the manager goes on without it. */
static void rank_1_puts_nothing(uint32_t rank)
{
	if (rank == 1)
		_exit(0);
	rank_names_it(rank);
}

TEST(a_rank_without_a_card_is_named)
{
	snprintf(expected_words, sizeof expected_words, "rank 1 ended before joining");
	table.count = 0;
	fence_of = RANKS - 1;
	ranks_start(rank_1_puts_nothing);
	manager_run();
	CHECK_IS(ranks_failed(), 0);
	fence_of = RANKS;
}

static void rank_2_is_late(uint32_t rank)
{
	struct boot b;
	char byte;
	setenv("TERN_JOIN", "1", 1);
	if (rank == 2) { /* until the others have given up, and ended */
		close(complaints[1]);
		(void)!read(complaints[0], &byte, 1);
		return;
	}
	int rc = boot_find(&b, NULL, NULL);
	CHECK_IS(rc, -ETIMEDOUT);
	CHECK(sentence_has(rc, "some rank has not called tern_open()") &&
	      sentence_has(rc, "1 s (TERN_JOIN)"));
}

TEST(nobody_waits_for_longer_than_asked_for_ranks_that_do_not_join)
{
	REQUIRE(pipe(complaints) == 0);
	ranks_start(rank_2_is_late);
	close(complaints[1]);
	manager_run();
	CHECK_IS(ranks_failed(), 0);
}

static void rank_gives_up(uint32_t rank)
{
	struct boot b;
	(void)rank;
	setenv("TERN_JOIN", "1", 1);
	for (int i = 0; i < 2; i++) { /* and does not wait for it again */
		int rc = boot_find(&b, NULL, NULL);
		CHECK_IS(rc, -ETIMEDOUT);
		CHECK(sentence_has(rc, "PMI-1 of the launcher") &&
		      sentence_has(rc, "has not answered within 1 s (TERN_JOIN)"));
	}
}

TEST(nobody_waits_for_longer_than_asked_for_a_manager_that_does_not_answer)
{
	ranks_start(rank_gives_up);
	CHECK_IS(ranks_failed(), 0);
	for (int r = 0; r < RANKS; r++)
		close(rank_socket[r]);
}

static void rank_warns(uint32_t rank)
{
	struct boot b;
	setenv("TERN_STUCK", "1", 1);
	if (rank == 0)
		REQUIRE(dup2(complaints[1], STDERR_FILENO) >= 0);
	CHECK_IS(boot_find(&b, NULL, NULL), 0);
}

/* It answers when rank 0 has complained. */
TEST(whoever_waits_long_for_the_manager_says_so)
{
	char text[2000] = "";
	size_t len = 0;
	REQUIRE(pipe(complaints) == 0);
	table.count = 0;
	ranks_start(rank_warns);
	while (!strstr(text, "s for PMI-1 of the launcher") && len < sizeof text - 1)
		len += (size_t)read(complaints[0], text + len, sizeof text - 1 - len);
	CHECK(strstr(text, "does not answer"));
	manager_run();
	CHECK_IS(ranks_failed(), 0);
}

/* -- Machines ---------------------------------------------------------------------------- */

/* Where the kernel has no namespace for it, by what it says of itself. */
static void rank_1_is_elsewhere(uint32_t rank)
{
	struct boot b;
	struct job j;
	char why[200];
	if (rank == 1 && unshare(CLONE_NEWNET) != 0)
		setenv("TERN_MACHINE", "elsewhere", 1);
	int rc = boot_find(&b, NULL, NULL);
	if (!seal_usable(why, sizeof why)) {
		CHECK_IS(rc, -ENOTSUP);
		CHECK(sentence_has(rc, why));
		return;
	}
	REQUIRE(rc == 0);
	REQUIRE(job_map(&j, b.fd) == 0);
	CHECK_IS(j.head->machines, 2);
	CHECK_IS(j.head->here, rank == 1 ? 1 : RANKS - 1);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(job_here(&j, r), (r == 1) == (rank == 1));
}

TEST(ranks_that_cannot_share_memory_have_one_for_each_machine)
{
	ranks_start(rank_1_is_elsewhere);
	manager_run();
	CHECK_IS(ranks_failed(), 0);
}

static bool fabric_here(void)
{
	return true;
}

static bool fabric_nowhere(void)
{
	return false;
}

static void rank_finds_fabrics(enum job_fabric agreed, bool (*fabric)(void))
{
	struct boot b;
	struct job j;
	REQUIRE(boot_find(&b, NULL, fabric) == 0);
	REQUIRE(job_map(&j, b.fd) == 0);
	CHECK_IS(j.head->fabric, agreed);
}

static void rank_has_a_fabric(uint32_t rank)
{
	(void)rank;
	rank_finds_fabrics(FABRIC_ALL, fabric_here);
}

static void rank_2_lacks_a_fabric(uint32_t rank)
{
	rank_finds_fabrics(FABRIC_SOME, rank == 2 ? fabric_nowhere : fabric_here);
}

TEST(a_fabric_that_every_rank_has_is_agreed_on)
{
	ranks_start(rank_has_a_fabric);
	manager_run();
	CHECK_IS(ranks_failed(), 0);
}

TEST(a_fabric_that_a_rank_lacks_is_not_agreed_on)
{
	ranks_start(rank_2_lacks_a_fabric);
	manager_run();
	CHECK_IS(ranks_failed(), 0);
}

static _Atomic uint32_t *heard; /* so many have heard of the end of rank 1 */

/* It leaves the job, and its process goes on until the other machine knows. */
static void rank_1_leaves_elsewhere(uint32_t rank)
{
	struct boot b;
	struct job j;
	setenv("TERN_UDP_BIND", "127.0.0.1", 1);
	if (rank == 1)
		setenv("TERN_MACHINE", "elsewhere", 1);
	REQUIRE(boot_find(&b, NULL, NULL) == 0);
	REQUIRE(job_map(&j, b.fd) == 0);
	if (rank == 1) {
		job_rank_ended(&j, 1, 0);
		boot_left();
		CHECK_IS(j.head->asked, 1);
		while (!atomic_load(&j.head->carried) || atomic_load(heard) < RANKS - 1)
			usleep(1000);
		return;
	}
	while (job_rank_state(&j, 1) < RANK_GONE)
		usleep(1000);
	atomic_fetch_add(heard, 1);
}

TEST(who_has_left_is_known_on_other_machines_before_its_process_ends)
{
	char why[200];
	if (!seal_usable(why, sizeof why))
		check_skip(why);
	heard = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(heard != MAP_FAILED);
	ranks_start(rank_1_leaves_elsewhere);
	manager_run();
	CHECK_IS(ranks_failed(), 0);
}

/* -- A manager that speaks something else -------------------------------------------------- */

static void rank_is_refused(uint32_t rank)
{
	struct boot b;
	(void)rank;
	int rc = boot_find(&b, NULL, NULL);
	CHECK_IS(rc, -EPROTO);
	CHECK(sentence_has(rc, "PMI_FD"));
}

static void check_answer_refused(const char *bytes)
{
	ranks_start(rank_is_refused);
	for (int r = 0; r < RANKS; r++) {
		if (*bytes)
			answer(rank_socket[r], "%s", bytes);
		shutdown(rank_socket[r], SHUT_WR);
	}
	CHECK_IS(ranks_failed(), 0);
	for (int r = 0; r < RANKS; r++)
		close(rank_socket[r]);
}

TEST(whatever_else_a_manager_says_is_an_error_and_no_wait)
{
	static char long_line[5000];
	memset(long_line, 'x', sizeof long_line - 1);
	check_answer_refused("");
	check_answer_refused("cmd=response_to_init");
	check_answer_refused("cmd=response_to_init rc=1\n");
	check_answer_refused("\n");
	check_answer_refused("cmd=\n");
	check_answer_refused("cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=\n");
	check_answer_refused("cmd=response_to_init rc=0\ncmd=my_kvsname\n");
	check_answer_refused(
		"cmd=response_to_init rc=0\ncmd=my_kvsname kvsname=k\ncmd=put_result rc=0\n"
		"cmd=barrier_out\ncmd=get_result rc=0 value=zz\n");
	check_answer_refused(long_line);
}
