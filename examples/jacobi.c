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

/* N values from `first` on: a row, or with `apart` a column. */
static tern_part edge(double *first, const ptrdiff_t *apart)
{
	static const size_t all = N;
	return apart ? (tern_part){ { first }, sizeof *first, 1, &all, apart }
		     : (tern_part){ { first }, N * sizeof *first, 0, NULL, NULL };
}

int main(void)
{
	static const ptrdiff_t apart = sizeof u[0][0]; /* a row further on */
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
	for (int s = 0; s < STEPS; s++) {
		double(*now)[W] = u[s % 2], (*next)[W] = u[(s + 1) % 2];
		tern_neighbor side[4];
		for (unsigned d = 0; d < 4; d++) { /* up, down, left, right */
			int far = d % 2 ? 1 : -1, in = far > 0 ? N : 1, out = far > 0 ? N + 1 : 0;
			uint32_t who = tern_grid_neighbor(&grid, tern_rank(t), d / 2, far);
			side[d].to = side[d].from = who;
			side[d].in = d < 2 ? edge(&now[in][1], NULL) : edge(&now[1][in], &apart);
			side[d].out = d < 2 ? edge(&now[out][1], NULL) : edge(&now[1][out], &apart);
		}
		must(tern_team_exchange(team, side, 4));
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
