/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern run` tells a rank by variables. */
#include "boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <tern/tern.h>

#include "job/job.h"
#include "lib/local.h"

static int find_with(const char *rank, const char *size, const char *fd, struct boot *b)
{
	setenv("TERN_RANK", rank, 1);
	setenv("TERN_SIZE", size, 1);
	setenv("TERN_JOB_FD", fd, 1);
	return boot_find(b, NULL, NULL);
}

static void check_out_of_range(const char *rank, const char *size, const char *fd, const char *said)
{
	struct boot b;
	int rc = find_with(rank, size, fd, &b);
	CHECK_IS(rc, -EINVAL);
	CHECK(sentence_has(rc, said));
}

TEST(what_tern_run_says_is_taken_and_what_it_cannot_say_is_refused_by_name)
{
	struct boot b;
	char text[16];
	int fd = dup(STDOUT_FILENO);
	snprintf(text, sizeof text, "%d", fd);
	CHECK_IS(find_with("4294967295", "4294967295", text, &b), 0);
	CHECK(b.rank == UINT32_MAX && b.size == UINT32_MAX && b.fd == fd && !b.gathered);
	CHECK_IS(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_IS(find_with("1", "2", "2147483647", &b), 0);
	CHECK(b.rank == 1 && b.size == 2 && b.fd == INT32_MAX);
	check_out_of_range("4294967296", "2", text, "TERN_RANK=4294967296 is out of range");
	check_out_of_range("1", "4294967296", text, "TERN_SIZE=4294967296 is out of range");
	check_out_of_range("1", "2", "2147483648", "TERN_JOB_FD=2147483648 is out of range");
	check_out_of_range("one", "2", text, "TERN_RANK");
	check_out_of_range("1", "two", text, "TERN_SIZE");
	check_out_of_range("1", "2", "three", "TERN_JOB_FD");
}

TEST(a_rank_that_a_job_does_not_have_is_refused)
{
	static const char *const numbers[][2] = { { "2", "2" }, { "0", "3" } };
	struct job job;
	char text[16];
	REQUIRE(job_create(&job, 2, 0) == 0);
	for (int i = 0; i < 2; i++) {
		tern *t = NULL;
		snprintf(text, sizeof text, "%d", dup(job.fd));
		setenv("TERN_RANK", numbers[i][0], 1);
		setenv("TERN_SIZE", numbers[i][1], 1);
		setenv("TERN_JOB_FD", text, 1);
		CHECK_IS(tern_open(&t, NULL), -EINVAL);
		CHECK(sentence_has(-EINVAL, "do not fit a job of 2 ranks") && !t);
	}
	job_unmap(&job);
	job_forget(&job);
}
