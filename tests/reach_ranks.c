/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reach_ranks FILE: rank 0 asks rank 1, one request at a time, until FILE exists; prints how many were answered, and the
 * first error by its code and sentence. What tests/reach_test.sh starts.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

enum { ASK, ANSWER, STATUS_ERROR = 4 };

static _Atomic uint64_t answers;
static int stop;

static void ask(tern *t, const tern_msg *m)
{
	stop |= tern_msg_arg(m, 0) == UINT64_MAX;
	(void)!tern_reply(t, m, ANSWER, tern_msg_arg(m, 0));
}

static void answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answers, 1);
}

static int question(tern *t, uint64_t i)
{
	int rc = tern_request(t, 1, ASK, i);
	return rc ? rc : tern_wait(t, &answers, 1);
}

static int asks(tern *t, const char *file, uint64_t *asked)
{
	int rc = 0;
	printf("begun\n");
	while (!rc && access(file, F_OK) != 0) {
		rc = question(t, *asked);
		*asked += !rc;
	}
	return rc ? rc : question(t, UINT64_MAX);
}

int main(int argc, char **argv)
{
	tern *t;
	uint64_t asked = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	int rc = argc == 2 ? tern_open(&t, NULL) : -1;
	if (rc) {
		fprintf(stderr, "%s\n", tern_strerror(rc));
		return 2;
	}
	(void)!tern_on(t, ASK, ask);
	(void)!tern_on(t, ANSWER, answer);
	rc = tern_barrier(t);
	if (!rc && tern_rank(t) == 0)
		rc = asks(t, argv[1], &asked);
	while (!rc && tern_rank(t) == 1 && !stop)
		rc = tern_poll(t) < 0 ? -1 : 0;
	if (!rc)
		rc = tern_barrier(t);
	if (rc) {
		printf("rank %u failed: %s: %s\n", tern_rank(t), strerrorname_np(-rc), tern_strerror(rc));
		_exit(STATUS_ERROR);
	}
	if (tern_rank(t) == 0)
		printf("%llu answered: fine\n", (unsigned long long)asked);
	return tern_close(t) != 0;
}
