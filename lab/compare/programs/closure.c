/* SPDX-License-Identifier: BSD-3-Clause */
/* Transitive closure by broadcasts in a grid: sizes are vertices and edges in 100. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

const char *const program_name = "closure";

static uint64_t vertices, density, first_row, first_column, my_rows, my_columns;
static uint32_t *part, *expected, *row, *column;

void program_open(const uint64_t *size)
{
	vertices = size[0], density = size[1];
	first_row = app_part(vertices, grid.rows, grid.row);
	my_rows = app_part(vertices, grid.rows, grid.row + 1) - first_row;
	first_column = app_part(vertices, grid.columns, grid.column);
	my_columns = app_part(vertices, grid.columns, grid.column + 1) - first_column;
	part = memory(my_rows * my_columns, sizeof *part);
	row = memory(my_columns, sizeof *row);
	column = memory(my_rows, sizeof *column);
	expected = memory(vertices * vertices, sizeof *expected);
	app_serial_paths(expected, vertices, density);
}

void program_reset(void)
{
	for (uint64_t i = 0; i < my_rows; i++)
		for (uint64_t l = 0; l < my_columns; l++)
			part[i * my_columns + l] =
				app_edge(density, first_row + i, first_column + l);
}

void program_run(void)
{
	for (uint64_t k = 0; k < vertices; k++) {
		uint32_t r = app_part_of(vertices, grid.rows, k);
		uint32_t c = app_part_of(vertices, grid.columns, k);
		if (r == grid.row)
			memcpy(row, part + (k - first_row) * my_columns, my_columns * sizeof *row);
		for (uint64_t i = 0; i < my_rows && c == grid.column; i++)
			column[i] = part[i * my_columns + k - first_column];
		MPI_Bcast(row, (int)my_columns, MPI_UINT32_T, (int)r, in_column);
		MPI_Bcast(column, (int)my_rows, MPI_UINT32_T, (int)c, in_row);
		for (uint64_t i = 0; i < my_rows; i++)
			for (uint64_t l = 0; l < my_columns; l++) {
				uint32_t by = column[i] + row[l], *d = &part[i * my_columns + l];
				*d = by < *d ? by : *d;
			}
	}
}

uint64_t program_wrong(void)
{
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < my_rows; i++)
		for (uint64_t l = 0; l < my_columns; l++)
			wrong += part[i * my_columns + l] !=
				 expected[(first_row + i) * vertices + first_column + l];
	return wrong;
}
