/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int file_refuse(int fd, int why)
{
	close(fd);
	errno = why;
	return -1;
}

/* Nothing is emptied before it is known to be ours. A pipe or a device is as good as a file. */
static int private_check(int fd)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return file_refuse(fd, errno);
	if (!S_ISREG(st.st_mode))
		return fd;
	if (st.st_uid != geteuid() || st.st_nlink != 1)
		return file_refuse(fd, EPERM);
	return fchmod(fd, 0600) || ftruncate(fd, 0) ? file_refuse(fd, errno) : fd;
}

int file_private(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
	return fd < 0 ? fd : private_check(fd);
}

int file_named(const char *path)
{
	const int how = O_WRONLY | O_CREAT | O_CLOEXEC;
	struct stat st;
	int fd = open(path, how | O_NOFOLLOW, 0666);
	if (fd >= 0 || errno != ELOOP || lstat(path, &st) != 0)
		return fd;
	if (st.st_uid == geteuid() || st.st_uid == 0) /* /dev/stdout is such a link */
		return open(path, how, 0666);
	errno = ELOOP;
	return -1;
}

FILE *file_named_empty(const char *path)
{
	struct stat st;
	int fd = file_named(path);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) != 0)
		fd = file_refuse(fd, errno);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

ssize_t file_append(int fd, const void *bytes, size_t len)
{
	sigset_t limit, pending, before;
	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	sigpending(&pending);
	bool waits = sigismember(&pending, SIGXFSZ) == 1; /* one of the program's own */
	pthread_sigmask(SIG_BLOCK, &limit, &before);
	ssize_t n = write(fd, bytes, len);
	int why = errno;
	if (n < 0 && why == EFBIG && !waits)
		sigtimedwait(&limit, NULL, &(struct timespec){ 0 });
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return n;
}
