/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The game of life on a torus, one block of it at each rank. Around its block a rank has
 * a halo, where before every step its eight neighbours put what they have there: a row,
 * a column or a corner, each with one strided put. A glider flies over the blocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>

enum { N = 8, ROW = N + 2, FLIGHT = 2 * N };

static tern_grid grid = { .dims = 2, .around = 3 }; /* of blocks, on a torus, */
static int64_t own[2];                              /* and where ours is */
static const char glider[3][3] = { { 0, 1, 0 }, { 0, 0, 1 }, { 1, 1, 1 } };

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "halo: %s\n", tern_strerror(rc));
	exit(1);
}

/* Where the i-th cell of a block lies; the halo is around it. */
static unsigned cell(unsigned i)
{
	return (i / N + 1) * ROW + i % N + 1;
}

/* Whether the i-th cell is alive when the glider has moved `far` down and right from the corner. */
static char alive(unsigned i, unsigned far)
{
	unsigned high = grid.size[0] * N, wide = grid.size[1] * N;
	unsigned down = ((unsigned)own[0] * N + i / N + high * FLIGHT - far) % high;
	unsigned right = ((unsigned)own[1] * N + i % N + wide * FLIGHT - far) % wide;
	return down < 3 && right < 3 && glider[down][right];
}

/* Puts what the neighbour `down` and `right` of us sees of our block into its halo. */
static void put_side(tern *t, char *cells, int down, int right, tern_op *op)
{
	static const size_t one = 1, all = N;
	static const ptrdiff_t apart = ROW;
	const int64_t other[] = { own[0] + down, own[1] + right };
	tern_addr there = tern_addr_at(t, tern_grid_member(&grid, other), cells);
	int from = (down > 0 ? N : 1) * ROW + (right > 0 ? N : 1);
	int to = from - down * N * ROW - right * N; /* a block further on */
	tern_part dst = { .addr = there + (tern_addr)to,
			  .run = right ? 1 : N,
			  .dims = 1,
			  .count = down ? &one : &all,
			  .stride = &apart };
	tern_part src = dst;
	src.base = cells + from;
	must(tern_put_parts_start(t, &dst, 1, &src, 1, op));
}

static void exchange(tern *t, char *cells)
{
	tern_op op = TERN_OP;
	for (int k = 0; k < 9; k++)
		if (k != 4) /* which is ourselves */
			put_side(t, cells, k / 3 - 1, k % 3 - 1, &op);
	must(tern_op_wait(t, &op)); /* ours are there, */
	must(tern_barrier(t));      /* and everybody else's are here */
}

static char next(const char *c)
{
	int around = c[-ROW - 1] + c[-ROW] + c[-ROW + 1] + c[-1] + c[1] + c[ROW - 1] + c[ROW] +
		     c[ROW + 1];
	return around == 3 || (around == 2 && *c);
}

int main(void)
{
	tern *t;
	int wrong = 0;
	must(tern_open(&t, NULL));
	must(tern_grid_fit(&grid, tern_size(t)));
	tern_grid_coords(&grid, tern_rank(t), own);
	void *memory;
	char(*cells)[ROW * ROW];
	must(tern_alloc_all(t, 2 * sizeof *cells, &memory));
	cells = memory;
	/* With TERN_GRANT=1, nobody stores into what is not granted. */
	must(tern_grant(t, TERN_RANK_ALL, memory, 2 * sizeof *cells));
	must(tern_barrier(t));
	for (unsigned i = 0; i < N * N; i++)
		cells[0][cell(i)] = alive(i, 0);
	for (int step = 0; step < 4 * FLIGHT; step++) { /* a glider takes 4 to move by one */
		char *now = cells[step % 2];
		exchange(t, now); /* one barrier is enough: the next step's halo is in the other
				     array */
		for (unsigned i = 0; i < N * N; i++)
			cells[(step + 1) % 2][cell(i)] = next(&now[cell(i)]);
	}
	must(tern_revoke(t, TERN_RANK_ALL, memory, 2 * sizeof *cells));
	must(tern_barrier(t)); /* nobody leaves who is to answer */
	for (unsigned i = 0; i < N * N; i++)
		wrong += cells[0][cell(i)] != alive(i, FLIGHT);
	printf("rank %u, block %u,%u of %u,%u: %d wrong\n", tern_rank(t), (unsigned)own[0],
	       (unsigned)own[1], grid.size[0], grid.size[1], wrong);
	must(tern_close(t));
	return wrong > 0;
}
