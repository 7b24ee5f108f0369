/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Tern's programs are, and how tern-link is executed. */
#include "boot/link/program.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define NAME "tern-link"

/* -- Where they are ---------------------------------------------------------------------------- */

/*
 * The folder of the file that this function is in, be it a library or a whole program. The loader
 * may know it by a name relative to a folder that is not the current one any more; the kernel
 * knows it by its path.
 */
static void own_folder(char folder[PATH_MAX])
{
	char line[PATH_MAX + 128];
	bool found = false;
	*folder = '\0';
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && !found && fgets(line, sizeof line, f)) {
		unsigned long from, to, here = (unsigned long)(uintptr_t)own_folder;
		char *path = strchr(line, '/');
		found = path && sscanf(line, "%lx-%lx", &from, &to) == 2 && here >= from &&
			here < to;
		if (found) {
			*strrchr(path, '/') = '\0';
			snprintf(folder, PATH_MAX, "%.*s", PATH_MAX - 1, path);
		}
	}
	if (f)
		fclose(f);
}

/* From bin, libexec/tern, lib, or one folder deeper, as in lib/x86_64-linux-gnu. */
static const char *const near[] = { "",        "/../libexec/tern", "/../libexec", "/../../libexec",
				    "/../bin", "/../../bin" };
static const char *const installed[] = { TERN_LIBEXEC "/tern", TERN_LIBEXEC };
enum { NEAR = sizeof near / sizeof *near };
_Static_assert(NEAR + sizeof installed / sizeof *installed == PROGRAM_FOLDERS, "all but PATH");

bool program_folder(int i, char folder[PATH_MAX])
{
	char own[PATH_MAX];
	const char *path = getenv("PATH");
	if (i < NEAR) {
		own_folder(own);
		return snprintf(folder, PATH_MAX, "%s%s", own, near[i]) < PATH_MAX;
	}
	if (i < PROGRAM_FOLDERS)
		return snprintf(folder, PATH_MAX, "%s", installed[i - NEAR]) < PATH_MAX;
	for (i -= PROGRAM_FOLDERS; path && i > 0 && (path = strchr(path, ':')) != NULL; i--)
		path++;
	return path && *path &&
	       snprintf(folder, PATH_MAX, "%.*s", (int)strcspn(path, ":"), path) < PATH_MAX;
}

bool program_locate(const char *name, char path[PATH_MAX])
{
	char folder[PATH_MAX];
	for (int i = 0; program_folder(i, folder); i++)
		if (*folder && snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
	return false;
}

int program_find(char path[PATH_MAX])
{
	char folder[PATH_MAX];
	const char *said = setting_text(SETTING_LINK);
	if (*said && snprintf(path, PATH_MAX, "%s", said) < PATH_MAX && access(path, X_OK) == 0)
		return 0;
	if (*said)
		return error_set(-ENOTSUP,
				 "TERN_LINK=%s is no program that can be executed; it names " NAME
				 ", which watches the ranks of a machine",
				 said);
	if (program_locate(NAME, path))
		return 0;
	own_folder(folder);
	return error_set(-ENOTSUP,
			 "the program " NAME
			 ", which watches the ranks of a machine, is neither in %s or "
			 "its ../libexec, nor in " TERN_LIBEXEC ", nor on PATH: install it, or set "
			 "TERN_LINK to its path",
			 folder);
}

/* -- How it is executed --------------------------------------------------------------------- */

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

enum { STACK = 64 << 10, FILES = PROGRAM_END - PROGRAM_MEMORY };

/* What the two processes on the way borrow of this one. Shared, so that a forked one can, too. */
struct start {
	const char *path;
	int control, fd[FILES];
	int error; /* errno of what failed on the way */
	_Alignas(64) char stack[2][STACK];
};

/*
 * As vfork() does: the child borrows our memory, and this thread waits until it has executed
 * something or ended. With a stack of its own the compiler needs to know nothing about that. A
 * sanitizer does not understand such a child, and gets one that is forked.
 */
static pid_t start_child(int (*child)(void *), struct start *s, int which, int signal)
{
	pid_t pid = SANITIZED ? fork()
			      : clone(child, s->stack[which] + STACK,
				      CLONE_VM | CLONE_VFORK | signal, s);
	if (SANITIZED && pid == 0)
		_exit(child(s));
	return pid;
}

static void close_from(unsigned first)
{
	struct rlimit most;
	if (syscall(SYS_close_range, first, ~0u, 0) == 0 || getrlimit(RLIMIT_NOFILE, &most) != 0)
		return;
	for (unsigned fd = first; fd < most.rlim_cur; fd++)
		close((int)fd);
}

/* First out of the way of the numbers that they are to have. */
static void files_arrange(struct start *s)
{
	int control = fcntl(s->control, F_DUPFD_CLOEXEC, PROGRAM_END);
	for (int i = 0; i < FILES; i++)
		if (s->fd[i] >= 0)
			s->fd[i] = fcntl(s->fd[i], F_DUPFD_CLOEXEC, PROGRAM_END);
	for (int i = 0; i < FILES; i++)
		if (s->fd[i] >= 0)
			dup2(s->fd[i], PROGRAM_MEMORY + i);
		else
			close(PROGRAM_MEMORY + i);
	dup2(control, STDIN_FILENO);
	dup2(control, STDOUT_FILENO);
	int null = open("/dev/null", O_RDWR);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	if (null >= PROGRAM_MEMORY) /* it may have one of the numbers that are not given */
		close(null);
	close_from(PROGRAM_END);
}

extern char **environ;

static int start_execute(void *arg)
{
	struct start *s = arg;
	char name[] = NAME;
	char *const words[] = { name, NULL };
	files_arrange(s);
	(void)!chdir("/");
	execve(s->path, words, environ);
	s->error = errno;
	return 1;
}

/* Its child is nobody's whom the program knows when this one has ended. */
static int start_apart(void *arg)
{
	struct start *s = arg;
	setsid();
	if (start_child(start_execute, s, 1, SIGCHLD) < 0)
		s->error = errno;
	return 0;
}

/*
 * The program may have handlers, which must not run in a process that borrows its memory, and
 * another thread of it may wait for any child, or it may ignore SIGCHLD: so all signals are
 * blocked, and the first child is one of which nothing but our own wait is told.
 */
int program_start(const char *path, int control, const int fd[FILES])
{
	sigset_t all, before;
	int state;
	struct start *s =
		mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return -errno;
	s->path = path;
	s->control = control;
	memcpy(s->fd, fd, sizeof s->fd);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = start_child(start_apart, s, 0, 0);
	if (pid < 0)
		s->error = errno;
	while (pid > 0 && waitpid(pid, &state, __WALL) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	int rc = -s->error;
	munmap(s, sizeof *s);
	return rc;
}
