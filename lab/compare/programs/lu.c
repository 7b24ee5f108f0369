/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LU factorisation by broadcasts in a grid: sizes are rows, and rows of a block, which divide it.
 */
#include "program.h"

#include <math.h>
#include <string.h>

const char *const program_name = "lu";

static uint64_t rows, edge, all, blocks, my_rows, my_columns; /* all: elements of a block */
static double *part, *expected, *diagonal, *above, *left;

/* Blocks are dealt out in turns: block (i, k) is (i / grid.rows, k / grid.columns) of its rank. */
static double *block(uint64_t i, uint64_t k)
{
	return part + (i / grid.rows * my_columns + k / grid.columns) * all;
}

/* Of so many places of the grid, how many of the blocks 0 to n - 1 does this one have? */
static uint64_t dealt(uint64_t n, uint64_t places, uint64_t place)
{
	return n / places + (n % places > place);
}

void program_open(const uint64_t *size)
{
	rows = size[0], edge = size[1];
	all = edge * edge, blocks = rows / edge;
	my_rows = dealt(blocks, grid.rows, grid.row);
	my_columns = dealt(blocks, grid.columns, grid.column);
	part = memory(my_rows * my_columns * all, sizeof *part);
	diagonal = memory(all, sizeof *diagonal);
	above = memory(my_columns * all, sizeof *above);
	left = memory(my_rows * all, sizeof *left);
	expected = memory(rows * rows, sizeof *expected);
	app_serial_lu(expected, rows);
}

/* Element e of this rank's part in the matrix. */
static uint64_t place_of(uint64_t e)
{
	uint64_t r = e / all / my_columns * grid.rows + grid.row;
	uint64_t c = e / all % my_columns * grid.columns + grid.column;
	return (r * edge + e % all / edge) * rows + c * edge + e % edge;
}

void program_reset(void)
{
	for (uint64_t e = 0; e < my_rows * my_columns * all; e++)
		part[e] = app_element(rows, place_of(e) / rows, place_of(e) % rows);
}

static void iterate(uint64_t k)
{
	int in_k_row = k % grid.rows == grid.row, in_k_column = k % grid.columns == grid.column;
	uint64_t r0 = dealt(k + 1, grid.rows, grid.row); /* own blocks behind k begin here */
	uint64_t c0 = dealt(k + 1, grid.columns, grid.column);
	if (in_k_row && in_k_column) {
		app_block_factor(block(k, k), edge);
		memcpy(diagonal, block(k, k), all * sizeof *diagonal);
	}
	if (in_k_row)
		MPI_Bcast(diagonal, (int)all, MPI_DOUBLE, (int)(k % grid.columns), in_row);
	if (in_k_column)
		MPI_Bcast(diagonal, (int)all, MPI_DOUBLE, (int)(k % grid.rows), in_column);
	for (uint64_t c = c0; c < my_columns && in_k_row; c++) {
		app_block_divide_row(block(k, c * grid.columns), diagonal, edge);
		memcpy(above + c * all, block(k, c * grid.columns), all * sizeof *above);
	}
	for (uint64_t r = r0; r < my_rows && in_k_column; r++) {
		app_block_divide_column(block(r * grid.rows, k), diagonal, edge);
		memcpy(left + r * all, block(r * grid.rows, k), all * sizeof *left);
	}
	MPI_Bcast(above + c0 * all, (int)((my_columns - c0) * all), MPI_DOUBLE,
		  (int)(k % grid.rows), in_column);
	MPI_Bcast(left + r0 * all, (int)((my_rows - r0) * all), MPI_DOUBLE, (int)(k % grid.columns),
		  in_row);
	for (uint64_t r = r0; r < my_rows; r++)
		for (uint64_t c = c0; c < my_columns; c++)
			app_block_inner(part + (r * my_columns + c) * all, left + r * all,
					above + c * all, edge);
}

void program_run(void)
{
	for (uint64_t k = 0; k < blocks; k++)
		iterate(k);
}

uint64_t program_wrong(void)
{
	uint64_t wrong = 0;
	for (uint64_t e = 0; e < my_rows * my_columns * all; e++) {
		double should = expected[place_of(e)];
		wrong += !(fabs(part[e] - should) <= 1e-9 * (1 + fabs(should)));
	}
	return wrong;
}
