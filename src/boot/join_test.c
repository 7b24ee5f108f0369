/* SPDX-License-Identifier: BSD-3-Clause */
/* When a process manager is closed, beside an MPI that may use it too. This program plays both. */
#include "boot/join.h"

#include <errno.h>
#include <sys/mman.h>

#include <tern/tern.h>

#include "base/error.h"
#include "lib/check.h"

static struct manager {
	uint32_t rank, size; /* that it says */
	int rc;
	unsigned opened, closed, aborted;
	bool open_already;
} * manager; /* seen by children, too */

static int mpi_begun, mpi_over;

int MPI_Initialized(int *flag);
int MPI_Initialized(int *flag)
{
	*flag = mpi_begun;
	return 0;
}

int MPI_Finalized(int *flag);
int MPI_Finalized(int *flag)
{
	*flag = mpi_over;
	return 0;
}

static int manager_open(uint32_t *rank, uint32_t *size)
{
	manager->opened++;
	*rank = manager->rank;
	*size = manager->size;
	return manager->rc ? error_set(manager->rc, "the manager is busy") : 0;
}

static void manager_close(void)
{
	manager->closed++;
}

static int manager_abort(int status)
{
	manager->aborted = (unsigned)status;
	return 0;
}

static bool manager_open_already(void)
{
	return manager->open_already;
}

static const struct pmi_ops plain = { .name = "TEST-PMI",
				      .starters = "the test",
				      .sign = "TEST_PMI",
				      .count = "TEST_PMI_SIZE",
				      .number = "TEST_PMI_RANK",
				      .open = manager_open,
				      .close = manager_close };
static const struct pmi_ops counting = { .name = "TEST-PMI",
					 .starters = "the test",
					 .sign = "TEST_PMI",
					 .count = "TEST_PMI_SIZE",
					 .number = "TEST_PMI_RANK",
					 .counts = true,
					 .open = manager_open,
					 .close = manager_close,
					 .abort = manager_abort,
					 .open_already = manager_open_already };

static void begin(void)
{
	manager = mmap(NULL, sizeof *manager, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	REQUIRE(manager != MAP_FAILED);
	manager->size = 1;
}

static int join(const struct pmi_ops *pmi)
{
	struct boot b = { .rank = 99 };
	int rc = join_through(pmi, &b, NULL);
	if (!rc)
		CHECK(b.rank == 0 && b.size == 1 && b.fd == -1);
	return rc;
}

/* Runs it in a process that returns from main(), and waits for that. */
static void in_a_child(void (*what)(void))
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		what();
		exit(atomic_load(&check_failures) ? 1 : 0);
	}
	REQUIRE(waitpid(child, &status, 0) == child);
	CHECK_IS(status, 0);
}

/* -- A manager that counts who has it open --------------------------------------------------- */

TEST(a_manager_that_counts_is_closed_with_the_endpoint_and_once)
{
	begin();
	mpi_begun = 1;
	CHECK_IS(join(&counting), 0);
	CHECK_IS(join(&counting), 0); /* a later session finds what the first one found */
	CHECK_IS(manager->opened, 1);
	CHECK_IS(manager->closed, 0);
	boot_left();
	CHECK_IS(manager->closed, 1);
	boot_left();
	CHECK_IS(manager->closed, 1);
}

TEST(a_manager_that_somebody_else_has_open_is_given_back_at_once)
{
	begin();
	mpi_begun = 1;
	manager->open_already = true;
	CHECK_IS(join(&counting), 0);
	CHECK_IS(manager->closed, 1);
	boot_left();
	CHECK_IS(manager->closed, 1);
}

static void join_counting(void)
{
	CHECK_IS(join(&counting), 0);
	boot_left();
	CHECK_IS(manager->closed, 0); /* MPI may still want it */
}

TEST(a_manager_is_kept_for_an_mpi_that_has_not_begun_until_the_process_returns)
{
	begin();
	in_a_child(join_counting);
	CHECK_IS(manager->closed, 1);
}

static void leave_in_a_fork(void)
{
	boot_left();
	boot_abort(5);
}

TEST(a_process_that_was_forked_closes_and_ends_nothing)
{
	begin();
	mpi_begun = 1;
	CHECK_IS(join(&counting), 0);
	in_a_child(leave_in_a_fork);
	CHECK_IS(manager->closed, 0);
	CHECK_IS(manager->aborted, 0);
	boot_abort(6);
	CHECK_IS(manager->aborted, 6);
	boot_left();
	CHECK_IS(manager->closed, 1);
	manager->aborted = 0;
	boot_abort(7); /* it is not open any more */
	CHECK_IS(manager->aborted, 0);
}

/* -- One that can be closed once ------------------------------------------------------------- */

static void join_plain(void)
{
	CHECK_IS(join(&plain), 0);
	CHECK_IS(manager->closed, 0);
	boot_left();
	CHECK_IS(manager->closed, 0);
}

TEST(a_manager_that_mpi_uses_is_left_to_it)
{
	begin();
	mpi_begun = 1;
	in_a_child(join_plain);
	CHECK_IS(manager->closed, 0);
}

TEST(a_manager_that_no_mpi_has_come_for_is_closed_when_the_process_returns)
{
	begin();
	in_a_child(join_plain);
	CHECK_IS(manager->closed, 1);
}

/* -- What cannot be joined ------------------------------------------------------------------- */

TEST(whoever_comes_after_mpi_has_finalized_is_told_so)
{
	begin();
	mpi_begun = mpi_over = 1;
	int rc = join(&counting);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(strstr(tern_strerror(rc), "MPI_Finalize()"));
	CHECK_IS(manager->opened, 0);
}

TEST(an_error_is_found_again_and_the_manager_not_asked_again)
{
	begin();
	manager->rc = -EBUSY;
	for (int i = 0; i < 2; i++) {
		error_set(-EIO, "something else");
		CHECK_IS(join(&counting), -EBUSY);
		CHECK(strstr(tern_strerror(-EBUSY), "the manager is busy"));
	}
	CHECK_IS(manager->opened, 1);
	CHECK_IS(manager->closed, 0);
	manager->rc = 0;
	CHECK_IS(join(&plain), 0); /* through another one it can */
	CHECK_IS(manager->opened, 2);
}

TEST(ranks_that_there_cannot_be_are_refused_and_the_manager_is_closed)
{
	begin();
	mpi_begun = 1;
	manager->rank = 1;
	CHECK_IS(join(&counting), -EPROTO);
	CHECK(strstr(tern_strerror(-EPROTO), "TEST-PMI says that this is rank 1 of 1"));
	boot_left();
	CHECK_IS(manager->closed, 1);
	manager->rank = 0;
	manager->size = TERN_RANKS_MAX + 1;
	CHECK_IS(join(&plain), -ERANGE);
}
