/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pipeline of ranks connected by channels. Every point of a grid needs its neighbours
 * to the west and to the south: y[i][j] = rhs - a * y[i-1][j] - b * y[i][j-1]. Each rank has a
 * column; it gets b * y from the rank to its west, one value at a time, and puts its own
 * product to the east as soon as it has it. A value costs a few instructions at either end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/chan.h>

enum { ROWS = 2048, EAST = 1 };

static const double a = 0.25, b = 0.5;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "pipeline: %s\n", tern_strerror(rc));
	exit(1);
}

static double rhs(uint32_t row, uint32_t column)
{
	return 1 + (row * 7 + column * 3) % 11;
}

/* One column. The ends are local variables, so that they live in registers. */
static void solve(tern *t, tern_chan *west, tern_chan *east, double y[ROWS])
{
	tern_in in = west ? tern_chan_in(west) : (tern_in){ 0 };
	tern_out out = east ? tern_chan_out(east) : (tern_out){ 0 };
	double south = 0;
	for (uint32_t row = 0; row < ROWS; row++) {
		double product = 0;
		if (west)
			must(tern_chan_get(&in, &product, sizeof product));
		south = rhs(row, tern_rank(t)) - a * south - product;
		double share = b * south;
		if (east)
			must(tern_chan_put(&out, &share, sizeof share));
		y[row] = south;
	}
	if (west)
		tern_chan_in_back(&in);
	if (east)
		tern_chan_out_back(&out);
}

/* The same by one rank alone, column after column: what is not equal is wrong. */
static int wrong_rows(uint32_t column, const double y[ROWS])
{
	static double west[ROWS];
	int wrong = 0;
	for (uint32_t c = 0; c <= column; c++) {
		double south = 0;
		for (uint32_t row = 0; row < ROWS; row++) {
			south = rhs(row, c) - a * south - (c ? b * west[row] : 0);
			west[row] = south;
			wrong += c == column && south != y[row];
		}
	}
	return wrong;
}

int main(void)
{
	static double y[ROWS];
	tern *t;
	tern_chan *west = NULL, *east = NULL;
	must(tern_open(&t, NULL));
	if (tern_rank(t) + 1 < tern_size(t))
		must(tern_chan_to(t, tern_rank(t) + 1, EAST, &east));
	if (tern_rank(t) > 0)
		must(tern_chan_from(t, tern_rank(t) - 1, EAST, &west));
	solve(t, west, east, y);
	printf("rank %u: %d rows, %d wrong\n", tern_rank(t), ROWS, wrong_rows(tern_rank(t), y));
	must(tern_barrier(t));
	must(tern_close(t));
	return 0;
}
