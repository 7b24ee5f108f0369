/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Ranks that nobody watches but the link of their machine. The test plays a launcher that says
 * nothing: it takes in the dead, late, and tells the job of none.
 */
#include "boot/link/link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/process.h"
#include "boot/link/program.h"
#include "lib/chance.h"
#include "lib/ranks.h"

enum { ASK, TELL };

/* [0]: ranks may begin; [1]: how many have come; [2]: bits of who was killed; [3]: all were */
static _Atomic uint64_t *shared;
static _Atomic uint64_t answers, never;

static void answer(tern *t, const tern_msg *m)
{
	(void)!tern_reply(t, m, TELL);
}

static void take(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answers, 1);
}

/* As a rank does that has joined: the link is there. */
static tern *watching_open(void)
{
	while (!atomic_load(shared))
		ranks_nap(100000);
	tern *t = ranks_open();
	t->own->waiting.grace_ns = 1000000;
	CHECK_IS(tern_on(t, ASK, answer), 0);
	CHECK_IS(tern_on(t, TELL, take), 0);
	return t;
}

static void ranks_note(void)
{
	for (uint32_t r = 0; r < ranks_size; r++) {
		atomic_store(&ranks_job.rank[r].pid, ranks_pid[r]);
		atomic_store(&ranks_job.rank[r].born, process_born(ranks_pid[r]));
	}
}

static struct process_name launcher; /* none, unless a test says so */

static void ranks_start_watching(uint32_t n, void (*rank_main)(void))
{
	shared = ranks_shared(4096);
	ranks_start(n, 0, rank_main);
	ranks_note();
	ranks_job.head->launcher = launcher;
	REQUIRE(link_begin(&ranks_job, -1, false) == 0);
	atomic_store(shared, 1);
}

/* The link's process, another one than `before`. */
static pid_t link_pid(pid_t before)
{
	pid_t pid;
	while ((pid = atomic_load(&ranks_job.head->link)) == before)
		ranks_nap(1000000);
	return pid;
}

/* Not ended; whether somebody has asked how is another matter. */
static bool alive(pid_t pid)
{
	char path[32], text[256] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	const char *behind = strrchr(text, ')');
	return n && behind && behind[2] != 'Z';
}

static void check_ends(pid_t pid)
{
	for (int i = 0; i < 6000 && alive(pid); i++)
		ranks_nap(10000000);
	CHECK(!alive(pid));
}

/* Reaps without telling; how many ended by themselves and not well. */
static unsigned reap_in_silence(void)
{
	unsigned failed = 0;
	int status;
	while (waitpid(-1, &status, 0) > 0)
		failed += WIFEXITED(status) && WEXITSTATUS(status) != 0;
	return failed;
}

static bool says(int rc, const char *words)
{
	bool good = strstr(tern_strerror(rc), words) != NULL;
	if (!good)
		printf("    %d: %s\n", rc, tern_strerror(rc));
	return good;
}

static uint32_t victim;

