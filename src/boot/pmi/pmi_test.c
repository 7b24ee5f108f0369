/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining through a process manager that the test plays: its errors, its silence, its end. */
#include "boot/pmi/pmi.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <tern/tern.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "boot/pmi/liveness.h"
#include "boot/pmi/mpi.h"
#include "lib/check.h"

enum { RANKS = 5, LEN = 3, SECONDS_6 = 6 };

static bool says(int rc, const char *words)
{
	bool good = strstr(tern_strerror(rc), words);
	if (!good)
		printf("    %s\n", tern_strerror(rc));
	return good;
}

/* -- A manager ---------------------------------------------------------------------------- */

static struct {
	int open, put, fence, get; /* what each of its calls returns */
	bool fence_waits;          /* for ever */
	bool lacks[RANKS];         /* cards */
	const char *value;         /* of every card, instead of its own */
	int puts, fences, gets;    /* how often each was called */
	char put_key[64], put_value[64];
} manager;

static int manager_answer(int rc, const char *call)
{
	return rc ? error_set(rc, "the manager's %s says %d", call, rc) : 0;
}

static int manager_open(uint32_t *rank, uint32_t *size)
{
	*rank = 2;
	*size = RANKS;
	return manager_answer(manager.open, "open");
}

static int manager_put(const char *key, const char *value)
{
	manager.puts++;
	snprintf(manager.put_key, sizeof manager.put_key, "%s", key);
	snprintf(manager.put_value, sizeof manager.put_value, "%s", value);
	return manager_answer(manager.put, "put");
}

static int manager_fence(void)
{
	manager.fences++;
	while (manager.fence_waits)
		pause();
	return manager_answer(manager.fence, "fence");
}

static int manager_get(uint32_t rank, const char *key, char *value, size_t len)
{
	char name[64];
	manager.gets++;
	snprintf(name, sizeof name, "tern-card-%u", rank);
	CHECK(strcmp(key, name) == 0);
	if (manager.lacks[rank])
		return error_set(-ENODATA, "no card");
	snprintf(value, len, "%02x0bff", rank);
	if (manager.value)
		snprintf(value, len, "%s", manager.value);
	return manager_answer(manager.get, "get");
}

static const struct pmi_ops manager_ops = { .name = "TEST-PMI",
					    .starters = "the test",
					    .sign = "TEST_PMI",
					    .count = "TEST_PMI_SIZE",
					    .number = "TEST_PMI_RANK",
					    .open = manager_open,
					    .put = manager_put,
					    .fence = manager_fence,
					    .get = manager_get };

static unsigned char all[RANKS][LEN];

static int gather(const struct pmi_ops *pmi)
{
	static const unsigned char mine[LEN] = { 0x01, 0xa0, 0x7f };
	memset(all, 0xee, sizeof all);
	return pmi_gather(pmi, 2, RANKS, "card", mine, LEN, all);
}

TEST(a_rank_learns_who_it_is_and_gets_the_card_of_each_rank_at_its_place)
{
	uint32_t rank = 99, size = 99;
	CHECK_IS(pmi_open(&manager_ops, &rank, &size), 0);
	CHECK_IS(rank, 2);
	CHECK_IS(size, RANKS);
	CHECK_IS(gather(&manager_ops), 0);
	CHECK(strcmp(manager.put_key, "tern-card-2") == 0);
	CHECK(strcmp(manager.put_value, "01a07f") == 0);
	for (unsigned r = 0; r < RANKS; r++)
		CHECK(all[r][0] == r && all[r][1] == 0x0b && all[r][2] == 0xff);
	CHECK(!pmi_waits());
}

