/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jacobi's method on a square that ranks share as a grid of blocks. In every step neighbours
 * exchange the edges of their blocks, rows in one piece and columns by a stride. Around the square
 * the values are x + y, which is also the solution inside it, so every rank knows its error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>

enum { N = 16, W = N + 2, STEPS = 100 };
static double u[2][W][W]; /* of this step and the next, with an edge of the neighbours' around */

static void must(int rc)
{
	if (rc) {
		fprintf(stderr, "jacobi: %s\n", tern_strerror(rc));
		exit(1);
	}
}

int main(void)
{
	static const size_t all = N;
	static const ptrdiff_t apart = sizeof u[0][0]; /* a row further on */
	const tern_part row = { .run = N * sizeof(double) };
	const tern_part column = { { NULL }, sizeof(double), 1, &all, &apart };
	tern_neighbor side[2][4]; /* of both steps: up, down, left, right */
	tern *t;
	tern_team *team;
	tern_grid grid = { .dims = 2 };
	int64_t at[2];
	must(tern_open(&t, NULL));
	must(tern_team_all(t, &team));
	must(tern_grid_fit(&grid, tern_size(t)));
	tern_grid_coords(&grid, tern_rank(t), at);
	double error = 0, x = (double)at[0] * N, y = (double)at[1] * N;
	for (int i = 0; i < W * W; i++) /* inside, the first guess is 0 */
		if (i / W == 0 || i / W > N || i % W == 0 || i % W > N)
			u[0][i / W][i % W] = u[1][i / W][i % W] = x + i / W + y + i % W;
	for (unsigned k = 0; k < 8; k++) {
		double(*now)[W] = u[k / 4];
		unsigned d = k % 4;
		int far = d % 2 ? 1 : -1, in = far > 0 ? N : 1, out = in + far;
		tern_neighbor *n = &side[k / 4][d];
		n->to = n->from = tern_grid_neighbor(&grid, tern_rank(t), d / 2, far);
		n->in = n->out = d < 2 ? row : column;
		n->in.base = d < 2 ? &now[in][1] : &now[1][in];
		n->out.base = d < 2 ? &now[out][1] : &now[1][out];
	}
	for (int s = 0; s < STEPS; s++) {
		double(*now)[W] = u[s % 2], (*next)[W] = u[(s + 1) % 2];
		must(tern_team_exchange(team, side[s % 2], 4));
		for (int i = 1; i <= N; i++)
			for (int j = 1; j <= N; j++)
				next[i][j] = (now[i - 1][j] + now[i + 1][j] + now[i][j - 1] +
					      now[i][j + 1]) /
					     4;
	}
	for (int i = 0; i < N * N; i++) {
		double e = x + i / N + 1 + y + i % N + 1 - u[STEPS % 2][i / N + 1][i % N + 1];
		error = e > error ? e : error;
	}
	must(tern_team_allreduce(team, &error, &error, 1, TERN_TYPE_DOUBLE, TERN_REDUCE_MAX));
	if (tern_rank(t) == 0)
		printf("%u x %u blocks: an error of %.4f after %d steps\n", grid.size[0],
		       grid.size[1], error, STEPS);
	must(tern_close(t));
}
