/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe is what two ranks of a job are to each other: two children of one process,
 * of which the first has let the descendants of its parent in, as tern_register() does.
 */
#include "tools/common/single_copy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/setting.h"

static char secret = 't'; /* at the same address in the children */

__attribute__((noreturn)) static void owner_main(pid_t parent, int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	prctl(PR_SET_PTRACER, (unsigned long)parent, 0, 0, 0);
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

__attribute__((noreturn)) static void reader_main(pid_t owner)
{
	char got = 0;
	struct iovec here = { &got, 1 }, there = { &secret, 1 };
	if (process_vm_readv(owner, &here, 1, &there, 1, 0) != 1)
		_exit(errno);
	_exit(got == secret ? 0 : EIO);
}

/* 0, or the errno of the reader. */
static int reader_try(pid_t owner)
{
	int status;
	pid_t reader = fork();
	if (reader == 0)
		reader_main(owner);
	if (reader < 0)
		return errno;
	while (waitpid(reader, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ENOSYS; /* some filters kill */
}

static int probe(void)
{
	int ready[2], rc = EAGAIN;
	char byte;
	pid_t parent = getpid();
	if (pipe(ready))
		return errno;
	fflush(NULL);
	pid_t owner = fork();
	if (owner == 0)
		owner_main(parent, ready[1]);
	close(ready[1]);
	if (owner > 0 && read(ready[0], &byte, 1) == 1)
		rc = reader_try(owner);
	close(ready[0]);
	if (owner > 0) {
		kill(owner, SIGKILL);
		waitpid(owner, NULL, 0);
	}
	return rc;
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
