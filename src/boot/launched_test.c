/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern run` tells a rank by variables. */
#include "boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <tern/tern.h>

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
