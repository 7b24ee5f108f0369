/* SPDX-License-Identifier: BSD-3-Clause */
/* Index gather in buckets: sizes are the table, words that a rank gets, and how many at a time. */
#include "program.h"

#include <string.h>

const char *const program_name = "gather";

static uint64_t table_size, words, ahead, first, *table, *wanted, *asked, *answer, *got, *result;
static int *count, *place, *asked_count, *asked_place, *fill;

void program_open(const uint64_t *size)
{
	table_size = size[0], words = size[1], ahead = size[2];
	first = first_of(table_size, rank);
	table = memory(count_of(table_size, rank), sizeof *table);
	for (uint64_t i = 0; i < count_of(table_size, rank); i++)
		table[i] = app_hash(~(first + i));
	wanted = memory(2 * ahead, sizeof *wanted);
	got = wanted + ahead;
	asked = memory(2 * ahead * (uint64_t)ranks, sizeof *asked);
	answer = asked + ahead * (uint64_t)ranks;
	result = memory(words, sizeof *result);
	count = memory(5 * (uint64_t)ranks, sizeof *count);
	place = count + ranks, asked_count = place + ranks, asked_place = asked_count + ranks;
	fill = asked_place + ranks;
}

void program_reset(void)
{
	memset(result, 0, words * sizeof *result);
}

static uint64_t wish(uint64_t k)
{
	return app_update_of(table_size, 0, (uint32_t)rank, k).index;
}

static uint32_t owner(uint64_t k)
{
	return app_part_of(table_size, (uint64_t)ranks, wish(k));
}

/* Asks for the words k to end - 1 in one exchange, gets them in another. */
static void exchange(uint64_t k, uint64_t end)
{
	memset(count, 0, (size_t)ranks * sizeof *count);
	for (uint64_t i = k; i < end; i++)
		count[owner(i)]++;
	places_of(count, place);
	memcpy(fill, place, (size_t)ranks * sizeof *fill);
	for (uint64_t i = k; i < end; i++)
		wanted[fill[owner(i)]++] = wish(i);
	MPI_Alltoall(count, 1, MPI_INT, asked_count, 1, MPI_INT, MPI_COMM_WORLD);
	int all = places_of(asked_count, asked_place);
	MPI_Alltoallv(wanted, count, place, MPI_UINT64_T, asked, asked_count, asked_place,
		      MPI_UINT64_T, MPI_COMM_WORLD);
	for (int i = 0; i < all; i++)
		answer[i] = table[asked[i] - first];
	MPI_Alltoallv(answer, asked_count, asked_place, MPI_UINT64_T, got, count, place,
		      MPI_UINT64_T, MPI_COMM_WORLD);
	for (uint64_t i = k; i < end; i++)
		result[i] = got[place[owner(i)]++];
}

void program_run(void)
{
	for (uint64_t k = 0; k < words; k += ahead)
		exchange(k, k + ahead < words ? k + ahead : words);
	MPI_Barrier(MPI_COMM_WORLD);
}

uint64_t program_wrong(void)
{
	uint64_t wrong = 0;
	for (uint64_t k = 0; k < words; k++)
		wrong += result[k] != app_hash(~wish(k));
	return wrong;
}
