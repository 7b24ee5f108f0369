/* SPDX-License-Identifier: BSD-3-Clause */
/* A parameter server (rank 0) and workers with 1 MiB gradients; one worker dies. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/mem.h>
#include <unistd.h>

#include "lib/handed.h"

enum { PUSH, PUSHED, BYE };
enum { LEN = 1 << 17, ROUNDS = 50 };
static double *params, *slots;
static _Atomic uint64_t pushed, finished;
static uint64_t pushes[64];

static void must(int rc)
{
	if (rc) {
		fprintf(stderr, "ps: %s\n", tern_strerror(rc));
		exit(1);
	}
}
static void on_push(tern *t, const tern_msg *m)
{
	uint32_t src = tern_msg_src(m);
	const double *g = slots + (size_t)src * LEN;
	for (size_t i = 0; i < LEN; i++)
		params[i] += g[i];
	pushes[src]++;
	must(tern_reply(t, m, PUSHED));
}
static void on_pushed(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &pushed, 1);
}
static void on_bye(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &finished, 1);
}
static void on_lost(tern *t, uint32_t rank, int why, void *arg)
{
	(void)arg;
	if (why == -EOWNERDEAD) {
		fprintf(stderr, "rank %u hears: %s\n", tern_rank(t), tern_strerror(why));
		if (tern_rank(t) == 0)
			tern_signal(t, &finished, 1);
	}
	tern_forgive(t, rank);
}
int main(void)
{
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_on(t, PUSH, on_push));
	must(tern_on(t, PUSHED, on_pushed));
	must(tern_on(t, BYE, on_bye));
	must(tern_lost_on(t, on_lost, NULL));
	uint32_t me = tern_rank(t), n = tern_size(t);
	/* only rank 0 needs this much, but a collective allocation gives all ranks the address */
	params = handed_alloc_all(t, LEN * sizeof *params);
	slots = handed_alloc_all(t, (size_t)n * LEN * sizeof *slots);
	must(params && slots ? 0 : -errno);
	if (me == 0) {
		must(tern_wait(t, &finished, n - 1));
		double sum = 0;
		for (uint32_t r = 1; r < n; r++) {
			printf("rank %u pushed %llu\n", r, (unsigned long long)pushes[r]);
			sum += (double)pushes[r] * r;
		}
		int bad = 0;
		for (size_t i = 0; i < LEN; i++)
			bad += params[i] != sum;
		printf("sum %g, %d wrong\n", sum, bad);
		must(tern_close(t));
		return bad != 0;
	}
	tern_addr p = tern_addr_at(t, 0, params),
		  s = tern_addr_at(t, 0, slots) + (tern_addr)me * LEN * sizeof(double);
	double *w = malloc(LEN * sizeof *w), *g = malloc(LEN * sizeof *g);
	for (int k = 0; k < ROUNDS; k++) {
		must(tern_get(t, w, p, LEN * sizeof *w));
		for (size_t i = 0; i < LEN; i++)
			g[i] = me;
		if (me == 2 && k == ROUNDS / 2)
			kill(getpid(), SIGKILL);
		must(tern_put_request(t, s, PUSH, g, LEN * sizeof *g));
		must(tern_wait(t, &pushed, 1));
	}
	must(tern_request(t, 0, BYE));
	must(tern_close(t));
	return 0;
}
