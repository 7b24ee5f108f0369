/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are stuck, or busy, for top_test.sh and why_test.sh:
 *
 *     circle   each receives from the next, and nobody sends
 *     barrier  the last rank does not come
 *     room     rank 0 sends to rank 1, which computes
 *     carried  the same, with payloads that lie in the ring
 *     hold     as room, and rank 1 holds its handlers back
 *     busy     messages go round for ever
 *     puts     rank 0 puts long data for ever, and nobody holds
 *     left     the last rank dies, and the others close
 *     lost     the last rank dies, and the others wait for a message that nobody sends
 *     worker   as room, but a worker of rank 0 sends, and rank 0 waits for it
 *     team     the last two ranks do not come to a call on a team
 *     started  nor to one with a handle
 *     meeting  the last rank does not come to tern_team_survivors()
 *     overlap  ranks 0 and 1 meet in two teams, and each begins with another one
 *     astray   the last rank receives what nobody sends, and the others are in a call on a team
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tern/coll.h>
#include <tern/mem.h>
#include <tern/send.h>
#include <time.h>
#include <unistd.h>

#include "lib/handed.h"

enum { NOTE, LONG = 16 << 20 };

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

static int flood(tern *t, bool held, size_t len)
{
	static char data[500];
	memset(data, 0xff, sizeof data); /* greater than any header */
	int rc = tern_barrier(t);
	if (tern_rank(t) == 1) {
		if (held)
			tern_hold(t);
		compute();
	}
	while (!rc)
		rc = len ? tern_request_data(t, 1, NOTE, data, len)
			 : tern_request(t, 1, NOTE, 1, 2);
	return rc;
}

static int room(tern *t)
{
	return flood(t, false, 0);
}

static int carried(tern *t)
{
	return flood(t, false, 500);
}

static int hold(tern *t)
{
	return flood(t, true, 0);
}

static int busy(tern *t)
{
	int rc = 0;
	while (!rc)
		if (!(rc = tern_request(t, (tern_rank(t) + 1) % tern_size(t), NOTE, 1, 2)))
			rc = tern_wait(t, &noted, 1);
	return rc;
}

static int puts_for_ever(tern *t)
{
	static char data[LONG];
	void *mine = handed_alloc_all(t, LONG);
	int rc = mine ? 0 : -errno;
	if (!rc && tern_rank(t))
		return tern_wait(t, &noted, 1);
	while (!rc) {
		tern_op op = { 0 };
		rc = tern_put_start(t, tern_addr_at(t, 1, mine), data, LONG, &op);
		if (!rc)
			rc = tern_op_wait(t, &op);
	}
	return rc;
}

static void die_if_last(tern *t)
{
	if (tern_rank(t) == tern_size(t) - 1)
		kill(getpid(), SIGKILL);
}

static int left(tern *t)
{
	int rc = tern_barrier(t);
	if (rc)
		return rc;
	die_if_last(t);
	rc = tern_close(t);
	if (!rc)
		compute();
	return rc;
}

static int lost(tern *t)
{
	int rc = tern_barrier(t);
	if (!rc)
		rc = tern_forgive(t, tern_size(t) - 1);
	die_if_last(t);
	return rc ? rc : tern_wait(t, &noted, 1);
}

static void *send_for_ever(void *t)
{
	tern *worker;
	int rc = tern_worker_open(t, &worker);
	while (!rc)
		rc = tern_request(worker, 1, NOTE, 1, 2);
	fprintf(stderr, "stuck_ranks: %s\n", tern_strerror(rc));
	return NULL;
}

static int worker(tern *t)
{
	pthread_t thread;
	int rc = tern_barrier(t);
	if (tern_rank(t) == 1)
		compute();
	return rc || pthread_create(&thread, NULL, send_for_ever, t) ? -EAGAIN
								     : tern_wait(t, &noted, 1);
}

static int team(tern *t)
{
	tern_team *all;
	uint64_t one = 1, sum;
	int rc = tern_team_all(t, &all);
	if (!rc && tern_rank(t) + 2 >= tern_size(t))
		compute();
	return rc ? rc : tern_team_allreduce(all, &one, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM);
}

static int meeting(tern *t)
{
	tern_team *all;
	int rc = tern_team_all(t, &all);
	if (!rc && tern_rank(t) == tern_size(t) - 1)
		compute();
	return rc ? rc : tern_team_survivors(all, &all);
}

static int started(tern *t)
{
	tern_team *all;
	tern_op op = TERN_OP;
	int rc = tern_team_all(t, &all);
	if (!rc && tern_rank(t) + 2 >= tern_size(t))
		compute();
	if (!rc)
		rc = tern_team_barrier_start(all, &op);
	return rc ? rc : tern_op_wait(t, &op);
}

static int overlap(tern *t)
{
	tern_team *all, *other;
	int rc = tern_team_all(t, &all);
	if (!rc)
		rc = tern_team_split(all, 0, 0, &other);
	return rc ? rc : tern_team_barrier(tern_rank(t) ? all : other);
}

static int astray(tern *t)
{
	tern_team *all;
	uint64_t word;
	int rc = tern_team_all(t, &all);
	if (!rc && tern_rank(t) + 1 == tern_size(t))
		return tern_recv(t, TERN_RANK_ANY, 0x9, &word, sizeof word, NULL);
	return rc ? rc : tern_team_barrier(all);
}

static const struct {
	const char *name;
	int (*run)(tern *t);
} plays[] = {
	{ "circle", circle }, { "barrier", barrier }, { "room", room },
	{ "hold", hold },     { "busy", busy },       { "puts", puts_for_ever },
	{ "left", left },     { "lost", lost },       { "worker", worker },
	{ "team", team },     { "started", started }, { "overlap", overlap },
	{ "astray", astray }, { "meeting", meeting }, { "carried", carried },
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
