/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * end_ranks HOW: rank 1 fails, so that the launcher ends the others, which have a function for that
 * (tern_end_on). For tests/death/end_test.sh.
 *
 * HOW: wait, where they wait; poll, where they poll; compute, where they do not poll; none, where
 * they have taken the function back; closed, where they have closed; leave, where the function ends
 * the process itself, with status 0.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

enum { ASK, ANSWER };

static const char *how;
static tern_flag answered, never;

static int is(const char *what)
{
	return strcmp(how, what) == 0;
}

static void on_ask(tern *t, const tern_msg *m)
{
	tern_reply(t, m, ANSWER);
}

static void on_answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answered, 1);
}

/* It may send and wait. */
static void last_words(tern *t, int number, void *arg)
{
	int rc = tern_request(t, tern_rank(t), ASK);
	rc = rc ? rc : tern_wait(t, &answered, 1);
	printf("rank %u: signal %d, %s, %d\n", tern_rank(t), number, (const char *)arg, rc);
	fflush(stdout);
	if (is("leave"))
		exit(0);
}

static void go_on(tern *t)
{
	while (is("poll"))
		tern_poll(t);
	while (is("compute"))
		;
	if (is("closed"))
		tern_close(t);
	while (is("closed"))
		pause();
	tern_wait(t, &never, 1);
}

int main(int argc, char **argv)
{
	tern *t;
	static char text[] = "arg";
	how = argc > 1 ? argv[1] : "wait";
	if (tern_open(&t, NULL) || tern_on(t, ASK, on_ask) || tern_on(t, ANSWER, on_answer))
		return 2;
	if (tern_end_on(t, last_words, text) || tern_end_on(t, last_words, text))
		return 2;
	if (is("none") && tern_end_on(t, NULL, NULL))
		return 2;
	if (tern_barrier(t))
		return 2;
	if (tern_rank(t) == 1) {
		tern_end_on(t, NULL, NULL);
		usleep(100000);
		_exit(3);
	}
	tern_forgive(t, 1);
	go_on(t);
	return 2;
}
