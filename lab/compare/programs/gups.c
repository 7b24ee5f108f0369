/* SPDX-License-Identifier: BSD-3-Clause */
/* Random updates in buckets: sizes are the table, updates of a rank, and how many it is ahead. */
#include "program.h"

#include <string.h>

const char *const program_name = "gups";

static uint64_t table_size, updates, ahead, first, mine, *table;
static struct app_update *made, *bucket, *come; /* as they are made, and by rank */
static int *count, *place, *come_count, *come_place, *fill;
static MPI_Datatype update_type;

void program_open(const uint64_t *size)
{
	table_size = size[0], updates = size[1], ahead = size[2];
	first = first_of(table_size, rank), mine = count_of(table_size, rank);
	table = memory(mine, sizeof *table);
	made = memory(2 * ahead, sizeof *made);
	bucket = made + ahead;
	come = memory(ahead * (uint64_t)ranks, sizeof *come);
	count = memory(5 * (uint64_t)ranks, sizeof *count);
	place = count + ranks, come_count = place + ranks, come_place = come_count + ranks;
	fill = come_place + ranks;
	MPI_Type_contiguous(2, MPI_UINT64_T, &update_type);
	MPI_Type_commit(&update_type);
}

void program_reset(void)
{
	memset(table, 0, mine * sizeof *table);
}

static uint32_t owner(struct app_update u)
{
	return app_part_of(table_size, (uint64_t)ranks, u.index);
}

void program_run(void)
{
	for (uint64_t k = 0; k < updates; k += ahead) {
		uint64_t end = k + ahead < updates ? k + ahead : updates;
		memset(count, 0, (size_t)ranks * sizeof *count);
		for (uint64_t i = k; i < end; i++) {
			made[i - k] = app_update_of(table_size, 0, (uint32_t)rank, i);
			count[owner(made[i - k])]++;
		}
		places_of(count, place);
		memcpy(fill, place, (size_t)ranks * sizeof *fill);
		for (uint64_t i = k; i < end; i++)
			bucket[fill[owner(made[i - k])]++] = made[i - k];
		MPI_Alltoall(count, 1, MPI_INT, come_count, 1, MPI_INT, MPI_COMM_WORLD);
		int all = places_of(come_count, come_place);
		MPI_Alltoallv(bucket, count, place, update_type, come, come_count, come_place,
			      update_type, MPI_COMM_WORLD);
		for (int i = 0; i < all; i++)
			table[come[i].index - first] += come[i].value;
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

uint64_t program_wrong(void)
{
	uint64_t wrong = 0;
	for (int r = 0; r < ranks; r++)
		for (uint64_t k = 0; k < updates; k++) {
			struct app_update u = app_update_of(table_size, 0, (uint32_t)r, k);
			if (u.index - first < mine)
				table[u.index - first] -= u.value;
		}
	for (uint64_t i = 0; i < mine; i++)
		wrong += table[i] != 0;
	return wrong;
}
