/* SPDX-License-Identifier: BSD-3-Clause */
/* Bucket sort: the size is how many keys a rank has. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

const char *const program_name = "sort";

static uint64_t keys, *key, *bucket, *expected, expected_count, bucket_count;
static int *count, *place, *come_count, *come_place;

/* All keys, sorted by one rank; this rank's bucket is a part of them. */
void program_open(const uint64_t *size)
{
	uint64_t n = (keys = size[0]) * (uint64_t)ranks, begin = 0;
	expected = memory(n, sizeof *expected);
	for (uint64_t i = 0; i < n; i++)
		expected[i] = app_key(i);
	qsort(expected, n, sizeof *expected, app_key_compare);
	while (begin < n && app_key_bucket(expected[begin], (uint32_t)ranks) < (uint32_t)rank)
		begin++;
	for (expected += begin; begin + expected_count < n; expected_count++)
		if (app_key_bucket(expected[expected_count], (uint32_t)ranks) != (uint32_t)rank)
			break;
	key = memory(keys, sizeof *key);
	bucket = memory(expected_count, sizeof *bucket);
	count = memory(4 * (uint64_t)ranks, sizeof *count);
	place = count + ranks, come_count = place + ranks, come_place = come_count + ranks;
}

void program_reset(void)
{
	for (uint64_t i = 0; i < keys; i++)
		key[i] = app_key((uint64_t)rank * keys + i);
	memset(bucket, 0, expected_count * sizeof *bucket);
	memset(count, 0, (size_t)ranks * sizeof *count);
}

/* Sorted keys lie in the order of their buckets. */
void program_run(void)
{
	qsort(key, keys, sizeof *key, app_key_compare);
	for (uint64_t i = 0; i < keys; i++)
		count[app_key_bucket(key[i], (uint32_t)ranks)]++;
	places_of(count, place);
	MPI_Alltoall(count, 1, MPI_INT, come_count, 1, MPI_INT, MPI_COMM_WORLD);
	bucket_count = (uint64_t)places_of(come_count, come_place);
	MPI_Alltoallv(key, count, place, MPI_UINT64_T, bucket, come_count, come_place, MPI_UINT64_T,
		      MPI_COMM_WORLD);
	qsort(bucket, bucket_count, sizeof *bucket, app_key_compare);
}

uint64_t program_wrong(void)
{
	uint64_t wrong = bucket_count != expected_count;
	for (uint64_t i = 0; i < expected_count; i++)
		wrong += bucket[i] != expected[i];
	return wrong;
}
