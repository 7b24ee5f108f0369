/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One session: ranks handle many messages, close and end, one of them by a signal; `tern why` looks
 * on (why_test.sh).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/tern.h>
#include <unistd.h>

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s\n", tern_strerror(rc));
		exit(1);
	}
}

static void h(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
}

int main(void)
{
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_on(t, 0, h));
	for (int i = 0; i < 1000; i++)
		must(tern_request(t, (tern_rank(t) + 1) % tern_size(t), 0));
	must(tern_barrier(t));
	sleep(2);
	if (tern_rank(t) == 1)
		kill(getpid(), SIGKILL);
	must(tern_close(t));
	sleep(2);
	return 0;
}
