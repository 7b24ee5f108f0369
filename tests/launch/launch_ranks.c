/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch_ranks all [N]: every rank sends N messages, words and payloads, to every rank, over 3
 * sessions, and says whether all came; then it returns 0.
 * launch_ranks status S: rank 1 returns S, the others 0.
 * launch_ranks end: nobody closes, everybody returns 0.
 * launch_ranks wait: waits for what does not come, until somebody ends it.
 * What the tests of launchers start.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

enum { WORDS, BYTES, SESSIONS = 3 };

static uint64_t words, bytes;
static _Atomic uint64_t never;

static void on_words(tern *t, const tern_msg *m)
{
	(void)t;
	words += tern_msg_word(m, 0) + tern_msg_src(m);
}

static void on_bytes(tern *t, const tern_msg *m)
{
	size_t len;
	const char *data = tern_msg_data(m, &len);
	(void)t;
	bytes += len == 100 && data[0] == 'a' && data[99] == 'z';
}

static int fail(const char *what, int rc)
{
	fprintf(stderr, "launch_ranks: %s: %s\n", what, tern_strerror(rc));
	return 1;
}

static int rank_open(tern **t)
{
	int rc = tern_open(t, NULL);
	if (!rc)
		rc = tern_on(*t, WORDS, on_words);
	return rc ? rc : tern_on(*t, BYTES, on_bytes);
}

static int send_all(tern *t, uint32_t n)
{
	char text[100] = { 'a', [99] = 'z' };
	int rc = 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t r = 0; !rc && r < tern_size(t); r++) {
			rc = tern_request(t, r, WORDS, i);
			if (!rc)
				rc = tern_request_data(t, r, BYTES, text, sizeof text);
		}
	return rc ? rc : tern_barrier(t);
}

static int session(uint32_t n)
{
	tern *t;
	words = bytes = 0;
	int rc = rank_open(&t);
	if (!rc)
		rc = send_all(t, n);
	if (rc)
		return fail("all", rc);
	uint64_t size = tern_size(t), expected = size * n * (n - 1) / 2 + n * size * (size - 1) / 2;
	bool good = words == expected && bytes == n * size;
	printf("rank %u of %u: %s\n", tern_rank(t), tern_size(t),
	       good ? "all came" : "something is missing");
	fflush(stdout);
	rc = tern_close(t);
	return rc ? fail("close", rc) : !good;
}

static int all(uint32_t n)
{
	int failed = 0;
	for (int i = 0; i < SESSIONS && !failed; i++)
		failed = session(n);
	return failed;
}

int main(int argc, char **argv)
{
	tern *t;
	const char *what = argc > 1 ? argv[1] : "all";
	if (strcmp(what, "all") == 0)
		return all(argc > 2 ? (uint32_t)atoi(argv[2]) : 100);
	int rc = rank_open(&t);
	if (!rc)
		rc = tern_barrier(t);
	if (rc)
		return fail(what, rc);
	if (strcmp(what, "end") == 0)
		return 0;
	if (strcmp(what, "wait") == 0) {
		printf("rank %u waits\n", tern_rank(t));
		fflush(stdout);
		return fail(what, tern_wait(t, &never, 1));
	}
	int status = tern_rank(t) == 1 && argc > 2 ? atoi(argv[2]) : 0;
	return tern_close(t) ? 1 : status;
}
