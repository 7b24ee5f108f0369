/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are stuck, or busy, for top_test.sh and why_test.sh:
 *
 *     circle   each receives from the next, and nobody sends
 *     barrier  the last rank does not come
 *     room     rank 0 sends to rank 1, which computes
 *     hold     the same, and rank 1 holds its handlers back
 *     busy     messages go round for ever
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tern/msg.h>
#include <time.h>

enum { NOTE };

static _Atomic uint64_t noted;

static void note(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &noted, 1);
}

static void compute(void)
{
	for (;;)
		nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
}

static int circle(tern *t)
{
	uint64_t word;
	return tern_recv(t, (tern_rank(t) + 1) % tern_size(t), 0x7, &word, sizeof word, NULL);
}

static int barrier(tern *t)
{
	if (tern_rank(t) == tern_size(t) - 1)
		compute();
	return tern_barrier(t);
}

static int flood(tern *t, bool held)
{
	int rc = tern_barrier(t);
	if (tern_rank(t) == 1) {
		if (held)
			tern_hold(t);
		compute();
	}
	while (!rc)
		rc = tern_request(t, 1, NOTE, 1, 2);
	return rc;
}

static int room(tern *t)
{
	return flood(t, false);
}

static int hold(tern *t)
{
	return flood(t, true);
}

static int busy(tern *t)
{
	int rc = 0;
	while (!rc)
		if (!(rc = tern_request(t, (tern_rank(t) + 1) % tern_size(t), NOTE, 1, 2)))
			rc = tern_wait(t, &noted, 1);
	return rc;
}

static const struct {
	const char *name;
	int (*run)(tern *t);
} plays[] = {
	{ "circle", circle }, { "barrier", barrier }, { "room", room }, { "hold", hold }, { "busy", busy }
};

int main(int argc, char **argv)
{
	tern *t;
	int rc = tern_open(&t, NULL);
	if (!rc)
		rc = tern_on(t, NOTE, note);
	for (size_t i = 0; !rc && argc > 1 && i < sizeof plays / sizeof *plays; i++)
		if (strcmp(argv[1], plays[i].name) == 0)
			rc = plays[i].run(t);
	fprintf(stderr, "stuck_ranks: %s\n", tern_strerror(rc));
	return 1;
}
