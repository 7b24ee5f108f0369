/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are not our children, found again by number and time of start. */
#include "base/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* What /proc says of a process, as far as it matters here. */
struct process {
	char state;
	pid_t parent;
	uint64_t born, used;
	int status;
};

/*
 * Words 14 and 15 are the time on a core, the 22nd is the start, the 52nd and last the status; the
 * second is the name, and may hold anything.
 */
static bool stat_read(const char *folder, pid_t pid, struct process *p)
{
	char text[1024];
	unsigned long long born, user, kernel;
	char path[64];
	snprintf(path, sizeof path, "/proc/%s%d/stat", folder, (int)pid);
	if (!file_text(path, text, sizeof text))
		return false;
	const char *behind = strrchr(text, ')'), *last = strrchr(text, ' ');
	if (!behind ||
	    sscanf(behind,
		   ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %*s %*s "
		   "%llu",
		   &p->state, &p->parent, &user, &kernel, &born) != 5)
		return false;
	p->born = born;
	p->used = user + kernel;
	return sscanf(last, "%d", &p->status) == 1;
}

uint64_t process_born(pid_t pid)
{
	struct process p;
	return stat_read("", pid, &p) ? p.born : 0;
}

pid_t process_parent(pid_t pid)
{
	struct process p;
	return stat_read("", pid, &p) ? p.parent : 0;
}

char process_state(pid_t pid, uint64_t *used)
{
	struct process p;
	if (!stat_read("", pid, &p))
		return 0;
	*used = p.used;
	return p.state;
}

char thread_state(pid_t thread)
{
	struct process p;
	return stat_read("self/task/", thread, &p) ? p.state : 0;
}

bool process_ended(const struct process_name *name)
{
	struct process p;
	if (stat_read("", name->pid, &p))
		return (name->born && p.born != name->born) || p.state == 'Z' || p.state == 'X';
	return kill(name->pid, 0) != 0 && errno == ESRCH;
}

int process_open(pid_t pid, uint64_t born)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	uint64_t now = process_born(pid);
	if (now == born)
		return fd;
	/* Otherwise /proc could not be read, for want of descriptors. */
	bool told = now || kill(pid, 0) != 0;
	close(fd);
	return told ? -ESRCH : -EMFILE; /* ended, or the number has another bearer by now */
}

int process_descriptor(pid_t pid, int theirs)
{
	int held = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd = held < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, held, theirs, 0);
	int rc = fd < 0 ? -errno : fd;
	if (held >= 0)
		close(held);
	return rc;
}

/* Linux 6.15 tells how a process ended to whoever holds it; spelled out for older headers. */
struct ending {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t status;
};
enum { ENDING_STATUS = 1 << 3 };
#define ENDING_GET _IOWR(0xff, 11, struct ending)

bool process_status(int fd, pid_t pid, uint64_t born, int *status)
{
	struct process p;
	struct ending e = { .mask = ENDING_STATUS };
	if (stat_read("", pid, &p) && p.born == born && p.state == 'Z') {
		*status = p.status; /* its parent has not asked yet */
		return true;
	}
	if (fd < 0 || ioctl(fd, ENDING_GET, &e) != 0 || !(e.mask & ENDING_STATUS))
		return false;
	*status = e.status;
	return true;
}

void process_signal(int fd, int signal)
{
	syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

bool process_variable(pid_t pid, const char *name, char *value, size_t len)
{
	char path[32], *entry = NULL;
	size_t room = 0, n = strlen(name);
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && !found && getdelim(&entry, &room, '\0', f) > 0)
		found = strncmp(entry, name, n) == 0 && entry[n] == '=';
	if (found)
		snprintf(value, len, "%s", entry + n + 1);
	if (f)
		fclose(f);
	free(entry);
	return found;
}

struct process_name process_launcher(const char *sign)
{
	char value[8];
	pid_t pid = getppid();
	while (pid > 1 && process_variable(pid, sign, value, sizeof value))
		pid = process_parent(pid);
	return (struct process_name){ .pid = pid > 0 && process_born(pid) ? pid : 0,
				      .born = process_born(pid) };
}
