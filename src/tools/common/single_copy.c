/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe is what two ranks of a job are to each other: a process that has let some others in, as
 * tern_register() does, and one of these, which is not above it.
 */
#include "tools/common/single_copy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/setting.h"

static char secret = 't'; /* at the same address in both */

__attribute__((noreturn)) static void reader_main(pid_t owner)
{
	char got = 0;
	struct iovec here = { &got, 1 }, there = { &secret, 1 };
	if (process_vm_readv(owner, &here, 1, &there, 1, 0) != 1)
		_exit(errno);
	_exit(got == secret ? 0 : EIO);
}

/* 0, or the errno of the reader. */
static int probe(void)
{
	int status;
	pid_t owner = getpid();
	prctl(PR_SET_PTRACER, (unsigned long)owner, 0, 0, 0);
	fflush(NULL);
	pid_t reader = fork();
	if (reader == 0)
		reader_main(owner);
	if (reader < 0)
		return errno;
	while (waitpid(reader, &status, 0) < 0 && errno == EINTR)
		;
	prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : ENOSYS; /* some filters kill */
}

/* The number after `key` in a file of /proc, or `otherwise`. */
static int proc_number(const char *path, const char *key, int otherwise)
{
	char line[256];
	int value = otherwise;
	FILE *f = fopen(path, "re");
	if (!f)
		return otherwise;
	while (fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0 &&
		    sscanf(line + strlen(key), "%d", &value) == 1)
			break;
	fclose(f);
	return value;
}

static void explain(int error, char *why, size_t len)
{
	int scope = proc_number("/proc/sys/kernel/yama/ptrace_scope", "", 0);
	int filters = proc_number("/proc/self/status", "Seccomp:", 0);
	if (error == EPERM && scope > 1)
		snprintf(why, len,
			 "Yama refuses process_vm_readv (kernel.yama.ptrace_scope is %d): %s",
			 scope,
			 scope == 2 ? "`sysctl kernel.yama.ptrace_scope=1` allows it, and so does "
				      "CAP_SYS_PTRACE"
				    : "set it to 1 at the next boot; 3 cannot be lowered");
	else if (filters > 0 && (error == EPERM || error == ENOSYS))
		snprintf(why, len,
			 "a seccomp filter refuses process_vm_readv (%s), as those of containers "
			 "do: start the "
			 "container with --cap-add=SYS_PTRACE or a seccomp profile that allows it",
			 strerror(error));
	else if (error == ENOSYS)
		snprintf(why, len, "this kernel was built without CONFIG_CROSS_MEMORY_ATTACH");
	else
		snprintf(why, len,
			 "process_vm_readv fails here (%s): the ranks need the same user, "
			 "kernel.yama.ptrace_scope 0 or 1, or CAP_SYS_PTRACE",
			 strerror(error));
}

bool single_copy_usable(char *why, size_t len)
{
	uint64_t wanted;
	if (setting_number(SETTING_SINGLE_COPY, &wanted) == 0 && !wanted) {
		snprintf(why, len, "TERN_SINGLE_COPY is 0: unset it");
		return false;
	}
	int error = probe();
	if (error)
		explain(error, why, len);
	return error == 0;
}
