/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parameter server (rank 0) and workers with 512 KiB gradients: each worker gets the parameters
 * and puts its gradient, again and again. When the first of ranks 2 and above has as many rounds
 * done as the argument says, rank 0 prints how many each has, and the job ends. What
 * tests/net/fair_test.sh starts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <tern/mem.h>

#include "lib/handed.h"

enum { PUSH, PUSHED, LEN = 1 << 16, RANKS_MOST = 64 };

static double *params, *slots;
static _Atomic uint64_t pushed, finished;
static uint64_t pushes[RANKS_MOST], rounds = 100;

static void must(int rc)
{
	if (rc) {
		fprintf(stderr, "fair_ranks: %s\n", tern_strerror(rc));
		exit(1);
	}
}

static void on_push(tern *t, const tern_msg *m)
{
	uint32_t src = tern_msg_src(m);
	const double *g = slots + (size_t)src * LEN;
	for (size_t i = 0; i < LEN; i++)
		params[i] += g[i];
	if (++pushes[src] == rounds && src > 1)
		tern_signal(t, &finished, 1);
	must(tern_reply(t, m, PUSHED));
}

static void on_pushed(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &pushed, 1);
}

static void serve(tern *t)
{
	must(tern_wait(t, &finished, 1));
	for (uint32_t r = 1; r < tern_size(t); r++)
		printf("rank %u pushed %llu\n", r, (unsigned long long)pushes[r]);
	fflush(stdout);
	_Exit(0); /* the others need not end well */
}

static void work(tern *t)
{
	double *w = malloc(LEN * sizeof *w), *g = malloc(LEN * sizeof *g);
	must(w && g ? 0 : -ENOMEM);
	tern_addr p = tern_addr_at(t, 0, params);
	tern_addr s = tern_addr_at(t, 0, slots) + (tern_addr)tern_rank(t) * LEN * sizeof *g;
	for (size_t i = 0; i < LEN; i++)
		g[i] = tern_rank(t);
	for (;;) {
		must(tern_get(t, w, p, LEN * sizeof *w));
		must(tern_put_request(t, s, PUSH, g, LEN * sizeof *g));
		must(tern_wait(t, &pushed, 1));
	}
}

int main(int argc, char **argv)
{
	tern *t;
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	must(tern_open(&t, NULL));
	must(tern_on(t, PUSH, on_push));
	must(tern_on(t, PUSHED, on_pushed));
	params = handed_alloc_all(t, LEN * sizeof *params);
	slots = handed_alloc_all(t, (size_t)tern_size(t) * LEN * sizeof *slots);
	must(params && slots ? 0 : -errno);
	must(tern_barrier(t)); /* handlers use them */
	if (tern_rank(t) == 0)
		serve(t);
	work(t);
	return 0;
}
