/* SPDX-License-Identifier: BSD-3-Clause */
/* A memory that a link cannot watch, and what links tell of one. */
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

enum { RANKS = 4, FAR = 2 }; /* ranks 0 and 1 are here */

/* How many records there are to be told; all of them are of ranks that are here. */
static unsigned records_told(struct job *job, uint64_t *told)
{
	struct rank_status b;
	unsigned n = 0;
	for (; rank_status_news(job, told, &b); n++)
		CHECK(b.rank < FAR);
	CHECK(!rank_status_news(job, told, NULL));
	return n;
}

TEST(each_rank_here_is_told_of_once_and_again_when_something_has_changed)
{
	static const uint32_t machine[RANKS] = { 0, 0, 1, 1 };
	uint64_t told[RANKS] = { 0 };
	struct rank_status lost;
	struct job job;
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	job_spread(&job, machine, 0, 2);
	CHECK_IS(records_told(&job, told), 2);
	CHECK_IS(records_told(&job, told), 0);
	card_publish(&job, 1, "a card", 6);
	CHECK(rank_status_news(&job, told, NULL));
	CHECK_IS(records_told(&job, told), 1);
	rank_status_lost(&lost, FAR);
	CHECK_IS(rank_status_take(&job, &lost), RANK_STATUS_NEWS);
	CHECK_IS(records_told(&job, told), 0);
	job_unmap(&job);
	job_forget(&job);
}
