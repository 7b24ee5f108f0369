/* SPDX-License-Identifier: BSD-3-Clause */
/* A memory that a link cannot watch. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tern/tern.h>

#include "boot/link/link.h"
#include "job/job.h"
#include "lib/check.h"

static void check_refused(const struct job *job, int fd, int rc, const char *words)
{
	struct job other = *job;
	other.fd = fd;
	CHECK_IS(link_begin(&other, -1, false), rc);
	CHECK(strstr(tern_strerror(rc), words) != NULL);
}

TEST(whoever_begins_a_link_that_cannot_follow_is_told_why)
{
	struct job job;
	REQUIRE(job_create(&job, 1, 0) == 0);
	int fd = memfd_create("tern-test", MFD_CLOEXEC);
	REQUIRE(fd >= 0);
	check_refused(&job, fd, -EINVAL, "not a job's memory");
	close(fd);
	job.head->stamp++;
	check_refused(&job, job.fd, -EPROTO, "another build of Tern");
	job_unmap(&job);
	job_forget(&job);
}
