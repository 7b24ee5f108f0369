/* SPDX-License-Identifier: BSD-3-Clause */
/* Closes and unmaps what a forked child has inherited and does not need. */
#include "boot/link/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { LARGE = 1 << 20 };

/* -- Descriptors -------------------------------------------------------------------------- */

static void close_from(unsigned first, unsigned last)
{
	struct rlimit most;
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0 ||
	    getrlimit(RLIMIT_NOFILE, &most) != 0)
		return;
	for (unsigned fd = first; fd <= last && fd < most.rlim_cur; fd++)
		close((int)fd);
}

/* The lowest number above `before` that is kept; -1 if there is none. */
static int kept_behind(const int *keep, unsigned n, int before)
{
	int next = -1;
	for (unsigned i = 0; i < n; i++)
		if (keep[i] > before && (next < 0 || keep[i] < next))
			next = keep[i];
	return next;
}

void daemon_close_files(int *keep, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (keep[i] >= 0 && keep[i] <= STDERR_FILENO)
			keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	int from = STDERR_FILENO, next;
	while ((next = kept_behind(keep, n, from)) >= 0) {
		close_from((unsigned)from + 1, (unsigned)next - 1);
		from = next;
	}
	close_from((unsigned)from + 1, ~0u);
}

/* -- Memory ------------------------------------------------------------------------------- */

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SANITIZED = 1 };
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

struct span {
	uintptr_t from, to;
};

static bool span_has(const struct span *s, const void *address)
{
	return (uintptr_t)address >= s->from && (uintptr_t)address < s->to;
}

/* A line of /proc/self/maps: private memory without a file behind it. */
static bool line_droppable(const char *line, struct span *s)
{
	unsigned long from, to, inode;
	char rights[8] = "", name[8] = "";
	if (sscanf(line, "%lx-%lx %7s %*s %*s %lu %7s", &from, &to, rights, &inode, name) < 4)
		return false;
	*s = (struct span){ .from = from, .to = to };
	return strcmp(rights, "rw-p") == 0 && !inode && to - from >= LARGE &&
	       (!*name || strncmp(name, "[heap", 5) == 0 || strncmp(name, "[anon", 5) == 0);
}

/* Our stack and our thread's variables (errno is one) may lie in a large span, too. */
static void line_drop(const char *line, const void *mine)
{
	struct span s;
	if (line_droppable(line, &s) && !span_has(&s, mine) && !span_has(&s, &s) &&
	    !span_has(&s, &errno))
		madvise((void *)s.from, s.to - s.from, MADV_DONTNEED);
}

void daemon_drop_memory(const void *mine)
{
	char text[4096];
	size_t len = 0;
	ssize_t n;
	int fd = SANITIZED ? -1 : open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while ((n = read(fd, text + len, sizeof text - 1 - len)) > 0) {
		char *line = text, *end;
		len += (size_t)n;
		text[len] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			line_drop(line, mine);
		}
		len -= (size_t)(line - text);
		memmove(text, line, len);
	}
	close(fd);
}

pid_t daemon_fork(int signal)
{
	return SANITIZED ? fork() : (pid_t)syscall(SYS_clone, signal, NULL, NULL, NULL, NULL);
}