static void one_dies(void)
{
	char name[32];
	tern *t = watching_open();
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == victim)
		raise(SIGKILL);
	snprintf(name, sizeof name, "rank %u is dead", victim);
	int rc = tern_wait(t, &never, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(says(rc, name));
	rc = tern_barrier(t);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(says(rc, name));
	atomic_fetch_add(&shared[1], 1);
	while (atomic_load(&shared[1]) < tern_size(t) - 1) /* until then, nobody closes */
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(whichever_rank_dies_the_others_waits_end_with_its_name)
{
	for (victim = 0; victim < 4; victim++) {
		ranks_start_watching(4, one_dies);
		CHECK_IS(reap_in_silence(), 0);
		ranks_end();
	}
}

/* -- Many at once ------------------------------------------------------------------------- */

enum { CROWD = 7 };

static void learn_of_every_death(void)
{
	tern *t = watching_open();
	atomic_fetch_add(&shared[1], 1);
	while (!atomic_load(&shared[3]))
		tern_poll(t);
	for (uint32_t r = 0; r < CROWD; r++)
		while (atomic_load(&shared[2]) >> r & 1 && tern_request(t, r, ASK) != -EOWNERDEAD)
			tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

/* Kills all but one, in any order, some at the same moment. */
static void kill_all_but(struct chance *c, uint32_t spared)
{
	uint32_t left = CROWD - 1;
	while (left) {
		uint32_t r = chance_below(c, CROWD);
		if (r == spared || atomic_load(&shared[2]) >> r & 1)
			continue;
		kill(ranks_pid[r], SIGKILL);
		atomic_fetch_or(&shared[2], UINT64_C(1) << r);
		left--;
		if (chance_one_in(c, 2))
			ranks_nap(chance_below(c, 2000000));
	}
	atomic_store(&shared[3], 1);
}

TEST(in_whatever_order_the_others_die_the_last_one_knows_of_each)
{
	struct chance c = { check_seed() };
	for (unsigned round = 0; round < (CHECK_SLOWER > 1 ? 5 : 25); round++) {
		ranks_start_watching(CROWD, learn_of_every_death);
		while (atomic_load(&shared[1]) < CROWD)
			ranks_nap(1000000);
		kill_all_but(&c, chance_below(&c, CROWD));
		CHECK_IS(reap_in_silence(), 0);
		ranks_end();
	}
}

/* -- Ends that are no deaths --------------------------------------------------------------- */

static void see_gone(tern *t, uint32_t rank)
{
	while (job_rank_state(&t->own->group->job, rank) != RANK_GONE)
		tern_poll(t);
	CHECK_IS(tern_request(t, rank, ASK), -ESHUTDOWN);
}

static void leave_one_by_one(void)
{
	tern *t = watching_open();
	uint32_t me = tern_rank(t), last = tern_size(t) - 1;
	CHECK_IS(tern_barrier(t), 0);
	if (me + 1 < last)
		see_gone(t, me + 1);
	if (me == last)
		for (int look = 0; look < 3; look++, ranks_nap(50000000))
			for (uint32_t r = 0; r < last; r++)
				see_gone(t, r);
	CHECK_IS(tern_close(t), 0);
}

TEST(whoever_closes_and_ends_is_gone_and_not_dead)
{
	ranks_start_watching(4, leave_one_by_one);
	CHECK_IS(reap_in_silence(), 0);
	ranks_end();
}

static void open_again_and_again(void)
{
	tern *t = watching_open();
	for (int session = 0; session < 5; session++) {
		uint32_t next = (tern_rank(t) + 1) % tern_size(t);
		CHECK_IS(tern_request(t, next, ASK), 0);
		CHECK_IS(tern_wait(t, &answers, 1), 0);
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(tern_close(t), 0);
		t = ranks_open();
		CHECK_IS(tern_on(t, ASK, answer), 0);
		CHECK_IS(tern_on(t, TELL, take), 0);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(sessions_follow_each_other_under_watch)
{
	ranks_start_watching(4, open_again_and_again);
	CHECK_IS(reap_in_silence(), 0);
	ranks_end();
}

/* -- The link itself ------------------------------------------------------------------------ */

static void wait_for_death_of_1(void)
{
	tern *t = watching_open();
	atomic_fetch_add(&shared[1], 1);
	int rc = tern_wait(t, &never, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(says(rc, "rank 1 is dead"));
	CHECK_IS(tern_close(t), 0);
}

static void ranks_all_open(void)
{
	while (atomic_load(&shared[1]) < ranks_size)
		ranks_nap(1000000);
}

TEST(a_link_that_is_killed_is_started_again_and_tells_of_deaths)
{
	ranks_start_watching(3, wait_for_death_of_1);
	ranks_all_open();
	pid_t link = 0;
	for (int i = 0; i < 3; i++) {
		link = link_pid(link);
		kill(link, SIGKILL);
	}
	kill(ranks_pid[1], SIGKILL);
	CHECK_IS(reap_in_silence(), 0);
	check_ends(link_pid(link));
	ranks_end();
}

TEST(whoever_dies_while_there_is_no_link_is_told_of_by_the_next)
{
	ranks_start_watching(3, wait_for_death_of_1);
	ranks_all_open();
	pid_t link = link_pid(0);
	kill(link, SIGSTOP); /* it sees nothing */
	kill(ranks_pid[1], SIGKILL);
	ranks_nap(50000000);
	kill(link, SIGKILL);
	CHECK_IS(reap_in_silence(), 0);
	check_ends(link_pid(link));
	ranks_end();
}

static void wait_until_ended(void)
{
	tern *t = watching_open();
	if (tern_rank(t) == 1)
		signal(SIGTERM, SIG_IGN);
	if (tern_rank(t) == 2)
		raise(SIGSTOP);
	atomic_fetch_add(&shared[1], 1);
	tern_forgive(t, 0);
	tern_forgive(t, 1);
	tern_forgive(t, 2);
	(void)!tern_wait(t, &never, 1);
	pause();
}

TEST(ranks_whose_launcher_was_killed_are_ended)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
		pause();
		_exit(0);
	}
	launcher = (struct process_name){ .pid = pid, .born = process_born(pid) };
	ranks_start_watching(3, wait_until_ended);
	while (atomic_load(&shared[1]) < 2)
		ranks_nap(1000000);
	pid_t link = link_pid(0);
	ranks_nap(200000000);
	CHECK(alive(ranks_pid[0]) && alive(ranks_pid[1]) && alive(ranks_pid[2]));
	kill(pid, SIGKILL);
	int status[3];
	for (int r = 0; r < 3; r++)
		CHECK_IS(waitpid(ranks_pid[r], &status[r], 0), ranks_pid[r]);
	CHECK(WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == SIGTERM);
	/* It would not hear the other one. */
	CHECK(WIFSIGNALED(status[1]) && WTERMSIG(status[1]) == SIGKILL);
	CHECK(WIFSIGNALED(status[2]) && WTERMSIG(status[2]) == SIGTERM); /* stopped */
	waitpid(pid, NULL, 0);
	check_ends(link);
	ranks_end();
	launcher = (struct process_name){ .pid = 0 };
}

/* Before there was a link, or between two of them. */
TEST(ranks_whose_launcher_ended_before_the_link_began_are_ended)
{
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	launcher = (struct process_name){ .pid = pid, .born = process_born(pid) };
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ranks_start_watching(3, wait_until_ended);
	int status;
	for (int r = 0; r < 3; r++) {
		CHECK_IS(waitpid(ranks_pid[r], &status, 0), ranks_pid[r]);
		CHECK(WIFSIGNALED(status));
	}
	ranks_end();
	launcher = (struct process_name){ .pid = 0 };
}

/* Rank 1 ends the job. Rank 0 waits, 2 polls, 3 computes, 4 computes and ignores SIGTERM. */
static void one_ends_the_job(void)
{
	tern *t = watching_open();
	if (tern_rank(t) == 4)
		signal(SIGTERM, SIG_IGN);
	CHECK_IS(tern_barrier(t), 0);
	/* Who is still in the barrier would hear of the end there. */
	if (tern_rank(t) > 2)
		atomic_fetch_add(&shared[1], 1);
	while (tern_rank(t) == 1 && atomic_load(&shared[1]) < 2)
		ranks_nap(1000000);
	if (tern_rank(t) == 1)
		tern_exit(t, 42);
	if (tern_rank(t) == 0)
		(void)!tern_barrier(t);
	while (tern_rank(t) == 2)
		tern_poll(t);
	while (tern_rank(t) > 2)
		pause();
	_exit(1);
}

TEST(ranks_end_with_the_status_of_the_job_or_are_ended_when_one_has_ended_it)
{
	int status[5];
	ranks_start_watching(5, one_ends_the_job);
	pid_t link = link_pid(0);
	for (int r = 0; r < 5; r++)
		CHECK_IS(waitpid(ranks_pid[r], &status[r], 0), ranks_pid[r]);
	for (int r = 0; r < 3; r++)
		CHECK(WIFEXITED(status[r]) && WEXITSTATUS(status[r]) == 42);
	CHECK(WIFSIGNALED(status[3]) && WTERMSIG(status[3]) == SIGTERM);
	CHECK(WIFSIGNALED(status[4]) && WTERMSIG(status[4]) == SIGKILL);
	check_ends(link);
	ranks_end();
}

static void open_and_close(void)
{
	tern *t = watching_open();
	CHECK_IS(tern_close(t), 0);
	while (atomic_load(&shared[1]) == 0)
		ranks_nap(1000000);
}

static volatile sig_atomic_t ends_heard;

static void end_heard(int signal)
{
	(void)signal;
	ends_heard++;
}

static bool any_blocked(void)
{
	sigset_t now;
	bool any = false;
	REQUIRE(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
	for (int s = 1; s < SIGRTMIN; s++)
		any |= sigismember(&now, s) == 1;
	return any;
}

/* Nor would a wait for any child, in another thread, take it. */
TEST(a_program_hears_of_no_child_when_its_link_begins)
{
	struct sigaction count = { .sa_handler = end_heard, .sa_flags = SA_RESTART }, before;
	shared = ranks_shared(4096);
	ranks_start(2, 0, open_and_close);
	ranks_note();
	REQUIRE(sigaction(SIGCHLD, &count, &before) == 0);
	REQUIRE(link_begin(&ranks_job, -1, false) == 0);
	CHECK(!any_blocked());
#ifndef CHECK_SANITIZED /* there it is a fork() like any other */
	CHECK(!ends_heard);
#endif
	sigaction(SIGCHLD, &before, NULL);
	atomic_store(shared, 1);
	atomic_store(&shared[1], 1);
	CHECK_IS(reap_in_silence(), 0);
	ranks_end();
}

/* Of the link: those that it opened itself apart, it has its memory and 0 to 2. */
static void check_descriptors(pid_t link)
{
	char path[64], to[256];
	for (int fd = 0; fd < 64; fd++) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)link, fd);
		ssize_t n = readlink(path, to, sizeof to - 1);
		to[n > 0 ? n : 0] = '\0';
		if (n <= 0 || strstr(to, "pidfd") || strncmp(to, "/proc/", 6) == 0)
			continue; /* the last ones for a moment, to tell a rank's process from
				     another */
		CHECK(fd > 2 ? strstr(to, "/memfd:") != NULL : strcmp(to, "/dev/null") == 0);
	}
}

/* Nobody unmounts a folder or ends a session that it is in. */
static void check_apart(pid_t link)
{
	char path[64], folder[256] = "";
	snprintf(path, sizeof path, "/proc/%d/cwd", (int)link);
	CHECK_IS(readlink(path, folder, sizeof folder - 1), 1);
	CHECK(strcmp(folder, "/") == 0);
	CHECK(getsid(link) != getsid(0));
}

/* Launchers wait for the ends of pipes, and programs for their children. */
TEST(a_link_keeps_no_descriptor_of_the_program_and_is_no_child_of_it)
{
	int ends[2];
	char byte;
	shared = ranks_shared(4096);
	ranks_start(2, 0, open_and_close);
	ranks_note();
	REQUIRE(pipe(ends) == 0);
	struct left before;
	left_before(&before);
	REQUIRE(link_begin(&ranks_job, -1, false) == 0);
	left_nothing_since(&before);
	atomic_store(shared, 1);
	link_pid(0);
	close(ends[1]);
	CHECK_IS(read(ends[0], &byte, 1), 0);
	check_descriptors(link_pid(0));
	check_apart(link_pid(0));
	atomic_store(&shared[1], 1);
	for (int r = 0; r < 2; r++)
		CHECK(waitpid(-1, NULL, 0) > 0);
	CHECK_IS(waitpid(-1, NULL, 0), -1);
	check_ends(atomic_load(&ranks_job.head->link));
	ranks_end();
}

/* In memory of its own, as the C library has it for threads, until it may end. */
static void *allocate_much(void *end)
{
	enum { PIECES = 256, PIECE = 64 << 10 };
	static char *piece[PIECES]; /* forked ranks have no such thread, and still lead there */
	for (int i = 0; i < PIECES; i++)
		memset(piece[i] = malloc(PIECE), 1, PIECE);
	atomic_fetch_add((_Atomic int *)end, 1);
	while (atomic_load((_Atomic int *)end) < 2)
		ranks_nap(1000000);
	for (int i = 0; i < PIECES; i++) {
		CHECK_IS(piece[i][PIECE - 1], 1);
		free(piece[i]);
	}
	return NULL;
}

TEST(a_program_with_threads_that_have_allocated_much_has_a_link)
{
	_Atomic int end = 0;
	pthread_t thread;
	REQUIRE(pthread_create(&thread, NULL, allocate_much, &end) == 0);
	while (!atomic_load(&end))
		ranks_nap(1000000);
	ranks_start_watching(3, wait_for_death_of_1);
	ranks_all_open();
	pid_t link = link_pid(0);
	kill(link, SIGKILL);
	link_pid(link);
	kill(ranks_pid[1], SIGKILL);
	CHECK_IS(reap_in_silence(), 0);
	ranks_end();
	atomic_fetch_add(&end, 1);
	pthread_join(thread, NULL);
}

/* No copy of the program goes on running: while there is one, whatever is written is copied. */
TEST(a_link_is_a_small_program_of_its_own)
{
	enum { BYTES = 64 << 20 };
	char *much = malloc(BYTES), path[64], line[256], exe[256] = "";
	unsigned long kib = BYTES >> 10;
	memset(much, 1, BYTES);
	ranks_start_watching(2, open_and_close);
	snprintf(path, sizeof path, "/proc/%d/status", (int)link_pid(0));
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		sscanf(line, "RssAnon: %lu kB", &kib);
	if (f)
		fclose(f);
#ifndef CHECK_SANITIZED /* sanitizers have much of their own */
	CHECK(kib < 2048);
#endif
	snprintf(path, sizeof path, "/proc/%d/exe", (int)link_pid(0));
	CHECK(readlink(path, exe, sizeof exe - 1) > 0);
	CHECK(strstr(exe, "/tern-link") != NULL);
	CHECK_IS(much[BYTES - 1], 1);
	atomic_store(&shared[1], 1);
	CHECK_IS(reap_in_silence(), 0);
	ranks_end();
	free(much);
}

/* -- Where there is none -------------------------------------------------------------------- */

static void check_no_link(const char *path, const char *words)
{
	setenv("TERN_LINK", path, 1);
	int rc = link_begin(&ranks_job, -1, true);
	CHECK(rc < 0);
	CHECK(says(rc, path) && says(rc, words));
	unsetenv("TERN_LINK");
}

TEST(a_program_that_is_not_there_or_is_no_link_is_said)
{
	char path[] = "/tmp/tern-no-link-XXXXXX";
	struct left before;
	shared = ranks_shared(4096);
	ranks_start(2, 0, open_and_close);
	ranks_note();
	left_before(&before);
	check_no_link("/nowhere/tern-link", "TERN_LINK=");
	check_no_link("/proc/self/cmdline", "TERN_LINK=");
	check_no_link("/bin/true", "it ended before it watched anybody");
	int fd = mkstemp(path);
	REQUIRE(fd >= 0 && write(fd, "no program", 10) == 10 && fchmod(fd, 0700) == 0);
	close(fd);
#ifdef CHECK_SANITIZED /* the child is forked, and nobody waits until it has executed something */
	check_no_link(path, "");
#else
	check_no_link(path, strerror(ENOEXEC));
#endif
	unlink(path);
	setenv("TERN_KEEPALIVE", "long", 1);
	CHECK_IS(link_begin(&ranks_job, -1, true), -EINVAL);
	CHECK(says(-EINVAL, "TERN_KEEPALIVE"));
	unsetenv("TERN_KEEPALIVE");
	left_nothing_since(&before);
	CHECK_IS(link_begin(&ranks_job, -1, true), 0);
	atomic_store(shared, 1);
	atomic_store(&shared[1], 1);
	CHECK_IS(reap_in_silence(), 0);
	ranks_end();
}
