/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heat in a ring of 4096 cells, a part of it at each rank. In every step each rank sends its end
 * cells to its two neighbours, one word each, and computes when theirs have come. It tells a
 * simulated machine what it computes; docs/sim-tutorial.md runs it on up to 64 nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/sim.h>

enum { CELLS = 4096, STEPS = 50, LEFT = 0, RIGHT = 1 };
enum { EDGE, SUM };

static double cell[2][CELLS + 2]; /* of this step and the next; one more at each end */
static double edge[2][2];         /* from the left and the right, of odd and even steps */
static tern_flag arrived[2], summed;
static double total;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "heat: %s\n", tern_strerror(rc));
	exit(1);
}

/* Words: the side that it comes from, the step, the value. */
static void on_edge(tern *t, const tern_msg *m)
{
	unsigned side = (unsigned)tern_msg_word(m, 0);
	edge[side][tern_msg_word(m, 1) % 2] = tern_msg_double(m, 2);
	tern_signal(t, &arrived[side], 1);
}

static void on_sum(tern *t, const tern_msg *m)
{
	total += tern_msg_double(m, 0);
	tern_signal(t, &summed, 1);
}

static void step(tern *t, unsigned n, unsigned s)
{
	uint32_t me = tern_rank(t), size = tern_size(t);
	double *now = cell[s % 2], *next = cell[(s + 1) % 2];
	must(tern_request(t, (me + 1) % size, EDGE, LEFT, s, now[n]));
	must(tern_request(t, (me + size - 1) % size, EDGE, RIGHT, s, now[1]));
	must(tern_wait(t, &arrived[LEFT], 1));
	must(tern_wait(t, &arrived[RIGHT], 1));
	now[0] = edge[LEFT][s % 2];
	now[n + 1] = edge[RIGHT][s % 2];
	for (unsigned i = 1; i <= n; i++)
		next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
	must(tern_sim_work(t, &(tern_work){ .floating = 5 * n, .loads = 3 * n, .stores = n }));
}

int main(void)
{
	tern *t;
	double sum = 0;
	must(tern_open(&t, NULL));
	must(tern_on(t, EDGE, on_edge));
	must(tern_on(t, SUM, on_sum));
	uint32_t me = tern_rank(t), size = tern_size(t);
	unsigned n = CELLS * (me + 1) / size - CELLS * me / size;
	cell[0][1] = me == 0 ? 1000 : 0;
	must(tern_barrier(t));
	for (unsigned s = 0; s < STEPS; s++)
		step(t, n, s);
	for (unsigned i = 1; i <= n; i++)
		sum += cell[STEPS % 2][i];
	must(tern_request(t, 0, SUM, sum));
	if (me == 0) {
		must(tern_wait(t, &summed, size));
		printf("heat: %.3f in %d cells after %d steps\n", total, CELLS, STEPS);
	}
	must(tern_barrier(t));
	must(tern_close(t));
	return 0;
}
