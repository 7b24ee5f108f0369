/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks share a machine: what the kernel says of a process. */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

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
