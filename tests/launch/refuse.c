/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refuse ERRNO CALL ... -- PROGRAM: runs it where the kernel refuses these system calls; 77 if it
 * cannot be made to.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	int number;
} calls[] = {
	{ "epoll_create1", SYS_epoll_create1 },
	{ "epoll_ctl", SYS_epoll_ctl },
	{ "signalfd4", SYS_signalfd4 },
	{ "memfd_create", SYS_memfd_create },
	{ "ftruncate", SYS_ftruncate },
	{ "fallocate", SYS_fallocate },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "process_vm_writev", SYS_process_vm_writev },
	{ "membarrier", SYS_membarrier },
	{ "futex_waitv", 449 },
	{ "pidfd_open", 434 },
	{ "pidfd_getfd", 438 },
	{ "prctl", SYS_prctl },
	{ "sched_getaffinity", SYS_sched_getaffinity },
	{ "sched_setaffinity", SYS_sched_setaffinity },
	{ "mlock", SYS_mlock },
	{ "madvise", SYS_madvise },
};

enum { CALLS = sizeof calls / sizeof *calls, FILTER_MOST = 2 + 2 * CALLS };

static int number_of(const char *name)
{
	for (int i = 0; i < CALLS; i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].number;
	fprintf(stderr, "refuse: no call is named %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	struct sock_filter filter[FILTER_MOST] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							    offsetof(struct seccomp_data, nr)) };
	unsigned short n = 1;
	int i = 2;
	for (; i < argc && strcmp(argv[i], "--") != 0 && n < FILTER_MOST - 2; i++) {
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (unsigned)number_of(argv[i]), 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[1]));
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { n, filter };
	if (i + 1 >= argc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 77;
	execvp(argv[i + 1], argv + i + 1);
	return 2;
}
