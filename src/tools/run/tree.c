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

struct process {
	pid_t pid, parent;
	bool ours;
};

struct family {
	struct process *process;
	size_t count, room;
};

void tree_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool family_add(struct family *f, pid_t pid, pid_t parent)
{
	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 256;
		struct process *more = realloc(f->process, room * sizeof *more);
		if (!more)
			return false;
		f->process = more;
		f->room = room;
	}
	f->process[f->count++] = (struct process){ .pid = pid, .parent = parent };
	return true;
}

static void family_look(struct family *f)
{
	DIR *proc = opendir("/proc");
	if (!proc)
		return;
	for (struct dirent *d; (d = readdir(proc));) {
		pid_t pid = atoi(d->d_name), parent = pid > 0 ? process_parent(pid) : 0;
		if (parent && !family_add(f, pid, parent))
			break;
	}
	closedir(proc);
}

static int process_compare(const void *a, const void *b)
{
	const struct process *p = a, *q = b;
	return (p->pid > q->pid) - (p->pid < q->pid);
}

static bool family_has(const struct family *f, pid_t pid)
{
	struct process key = { .pid = pid };
	const struct process *p = bsearch(&key, f->process, f->count, sizeof key, process_compare);
	return p && p->ours;
}

/* Children mostly have higher numbers than their parents, so one round or two find everybody. */
static void family_mark(struct family *f, pid_t head)
{
	bool found;
	qsort(f->process, f->count, sizeof *f->process, process_compare);
	do {
		found = false;
		for (struct process *p = f->process; p < f->process + f->count; p++)
			if (!p->ours && (p->parent == head || family_has(f, p->parent)))
				found = p->ours = true;
	} while (found);
}

unsigned tree_signal(int signal)
{
	struct family f = { 0 };
	unsigned sent = 0;
	family_look(&f);
	if (f.count)
		family_mark(&f, getpid());
	for (size_t i = 0; i < f.count; i++)
		if (f.process[i].ours && kill(f.process[i].pid, signal) == 0)
			sent++;
	free(f.process);
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
