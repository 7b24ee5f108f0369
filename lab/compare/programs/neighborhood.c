/* SPDX-License-Identifier: BSD-3-Clause */
/* Texture of an image, sections by MPI_Reduce_scatter: sizes are bits of a pixel, and the side. */
#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const program_name = "neighborhood";

enum { CLASSES = 8, FARTHEST = 5 };
static const int right[CLASSES] = { 1, 1, 0, -1, 5, 5, 0, -5 };
static const int below[CLASSES] = { 0, 1, 1, 1, 0, 5, 5, 5 };
static uint64_t bits, side, bins, first, mine, first_bin, my_bins;
static uint16_t *image; /* own rows, and FARTHEST below them */
static uint32_t *histogram, *total, *expected;
static int *count;
static double descriptor[CLASSES][2], expected_descriptor[CLASSES][2];

/* Sums and differences lie in one histogram of 2 * bins, which is dealt out in blocks. */
void program_open(const uint64_t *size)
{
	bits = size[0], side = size[1], bins = UINT64_C(2) << bits;
	first = first_of(side, rank), mine = count_of(side, rank);
	first_bin = first_of(2 * bins, rank), my_bins = count_of(2 * bins, rank);
	image = memory((mine + FARTHEST) * side, sizeof *image);
	histogram = memory(2 * bins, sizeof *histogram);
	total = memory(CLASSES * my_bins, sizeof *total);
	expected = memory(CLASSES * 2 * bins, sizeof *expected);
	count = memory((uint64_t)ranks, sizeof *count);
	for (int r = 0; r < ranks; r++)
		count[r] = (int)count_of(2 * bins, r);
	for (int k = 0; k < CLASSES; k++) {
		uint32_t *h = expected + (uint64_t)k * 2 * bins;
		uint64_t pairs = app_serial_pairs(h, bits, side, right[k], below[k]);
		app_describe(h, 2 * bins, (double)pairs, expected_descriptor[k]);
	}
}

void program_reset(void)
{
	memset(image, 0, (mine + FARTHEST) * side * sizeof *image);
	for (uint64_t i = 0; i < mine * side; i++)
		image[i] = app_pixel(bits, first + i / side, i % side);
	memset(descriptor, 0, sizeof descriptor);
}

/* The rows below a rank's own may be of several ranks. */
static void rows_get(void)
{
	MPI_Request request[FARTHEST], *sent = memory(FARTHEST * (uint64_t)ranks, sizeof *sent);
	int n = 0, sends = 0;
	for (int r = 0; r < ranks; r++)
		for (uint64_t d = 0; d < FARTHEST && count_of(side, r); d++) {
			uint64_t row = first_of(side, r + 1) + d;
			if (row >= side || row < first || row >= first + mine || r == rank)
				continue;
			MPI_Isend(image + (row - first) * side, (int)side, MPI_UINT16_T, r, (int)d,
				  MPI_COMM_WORLD, &sent[sends++]);
		}
	for (uint64_t d = 0; d < FARTHEST && mine && first + mine + d < side; d++)
		MPI_Irecv(image + (mine + d) * side, (int)side, MPI_UINT16_T,
			  (int)app_part_of(side, (uint64_t)ranks, first + mine + d), (int)d,
			  MPI_COMM_WORLD, &request[n++]);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	MPI_Waitall(sends, sent, MPI_STATUSES_IGNORE);
	free(sent);
}

static uint64_t pairs_count(int k)
{
	uint64_t pairs = 0;
	memset(histogram, 0, 2 * bins * sizeof *histogram);
	for (uint64_t l = 0; l < mine && first + l + (uint64_t)below[k] < side; l++)
		for (int c = right[k] < 0 ? -right[k] : 0; c < (int)side; c++) {
			if (c + right[k] >= (int)side)
				break;
			int one = image[l * side + (uint64_t)c];
			int two = image[(l + (uint64_t)below[k]) * side + (uint64_t)(c + right[k])];
			histogram[one + two]++;
			histogram[bins + (uint64_t)((int)(bins / 2) + one - two)]++;
			pairs++;
		}
	return pairs;
}

void program_run(void)
{
	rows_get();
	for (int k = 0; k < CLASSES; k++) {
		uint32_t *sum = total + (uint64_t)k * my_bins;
		double pairs = sum_all((double)pairs_count(k)), part[2] = { 0, 0 };
		MPI_Reduce_scatter(histogram, sum, count, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
		app_describe(sum, my_bins, pairs, part);
		MPI_Allreduce(part, descriptor[k], 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
}

uint64_t program_wrong(void)
{
	uint64_t wrong = 0;
	for (uint64_t k = 0; k < CLASSES; k++) {
		for (uint64_t i = 0; i < my_bins; i++)
			wrong += total[k * my_bins + i] != expected[k * 2 * bins + first_bin + i];
		for (int i = 0; i < 2; i++)
			wrong += !(fabs(descriptor[k][i] - expected_descriptor[k][i]) <=
				   1e-9 * (1 + fabs(expected_descriptor[k][i])));
	}
	return wrong;
}
