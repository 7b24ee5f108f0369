/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfork: the child borrows our memory until it has become the program, which costs
 * a fraction of a fork and starts a rank in well under a millisecond. Between the
 * two it makes system calls only. A pipe that closes on exec tells how that went.
 */
#include "tools/run/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

enum { FILES_OURS = 32 };
static int files_raise(struct rlimit *found, uint32_t ranks)
{
	rlim_t need = 2 * (rlim_t)ranks + FILES_OURS;
	if (getrlimit(RLIMIT_NOFILE, found) != 0 || found->rlim_cur >= need)
		return 0;
	if (found->rlim_max < need)
		return error_set(
			-EMFILE,
			"%u ranks take %llu file descriptors, two for the output of each, and the "
			"limit is %llu; "
			"raise it (ulimit -Hn, or the container's nofile) or start fewer ranks",
			ranks, (unsigned long long)need, (unsigned long long)found->rlim_max);
	struct rlimit most = { .rlim_cur = found->rlim_max, .rlim_max = found->rlim_max };
	return setrlimit(RLIMIT_NOFILE, &most) == 0
		       ? 0
		       : error_system("raising the limit of file descriptors to %llu",
				      (unsigned long long)most.rlim_cur);
}

int launch_open(struct launch *l, uint32_t ranks, enum binding asked)
{
	int rc = files_raise(&l->files, ranks);
	if (rc)
		return rc;
	l->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (l->null < 0)
		return error_set(-errno, "opening /dev/null, the input of ranks above 0: %s",
				 strerror(errno));
	bind_plan(&l->bind, asked, ranks);
	environment_set(SETTING_SIZE, l->total);
	environment_set(SETTING_JOB_FD, (uint32_t)l->job_fd);
	return 0;
}

void launch_close(struct launch *l)
{
	close(l->null);
}

/* The pipes of a rank: output, error, and how its start went. */
struct birth {
	pid_t keeper;
	uint32_t number;
	int out[2], err[2], news[2];
};

static int birth_open(struct birth *b)
{
	int *const pipes[] = { b->out, b->err, b->news };
	for (int i = 0; i < 3; i++)
		if (pipe2(pipes[i], O_CLOEXEC) != 0) {
			int rc = -errno;
			while (i--) {
				close(pipes[i][0]);
				close(pipes[i][1]);
			}
			return rc;
		}
	return 0;
}

/*
 * In the child. It must not outlive the keeper, not even if that died before the
 * prctl; what the rank itself starts is the business of tree.c.
 */
__attribute__((noreturn)) static void rank_become(const struct launch *l, const struct birth *b)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != b->keeper)
		_exit(1);
	setpgid(0, l->group);
	dup2(l->input, STDIN_FILENO);
	dup2(b->out[1], STDOUT_FILENO);
	dup2(b->err[1], STDERR_FILENO);
	fcntl(l->job_fd, F_SETFD, 0);
	bind_apply(&l->bind, b->number);
	setrlimit(RLIMIT_NOFILE, &l->files);
	sigprocmask(SIG_SETMASK, &l->mask, NULL);
	execvp(l->program[0], l->program);
	int error = errno;
	(void)!write(b->news[1], &error, sizeof error);
	_exit(127);
}

static pid_t rank_fork(const struct launch *l, const struct birth *b)
{
	pid_t pid = vfork();
	if (pid == 0)
		rank_become(l, b);
	return pid;
}

/* Waits until the child has become the program or has said why not. */
static int birth_news(struct birth *b)
{
	int error = 0;
	ssize_t n;
	do
		n = read(b->news[0], &error, sizeof error);
	while (n < 0 && errno == EINTR);
	return n == sizeof error ? -error : 0;
}

int rank_start(const struct launch *l, uint32_t number, struct rank *r)
{
	struct birth b = { .keeper = getpid(), .number = number };
	int rc = birth_open(&b);
	if (rc)
		return rc;
	environment_set(SETTING_RANK, l->first + number);
	pid_t pid = rank_fork(l, &b);
	rc = pid < 0 ? -errno : 0;
	close(b.out[1]);
	close(b.err[1]);
	close(b.news[1]);
	if (!rc && (rc = birth_news(&b)) != 0)
		waitpid(pid, NULL, 0);
	close(b.news[0]);
	if (rc) {
		close(b.out[0]);
		close(b.err[0]);
		return rc;
	}
	fcntl(b.out[0], F_SETFL, O_NONBLOCK);
	fcntl(b.err[0], F_SETFL, O_NONBLOCK);
	*r = (struct rank){ .pid = pid, .out = b.out[0], .err = b.err[0] };
	return 0;
}

void rank_refused(const char *program, uint32_t number, uint32_t ranks, int rc, char *text,
		  size_t room)
{
	if (rc == -ENOENT && !strchr(program, '/'))
		snprintf(text, room,
			 "'%s': no program of that name is in PATH; write ./%s if it is in this "
			 "folder",
			 program, program);
	else if (rc == -EAGAIN || rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
		snprintf(text, room,
			 "rank %u of %u: %s; start fewer ranks, or raise the limits on processes "
			 "and files (ulimit -u, ulimit -n, the container's pids)",
			 number, ranks, strerror(-rc));
	else
		snprintf(text, room, "'%s': %s", program, strerror(-rc));
}
