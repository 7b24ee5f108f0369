/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank aborts, in its program or in a handler, while the others wait. For
 * tests/death/abort_test.sh. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tern/tern.h>

static tern_flag never;

static void give_up(tern *t, const tern_msg *m)
{
	(void)m;
	tern_abort(t, "the input is damaged");
}

/* Whether a child of the process is refused, and goes on. */
static int refused_in_child(tern *t)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(tern_abort(t, "I am none of them") < 0 ? 7 : 8);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

int main(int argc, char **argv)
{
	tern *t;
	if (tern_open(&t, NULL) || tern_on(t, 0, give_up) || tern_barrier(t))
		return 2;
	if (tern_rank(t) == 1 && !refused_in_child(t))
		return 3;
	if (tern_rank(t) == 1 && argc > 1 && strcmp(argv[1], "program") == 0)
		tern_abort(t, "the disk is full");
	if (tern_rank(t) == 0 && argc > 1 && strcmp(argv[1], "handler") == 0)
		tern_request(t, 1, 0);
	tern_wait(t, &never, 1); /* until the launcher ends it, or it blames rank 1 */
	return 4;
}
