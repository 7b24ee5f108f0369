/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ending a whole family of processes.
 *
 * A subreaper inherits every orphan among its descendants, so whatever a rank
 * has started - through a shell, in a session of its own, by forking twice -
 * hangs below this process by a chain of parents until it dies. /proc tells the
 * chain. A look at /proc is no snapshot, and a process may fork while it is
 * killed; its child then moves up to us when it dies, and the next look finds
 * it. So: kill what is seen, wait for a death, look again, until this process
 * has no children. Having no children is having no descendants.
 */
#include "tools/run/tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"

void tree_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* By its chain of parents, of which most processes have a few. */
static bool descends(pid_t pid, pid_t from)
{
	while (pid > 1 && (pid = process_parent(pid)) != from)
		;
	return pid == from;
}

unsigned tree_signal(int signal)
{
	pid_t self = getpid();
	unsigned sent = 0;
	DIR *proc = opendir("/proc");
	for (struct dirent *d; proc && (d = readdir(proc));) {
		pid_t pid = atoi(d->d_name);
		if (pid != self && descends(pid, self) && kill(pid, signal) == 0)
			sent++;
	}
	if (proc)
		closedir(proc);
	return sent;
}

static bool tree_gone(void)
{
	pid_t pid;
	do
		pid = waitpid(-1, NULL, WNOHANG);
	while (pid > 0);
	return pid < 0 && errno == ECHILD;
}

void tree_end(void)
{
	const struct timespec patience = { .tv_nsec = 100000000 };
	sigset_t death;
	sigemptyset(&death);
	sigaddset(&death, SIGCHLD);
	for (int futile = 0; !tree_gone() && futile < 10;) {
		futile = tree_signal(SIGKILL) ? 0 : futile + 1;
		sigtimedwait(&death, NULL, &patience);
	}
}
