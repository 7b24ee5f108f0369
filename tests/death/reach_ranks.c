/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reach_ranks FILE [AHEAD]: rank 0 asks rank 1 until FILE exists, with AHEAD requests under way at
 * a time, 1 unless given; prints how many were answered, and the first error by its code and
 * sentence. Rank 1 prints if one of them is missing. What tests/death/reach_test.sh starts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

enum { ASK, ANSWER, STATUS_ERROR = 4 };

static _Atomic uint64_t answers;
static uint64_t ahead = 1, expected;
static int stop;

static void ask(tern *t, const tern_msg *m)
{
	uint64_t i = tern_msg_word(m, 0);
	stop |= i == UINT64_MAX;
	if (!stop && i != expected)
		printf("request %llu was handled, %llu is missing\n", (unsigned long long)i,
		       (unsigned long long)expected);
	expected = i + 1;
	(void)!tern_reply(t, m, ANSWER, tern_msg_word(m, 0));
}

static void answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answers, 1);
}

/* Waits until fewer than `ahead` are under way. */
static int question(tern *t, uint64_t i)
{
	static uint64_t under_way;
	int rc = tern_request(t, 1, ASK, i);
	for (under_way++; !rc && under_way >= ahead; under_way--)
		rc = tern_wait(t, &answers, 1);
	return rc;
}

static int asks(tern *t, const char *file, uint64_t *asked)
{
	int rc = 0;
	printf("begun\n");
	while (!rc && access(file, F_OK) != 0) {
		rc = question(t, *asked);
		*asked += !rc;
	}
	ahead = 1;
	return rc ? rc : question(t, UINT64_MAX);
}

int main(int argc, char **argv)
{
	tern *t;
	uint64_t asked = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	int rc = argc >= 2 ? tern_open(&t, NULL) : -1;
	if (argc > 2)
		ahead = strtoull(argv[2], NULL, 10);
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
		printf("rank %u failed: %s: %s\n", tern_rank(t), strerrorname_np(-rc),
		       tern_strerror(rc));
		_exit(STATUS_ERROR);
	}
	if (tern_rank(t) == 0)
		printf("%llu answered: fine\n", (unsigned long long)asked);
	return tern_close(t) != 0;
}
