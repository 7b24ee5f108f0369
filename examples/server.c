/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fetch-and-add server that computes all the time and never polls. Who answers? In `thread` a
 * thread of the library's, in `interrupt` the computing thread itself, called by a signal; in
 * `poll` nobody would, so there the computation must poll. The program is otherwise the same in all
 * three.
 *
 *     tern run -n 4 server [poll|thread|interrupt]
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/tern.h>
#include <time.h>

enum { ADD, ADDED, LAST }; /* handlers */
enum { SERVER = 0, REQUESTS = 100, PIECE = 5000 };

static uint64_t counter; /* the server's, and touched by handlers alone until all are done */
static tern_flag added, done;
static uint64_t before; /* our last request: what the counter was */

static void on_add(tern *t, const tern_msg *m)
{
	tern_reply(t, m, ADDED, counter);
	counter += tern_msg_word(m, 0);
}

static void on_added(tern *t, const tern_msg *m)
{
	before = tern_msg_word(m, 0);
	tern_signal(t, &added, 1);
}

static void on_last(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &done, 1);
}

static void must(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "server: %s\n", tern_strerror(rc));
	exit(1);
}

static double piece(double x) /* of a long computation: towards the square root of 2 */
{
	for (int i = 0; i < PIECE; i++)
		x = 0.999 * x + 0.001 * (2 / x);
	return x;
}

static int serve(tern *t)
{
	uint64_t all = tern_size(t) - 1;
	double x = 2;
	tern_attach(t); /* delivery begins here: from now on this rank calls nothing */
	do {
		x = piece(x);
		if (tern_delivery_get(t) == TERN_DELIVERY_POLL)
			must(tern_poll(t));
	} while (atomic_load(&done) < all);
	printf("server: counted %u of %u, and the root of 2 is %.3f\n", (unsigned)counter,
	       (unsigned)(all * REQUESTS), x);
	return counter != all * REQUESTS;
}

static int ask(tern *t)
{
	struct timespec began, ended;
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (uint64_t i = 0; i < REQUESTS; i++) {
		must(tern_request(t, SERVER, ADD, 1));
		must(tern_wait(t, &added, 1));
	}
	clock_gettime(CLOCK_MONOTONIC, &ended);
	must(tern_request(t, SERVER, LAST));
	double us = (double)(ended.tv_sec - began.tv_sec) * 1e6 +
		    (double)(ended.tv_nsec - began.tv_nsec) / 1e3;
	printf("rank %u: each request took %.1f us\n", tern_rank(t), us / REQUESTS);
	return before < REQUESTS - 1;
}

int main(int argc, char **argv)
{
	tern *t;
	tern_options options = { .signal = 40 }; /* for interrupts; nothing else here uses it */
	if (argc > 1)
		setenv("TERN_DELIVERY", argv[1], 1);
	must(tern_open(&t, &options));
	must(tern_on(t, ADD, on_add));
	must(tern_on(t, ADDED, on_added));
	must(tern_on(t, LAST, on_last));
	int wrong = tern_rank(t) == SERVER ? serve(t) : ask(t);
	must(tern_close(t));
	return wrong;
}
