/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks share a machine: what the kernel says of a process. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <tern/tern.h>

#include "boot/join.h"
#include "lib/check.h"

TEST(the_machine_of_a_process_is_that_of_its_children_and_not_of_another_namespace)
{
	struct machine_id *here =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct machine_id mine;
	CHECK_IS(machine_id_read(&mine), 0);
	CHECK(mine.host[0] && strlen(mine.id) > 36);
	if (fork() == 0) {
		machine_id_read(&here[0]);
		if (unshare(CLONE_NEWNET) == 0)
			machine_id_read(&here[1]);
		_exit(0);
	}
	wait(NULL);
	CHECK(machine_id_same(&mine, &here[0]));
	CHECK(!machine_id_same(&mine, &here[1]));
}

static bool files_fail;

/* In place of the C library's. */
int open(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	*(void **)&real = dlsym(RTLD_NEXT, "open");
	errno = ENOENT;
	return files_fail ? -1 : real(path, flags, 0600);
}

/* Machines without a number would all be one. */
TEST(where_proc_is_not_mounted_ranks_are_told_so)
{
	struct machine_id m;
	files_fail = true;
	CHECK_IS(machine_id_read(&m), -ENOTSUP);
	files_fail = false;
	CHECK(strstr(tern_strerror(-ENOTSUP), "mount /proc") != NULL);
}
