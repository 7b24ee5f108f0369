/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other ranks flood the last one. What it waits for happens all the same, and it returns then:
 * each call may handle what the rings hold and a transfer's share of messages, and no more, however
 * many come. Counts messages and not time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tern/mem.h>
#include <tern/send.h>

#include "lib/handed.h"

enum { FLOOD, ASK, ANSWER, BIG = 1 << 20, ID = 9 };

static tern *t;
static uint32_t last;
static uint64_t handled, failures, share;
static _Atomic uint64_t answered;
static uint64_t *stop; /* in every rank's heap */
static char *big, private[BIG];

static void must(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "starved: %s\n", tern_strerror(rc));
	exit(1);
}

static void on_flood(tern *me, const tern_msg *m)
{
	(void)me, (void)m;
	handled++;
	for (volatile int i = 0; i < 2000; i++)
		;
}

static void on_ask(tern *me, const tern_msg *m)
{
	must(tern_reply(me, m, ANSWER));
}

static void on_answer(tern *me, const tern_msg *m)
{
	(void)m;
	tern_signal(me, &answered, 1);
}

/* Twice what the rings of all others hold in one-word messages, and what a transfer may cost. */
static void report(const char *what, uint64_t before, uint64_t transfer)
{
	uint64_t most = (uint64_t)last * 2 * 4 * 128 * 4 + transfer, n = handled - before;
	printf("%-40s handled %llu, at most %llu\n", what, (unsigned long long)n,
	       (unsigned long long)most);
	failures += n > most;
}

#define COUNT(what, transfer)                    \
	do {                                     \
		uint64_t before = handled;       \
		must(what);                      \
		report(#what, before, transfer); \
	} while (0)

static void flood(void)
{
	int sent = 0;
	while (!*(volatile uint64_t *)stop) {
		for (int i = 0; i < 100; i++)
			must(tern_request(t, last, FLOOD));
		if (tern_rank(t) == 0 && !sent++)
			must(tern_send(t, last, ID, &(uint64_t){ 5 }, sizeof(uint64_t)));
	}
}

static void stop_all(void)
{
	uint64_t yes = 1;
	for (uint32_t r = 0; r < last; r++)
		must(tern_put(t, tern_addr_at(t, r, stop), &yes, sizeof yes));
}

/* While the flood goes on. `share` bytes of a transfer at least move for each message. */
static void calls(tern_addr there, tern_addr far)
{
	tern_op op = TERN_OP;
	uint64_t v;
	const size_t count = BIG / 4096;
	const ptrdiff_t stride = 4096;
	const tern_part to = { { .addr = there }, 2048, 1, &count, &stride };
	const tern_part from = { { .base = private }, 2048, 1, &count, &stride };
	COUNT(tern_recv(t, 0, ID, &v, sizeof v, NULL), 0);
	COUNT(tern_request(t, 0, ASK), 0);
	COUNT(tern_wait(t, &answered, 1), 0);
	COUNT(tern_put(t, there, private, BIG), BIG / share);
	COUNT(tern_get(t, private, there, BIG), BIG / share);
	COUNT(tern_put_start(t, there, private, BIG, &op), BIG / share);
	COUNT(tern_op_wait(t, &op), BIG / share);
	COUNT(tern_put_parts_start(t, &to, 1, &from, 1, &op), BIG / share);
	COUNT(tern_flush(t), BIG / share);
	COUNT(tern_put(t, far, private, BIG), BIG / share);
	COUNT(tern_store(t, there, private, BIG), BIG / share);
	COUNT(tern_flush(t), 0);
}

/* starved BYTES: of a transfer, for each message that is handled meanwhile. */
int main(int argc, char **argv)
{
	static char registered[BIG];
	share = argc > 1 ? strtoull(argv[1], NULL, 0) : 256;
	must(tern_open(&t, NULL));
	must(tern_on(t, FLOOD, on_flood));
	must(tern_on(t, ASK, on_ask));
	must(tern_on(t, ANSWER, on_answer));
	last = tern_size(t) - 1;
	stop = handed_alloc_all(t, sizeof *stop);
	big = handed_alloc_all(t, BIG);
	tern_addr far;
	must(stop && big ? 0 : -1);
	must(tern_register(t, registered, BIG, &far));
	if (tern_rank(t) == 0)
		must(tern_send(t, last, ID + 1, &far, sizeof far));
	if (tern_rank(t) == last)
		must(tern_recv(t, 0, ID + 1, &far, sizeof far, NULL));
	must(tern_barrier(t));
	if (tern_rank(t) == last) {
		COUNT(tern_barrier(t), 0); /* all flood it as soon as they have left */
		calls(tern_addr_at(t, 0, big), far);
		stop_all();
	} else {
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 },
			  NULL); /* until the last one sleeps in it */
		must(tern_barrier(t));
		flood();
	}
	must(tern_barrier(t));
	must(tern_close(t));
	return failures != 0;
}
