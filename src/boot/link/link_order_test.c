/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders that a link cannot follow. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

#include "boot/link/link.h"
#include "boot/link/program.h"
#include "job/job.h"
#include "lib/check.h"

/* What tern-link answers to an order of `len` bytes over this memory. */
static void check_order(const struct link_order *order, size_t len, int memory, int rc,
			const char *words)
{
	const int fd[] = { memory, -1, -1 };
	char path[PATH_MAX];
	int pair[2];
	struct wire w;
	struct frame f;
	struct link_answer a = { .rc = 0 };
	REQUIRE(program_find(path) == 0);
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK_IS(program_start(path, pair[1], fd), 0);
	close(pair[1]);
	wire_open(&w, pair[0], pair[0]);
	wire_send(&w, FRAME_WATCH, order, len);
	REQUIRE(wire_wait(&w, &f) && f.type == FRAME_OVER && f.len == sizeof a);
	memcpy(&a, f.data, sizeof a);
	wire_close(&w);
	CHECK_IS(a.rc, rc);
	CHECK(strstr(a.text, words) != NULL);
}

TEST(an_order_that_a_link_cannot_follow_is_refused_with_a_reason)
{
	struct link_order order = { .version = TERN_VERSION };
	struct job alone;
	REQUIRE(job_create(&alone, 1, 0) == 0);
	check_order(&order, sizeof order - 1, alone.fd, -EPROTO, "cut off");
	check_order(&order, sizeof order.version - 1, alone.fd, -EPROTO, "another version");
	int fd = memfd_create("tern-test", MFD_CLOEXEC);
	REQUIRE(fd >= 0);
	check_order(&order, sizeof order, fd, -EINVAL, "not a job's memory");
	close(fd);
	order.machines = 1; /* and no address */
	check_order(&order, sizeof order, alone.fd, -EPROTO, "told of 1 machines");
	order.machines = 2;
	check_order(&order, sizeof order, alone.fd, -EPROTO, "told of 2 machines");
	strcpy(order.version, "0.0");
	check_order(&order, sizeof order, alone.fd, -EPROTO, "another version");
	job_unmap(&alone);
	job_forget(&alone);
}

TEST(whoever_begins_a_link_that_cannot_follow_is_told_why)
{
	struct job job;
	REQUIRE(job_create(&job, 1, 0) == 0);
	struct job other = job;
	struct link_plan plan = { .job = &other, .listener = -1 };
	other.fd = memfd_create("tern-test", MFD_CLOEXEC);
	REQUIRE(other.fd >= 0);
	CHECK_IS(link_begin(&plan), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "not a job's memory") != NULL);
	close(other.fd);
	job_unmap(&job);
	job_forget(&job);
}
