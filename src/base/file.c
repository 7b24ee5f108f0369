/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
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
static int private_check(int fd, bool empty)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return file_refuse(fd, errno);
	if (!S_ISREG(st.st_mode))
		return fd;
	if (st.st_uid != geteuid() || st.st_nlink != 1)
		return file_refuse(fd, EPERM);
	if (fchmod(fd, 0600) || (empty && ftruncate(fd, 0)))
		return file_refuse(fd, errno);
	return fd;
}

int file_private(const char *path, int flags)
{
	const int how = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(path, how | (flags & ~O_TRUNC), 0600);
	return fd < 0 ? fd : private_check(fd, flags & O_TRUNC);
}

FILE *file_private_stream(const char *path)
{
	int fd = file_private(path, O_TRUNC);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

bool file_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, room - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

const char *file_why(int error)
{
	return error == ELOOP   ? "it is a symbolic link; remove it"
	       : error == EPERM ? "it belongs to another user, or has other names; remove it"
				: strerror(error);
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