TEST(an_error_of_the_manager_is_the_error_of_the_caller_and_ends_the_conversation)
{
	uint32_t rank = 99, size = 99;
	manager.open = -EPROTO;
	CHECK_IS(pmi_open(&manager_ops, &rank, &size), -EPROTO);
	CHECK(says(-EPROTO, "the manager's open says"));
	CHECK(rank == 99 && size == 99);
	manager.put = -EIO;
	CHECK_IS(gather(&manager_ops), -EIO);
	CHECK(says(-EIO, "the manager's put says"));
	CHECK_IS(manager.fences, 0);
	manager.put = 0;
	manager.fence = -ECONNRESET;
	CHECK_IS(gather(&manager_ops), -ECONNRESET);
	CHECK(says(-ECONNRESET, "the manager's fence says"));
	CHECK_IS(manager.gets, 0);
	manager.fence = 0;
	manager.get = -EIO;
	CHECK_IS(gather(&manager_ops), -EIO);
	CHECK(says(-EIO, "the manager's get says"));
	CHECK_IS(manager.gets, 1);
	CHECK_IS(all[0][0], 0xee);
	CHECK(!pmi_waits());
}

TEST(a_card_of_another_length_or_alphabet_is_refused_with_its_rank)
{
	static const char *const values[] = { "", "010b", "010bff0", "010bff00", "010bfg" };
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		manager.value = values[i];
		CHECK_IS(gather(&manager_ops), -EPROTO);
		CHECK(says(-EPROTO, "rank 0") && says(-EPROTO, "TEST-PMI"));
	}
}

TEST(every_rank_without_a_card_is_named)
{
	manager.lacks[1] = true;
	CHECK_IS(gather(&manager_ops), -EOWNERDEAD);
	CHECK(says(-EOWNERDEAD, "rank 1 ended before joining"));
	manager.lacks[4] = true;
	CHECK_IS(gather(&manager_ops), -EOWNERDEAD);
	CHECK(says(-EOWNERDEAD, "ranks 1, 4 ended before joining"));
}

/* -- Ranks that are late ------------------------------------------------------------------- */

static void check_late(bool parallel, const char *words)
{
	uint32_t rank, size;
	struct pmi_ops slow = manager_ops;
	slow.parallel = parallel;
	setenv("TERN_JOIN", "1", 1);
	manager.fence_waits = true;
	CHECK_IS(pmi_open(&slow, &rank, &size), 0);
	CHECK_IS(gather(&slow), -ETIMEDOUT);
	CHECK(says(-ETIMEDOUT, words) && says(-ETIMEDOUT, "within 1 s (TERN_JOIN)"));
	CHECK(pmi_waits());
}

TEST(one_rank_that_is_late_is_named_where_the_manager_can_be_asked)
{
	manager.lacks[3] = true;
	check_late(true, "rank 3 has not called tern_open()");
}

TEST(ranks_that_are_late_are_named_where_the_manager_can_be_asked)
{
	manager.lacks[0] = manager.lacks[3] = true;
	check_late(true, "ranks 0, 3 have not called tern_open()");
}

TEST(a_manager_that_does_not_know_who_is_late_is_no_other_error)
{
	manager.get = -EIO;
	check_late(true, "some rank has not called tern_open()");
}

TEST(a_manager_that_serves_one_thread_is_not_asked_who_is_late)
{
	manager.lacks[3] = true;
	check_late(false, "some rank has not called tern_open()");
	CHECK_IS(manager.gets, 0);
}

TEST(a_list_of_ranks_that_is_too_long_ends_with_dots_and_counts_on)
{
	struct rank_list list = { .count = 0 };
	for (uint32_t r = 0; r < 300; r++)
		rank_list_add(&list, 4000000000u + r);
	const char *text = rank_list_text(&list, " have");
	const char *dots = strstr(text, ", ...");
	CHECK_IS(list.count, 300);
	CHECK(strncmp(text, "ranks 4000000000, 4000000001, ", 30) == 0);
	CHECK(dots && strcmp(dots, ", ... have") == 0);
	CHECK_IS(list.len, strlen(list.text));
	CHECK(list.len < sizeof list.text);
}

/* -- Processes of ranks ---------------------------------------------------------------------- */

