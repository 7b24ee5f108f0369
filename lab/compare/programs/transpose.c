/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix transpose by blocks: sizes are rows and columns. Layouts are those of apps/transpose.c. */
#include "program.h"

#include <string.h>

const char *const program_name = "transpose";

static uint64_t rows, columns, my_rows, my_columns, *in, *out, *packed, *landing;
static int *count, *place, *come_count, *come_place;

static uint64_t element(uint64_t i, uint64_t c)
{
	return app_hash(i << 32 | c);
}

void program_open(const uint64_t *size)
{
	rows = size[0], columns = size[1];
	my_rows = count_of(rows, rank), my_columns = count_of(columns, rank);
	in = memory(my_columns * rows, sizeof *in);
	packed = memory(my_columns * rows, sizeof *packed);
	out = memory(my_rows * columns, sizeof *out);
	landing = memory(my_rows * columns, sizeof *landing);
	for (uint64_t c = 0; c < my_columns; c++)
		for (uint64_t i = 0; i < rows; i++)
			in[c * rows + i] = element(i, first_of(columns, rank) + c);
	count = memory(4 * (uint64_t)ranks, sizeof *count);
	place = count + ranks, come_count = place + ranks, come_place = come_count + ranks;
	for (int r = 0; r < ranks; r++) {
		count[r] = (int)(count_of(rows, r) * my_columns);
		come_count[r] = (int)(count_of(columns, r) * my_rows);
	}
	places_of(count, place);
	places_of(come_count, come_place);
}

void program_reset(void)
{
	memset(out, 0, my_rows * columns * sizeof *out);
}

void program_run(void)
{
	for (uint64_t i = 0; i < rows; i++)
		for (uint64_t c = 0; c < my_columns; c++)
			packed[i * my_columns + c] = in[c * rows + i];
	MPI_Alltoallv(packed, count, place, MPI_UINT64_T, landing, come_count, come_place,
		      MPI_UINT64_T, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++) {
		uint64_t n = count_of(columns, r), first = first_of(columns, r);
		for (uint64_t i = 0; i < my_rows; i++)
			memcpy(out + i * columns + first, landing + come_place[r] + i * n,
			       n * sizeof *out);
	}
}

uint64_t program_wrong(void)
{
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < my_rows; i++)
		for (uint64_t c = 0; c < columns; c++)
			wrong += out[i * columns + c] != element(first_of(rows, rank) + i, c);
	return wrong;
}
