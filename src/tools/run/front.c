/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tern run: two processes, so that no process of the job outlives either.
 *
 *     front     the process that was started: takes signals and hands them down
 *       keeper  starts the ranks, forwards their output, sees them end
 *         ranks, and whatever they start
 *
 * Whoever is killed alone, somebody above the ranks is left who has inherited what
 * became an orphan (both are subreapers) and kills it; tree.c says how:
 *
 *   a rank      the keeper sees it and ends the others.
 *   the front   its death sends the keeper a signal; the keeper kills everything.
 *   the keeper  its death kills the ranks (PR_SET_PDEATHSIG); what they had started
 *               becomes the front's children, and the front kills it.
 *   the group   of the terminal, or of `kill -9 -PGID`: holds the front and the
 *               ranks, but not the keeper.
 *   by name     `pkill -9 tern` and `pkill -9 -f "tern run"` find the front; the
 *               keeper has another name.
 *   both        at the same instant: the ranks die (PR_SET_PDEATHSIG), but what they had
 *               started is nobody's. tern-run(1) says so.
 *
 * With --hosts, the ranks' places are taken by remote shells; at the other end of each, tern-link
 * is the front of that host's ranks, and its keeper has a wire up to this one. The keeper here
 * reads the input for rank 0 then, so it stays in the terminal's group: if all of that is killed,
 * the keepers of the hosts see their wires end.
 *
 * The ranks stay in the group that the shell made, so that Ctrl-C and Ctrl-Z work
 * as they do without us and rank 0 may read from the terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/run/run.h"
#include "tools/run/tree.h"
#include "tools/run/up.h"

/* What is ignored already (nohup) stays ignored, here and in the ranks. */
static void front_passed(sigset_t *set)
{
	static const int passed[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
				      SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };
	struct sigaction now;
	sigemptyset(set);
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		if (sigaction(passed[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(set, passed[i]);
}

/* A descriptor below 3 that was closed must not become one of ours. */
static void front_fill_standard(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Blocks the signals that are passed on, and SIGCHLD: all of them in `heard`. */
static void front_open(struct front *f, sigset_t *heard)
{
	signal(SIGCHLD, SIG_DFL); /* ignored, children would vanish without a status */
	front_passed(&f->passed);
	*heard = f->passed;
	sigaddset(heard, SIGCHLD);
	sigprocmask(SIG_BLOCK, heard, &f->mask);
	f->pid = getpid();
	f->group = getpgrp();
	tree_adopt();
}

/* ps shows whose keeper it is: that is written over the command line. */
static void keeper_rename(int words, char **word, pid_t front)
{
	char *end = word[words - 1] + strlen(word[words - 1]);
	size_t room = (size_t)(end - word[0]);
	memset(word[0], 0, room);
	snprintf(word[0], room, "keeper of %d", (int)front);
	prctl(PR_SET_NAME, "keeper");
}

static int keeper_main(struct run_options *o, const struct front *f, struct up *up, int argc,
		       char **argv)
{
	prctl(PR_SET_PDEATHSIG, KEEPER_ALONE);
	if (getppid() != f->pid)
		return 1;
	tree_adopt();
	if (!o->hosts)
		setpgid(0, 0);
	keeper_rename(argc, argv, f->pid);
	return keeper_run(o, f, up);
}

/* Starts the keeper, which writes over the command line; -errno. */
static pid_t front_start(struct run_options *o, const struct front *f, struct up *up, int argc,
			 char **argv)
{
	sigset_t all, before;
	fflush(NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all,
		    &before); /* the keeper may be sent one in its first moment */
	pid_t keeper = fork();
	int error = errno;
	if (keeper == 0)
		_exit(keeper_main(o, f, up, argc, argv));
	sigprocmask(SIG_SETMASK, &before, NULL);
	return keeper < 0 ? -error : keeper;
}

/* Stops as the default would: not where nobody could continue us. */
static void front_stop(void)
{
	sigset_t stop;
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
}

/* Takes in the dead; true when the keeper is among them. */
static bool front_reap(pid_t keeper, int *status)
{
	int s;
	pid_t pid;
	bool found = false;
	while ((pid = waitpid(-1, &s, WNOHANG)) > 0)
		if (pid == keeper) {
			*status = s;
			found = true;
		}
	return found;
}

static int front_wait(pid_t keeper, const sigset_t *heard)
{
	int status;
	for (;;) {
		siginfo_t info;
		int sig = sigwaitinfo(heard, &info);
		if (sig == SIGCHLD && front_reap(keeper, &status))
			return status;
		if (sig <= 0 || sig == SIGCHLD)
			continue;
		bool from_terminal = info.si_code == SI_KERNEL;
		if (!from_terminal || getpgid(keeper) != getpgrp()) /* else it has it */
			sigqueue(keeper, sig, (union sigval){ .sival_int = from_terminal });
		if (sig == SIGTSTP)
			front_stop();
	}
}

/* The keeper returns the job's status, unless it did not live to do so. */
static int front_finish(pid_t keeper, int status)
{
	tree_end();
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr,
		"tern run: the keeper of the job (pid %d) was killed by signal %d (%s); every "
		"rank has been ended\n",
		(int)keeper, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

int front_run(struct run_options *o, struct up *up, int argc, char **argv)
{
	struct front front;
	sigset_t heard;
	front_fill_standard();
	front_open(&front, &heard);
	pid_t keeper = front_start(o, &front, up, argc, argv);
	if (keeper < 0) {
		fprintf(stderr, "tern run: cannot start the job: %s\n", strerror(-keeper));
		return 1;
	}
	close(STDIN_FILENO); /* rank 0's alone */
	open("/dev/null", O_RDONLY);
	return front_finish(keeper, front_wait(keeper, &heard));
}