/* Starts this sentence again as a process that a launcher has given its variables. */
static void be_rank(const char *rank)
{
	char path[4096] = "";
	if (getenv("TEST_PMI_JOB"))
		return;
	setenv("TEST_PMI_JOB", "7", 1);
	setenv("TEST_PMI_STEP", "1", 1);
	setenv("TEST_PMI_RANK", rank, 1);
	REQUIRE(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
	execl(path, path, check_sentence, NULL);
	REQUIRE(!"executed");
}

/* Another process, as a rank of some job. Returns when it has its variables. */
static pid_t start(const char *job, const char *step, const char *rank)
{
	char byte;
	int pair[2];
	REQUIRE(pipe(pair) == 0);
	pid_t child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("TEST_PMI_JOB", job, 1);
		setenv("TEST_PMI_STEP", step, 1);
		setenv("TEST_PMI_RANK", rank, 1);
		dup2(pair[1], STDOUT_FILENO);
		execlp("sh", "sh", "-c", "echo; exec sleep 1000", NULL);
		_exit(1);
	}
	REQUIRE(read(pair[0], &byte, 1) == 1);
	close(pair[0]);
	close(pair[1]);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static const struct pmi_ops marked = { .mark = { "TEST_PMI_JOB", "TEST_PMI_STEP" },
				       .number = "TEST_PMI_RANK" };
static const char *here = "0,1,2";

static bool neighbours(char *list, size_t len)
{
	snprintf(list, len, "%s", here);
	return true;
}

static bool neighbours_unknown(char *list, size_t len)
{
	snprintf(list, len, "0");
	return false;
}

/* As if no process had appeared for a while. */
static int look(struct liveness *l)
{
	l->since -= SECONDS_6 * UINT64_C(1000000000);
	return liveness_check(l);
}

TEST(a_rank_of_this_node_that_has_no_process_for_four_looks_is_named)
{
	struct liveness l;
	be_rank("0");
	pid_t one = start("7", "1", "1"), two = start("7", "1", "2");
	pid_t other = start("8", "1", "1"), step = start("7", "2", "1");
	REQUIRE(liveness_open(&l, &marked, neighbours, 0, 4)); /* rank 3 is elsewhere */
	for (int i = 0; i < 10; i++)
		CHECK_IS(look(&l), 0);
	end(one); /* ranks 1 of other jobs are none of this one */
	for (int i = 0; i < 3; i++)
		CHECK_IS(look(&l), 0);
	CHECK_IS(look(&l), -EOWNERDEAD);
	CHECK(says(-EOWNERDEAD, "rank 1 ended before joining"));
	end(two);
	for (int i = 0; i < 4; i++)
		CHECK_IS(look(&l), -EOWNERDEAD);
	CHECK(says(-EOWNERDEAD, "ranks 1, 2 ended before joining"));
	liveness_close(&l);
	end(other);
	end(step);
}

TEST(nobody_is_named_while_processes_still_appear)
{
	struct liveness l;
	be_rank("0");
	REQUIRE(liveness_open(&l, &marked, neighbours, 0, 3));
	for (int i = 0; i < 300; i++) { /* ranks 1 and 2 have not been started */
		l.since = clock_ns();
		CHECK_IS(liveness_check(&l), 0);
	}
	pid_t one = start("7", "1", "1");
	CHECK_IS(look(&l), 0); /* it has come this moment */
	CHECK_IS(liveness_check(&l), 0);
	CHECK_IS(look(&l), -EOWNERDEAD);
	CHECK(says(-EOWNERDEAD, "rank 2 ended before joining"));
	liveness_close(&l);
	end(one);
}

TEST(where_processes_cannot_be_told_apart_nobody_is_named)
{
	struct liveness l;
	be_rank("0");
	struct pmi_ops unmarked = marked;
	CHECK(!liveness_open(&l, &marked, neighbours, 1, 3)); /* this one is rank 0 */
	liveness_close(&l);
	CHECK(!liveness_open(&l, &marked, NULL, 0, 3));
	liveness_close(&l);
	CHECK(!liveness_open(&l, &marked, neighbours_unknown, 0, 3));
	liveness_close(&l);
	CHECK(!liveness_open(&l, &marked, neighbours, 0, 2)); /* rank 2 is none of two */
	liveness_close(&l);
	here = "0,x";
	CHECK(!liveness_open(&l, &marked, neighbours, 0, 3));
	liveness_close(&l);
	here = "0";
	unmarked.mark[1] = "TEST_PMI_NOT_SET";
	CHECK(!liveness_open(&l, &unmarked, neighbours, 0, 3));
	liveness_close(&l);
	unmarked.mark[1] = NULL;
	CHECK(liveness_open(&l, &unmarked, neighbours, 0, 3));
	liveness_close(&l);
}

TEST(slurm_says_which_ranks_are_on_this_node_if_there_is_room_for_them)
{
	char list[8] = "before";
	unsetenv("SLURM_GTIDS");
	CHECK(!pmi_slurm_neighbours(list, sizeof list));
	setenv("SLURM_GTIDS", "0,1,2,34", 1);
	CHECK(!pmi_slurm_neighbours(list, sizeof list));
	CHECK(strcmp(list, "before") == 0);
	setenv("SLURM_GTIDS", "0,1,2,3", 1);
	CHECK(pmi_slurm_neighbours(list, sizeof list));
	CHECK(strcmp(list, "0,1,2,3") == 0);
}

/* -- The end of a job ------------------------------------------------------------------------ */

static struct {
	_Atomic int status; /* it may be written while nobody waits for it any more */
	bool blocked;       /* signals, all of them */
	pthread_t thread;
	bool hangs;
} abortion;

static int manager_abort(int status)
{
	sigset_t now;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	abortion.blocked = sigismember(&now, SIGUSR1) && sigismember(&now, SIGTERM);
	abortion.thread = pthread_self();
	abortion.status = status;
	while (abortion.hangs)
		pause();
	return 0;
}

static const struct pmi_ops aborting = { .abort = manager_abort };

TEST(a_job_is_ended_by_a_thread_that_takes_no_signal_of_the_program)
{
	sigset_t before, after;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	pmi_abort_prepare(&aborting);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	CHECK_IS(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
	CHECK_IS(abortion.status, 0); /* not yet */
	pmi_abort(41);
	CHECK_IS(abortion.status, 41); /* and not later */
	CHECK(abortion.blocked);
	CHECK(!pthread_equal(abortion.thread, pthread_self()));
}

TEST(a_manager_that_hangs_while_it_ends_the_job_is_not_waited_for)
{
	abortion.hangs = true;
	pmi_abort_prepare(&aborting);
	uint64_t before = clock_ns();
	pmi_abort(42);
	CHECK(clock_ns() - before >= UINT64_C(2000000000));
	CHECK_IS(abortion.status, 42);
}

TEST(a_manager_that_cannot_end_a_job_is_not_asked_to)
{
	pmi_abort(43); /* nobody has prepared it */
	pmi_abort_prepare(&manager_ops);
	pmi_abort(44);
	CHECK_IS(abortion.status, 0);
}

/* -- Beside MPI ------------------------------------------------------------------------------ */

static int mpi_begun, mpi_over, mpi_rc;

int MPI_Initialized(int *flag);
int MPI_Initialized(int *flag)
{
	*flag = mpi_begun;
	return mpi_rc;
}

int MPI_Finalized(int *flag);
int MPI_Finalized(int *flag)
{
	*flag = mpi_over;
	return 0;
}

TEST(an_mpi_in_this_program_says_whether_it_is_in_use)
{
	CHECK_IS(mpi_use(), MPI_USE_NOT_YET);
	CHECK(!mpi_speaks_pmi1());
	mpi_begun = 1;
	CHECK_IS(mpi_use(), MPI_USE_ACTIVE);
	CHECK(mpi_speaks_pmi1()); /* it is not Open MPI, which speaks PMIx */
	mpi_rc = 1;
	CHECK_IS(mpi_use(), MPI_USE_NOT_YET);
	mpi_rc = 0;
	mpi_over = 1;
	CHECK_IS(mpi_use(), MPI_USE_OVER);
	CHECK(!mpi_speaks_pmi1());
}
