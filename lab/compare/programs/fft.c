/* SPDX-License-Identifier: BSD-3-Clause */
/* FFT with one remap, by MPI_Alltoall: the size is how many points; ranks are a power of 2. */
#include "program.h"

#include <math.h>
#include <stdio.h>

const char *const program_name = "fft";

static uint64_t points, local;
static double complex *cyclic, *blocked, *landing, *expected, *root;

void program_open(const uint64_t *size)
{
	uint64_t p = (uint64_t)ranks;
	points = size[0];
	if (p & (p - 1) || points & (points - 1) || points < p * p) {
		fprintf(stderr, "fft: ranks and points are powers of 2, and points >= ranks^2\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	local = points / p;
	cyclic = memory(local, sizeof *cyclic);
	blocked = memory(local, sizeof *blocked);
	landing = memory(local, sizeof *landing);
	root = memory(points, sizeof *root);
	expected = memory(points, sizeof *expected);
	for (uint64_t k = 0; k < points; k++)
		root[k] = cexp(-2 * M_PI * I * (double)k / (double)points);
	app_serial_fft(expected, points);
}

void program_reset(void)
{
	for (uint64_t l = 0; l < local; l++)
		cyclic[l] = app_point(l * (uint64_t)ranks + (uint64_t)rank);
}

/* A column of the butterfly, as in apps/fft.c. */
static void column(double complex *x, uint64_t apart, uint64_t step, uint64_t offset)
{
	uint64_t stride = points / (2 * apart * step);
	for (uint64_t group = 0; group < local; group += 2 * apart)
		for (uint64_t i = 0; i < apart; i++) {
			double complex a = x[group + i], b = x[group + i + apart];
			x[group + i] = a + b;
			x[group + i + apart] = (a - b) * root[(i * step + offset) * stride];
		}
}

/* The points for a rank lie behind each other; it gets every P-th one of its block from each. */
void program_run(void)
{
	uint64_t each = local / (uint64_t)ranks;
	for (uint64_t apart = local / 2; apart >= 1; apart /= 2)
		column(cyclic, apart, (uint64_t)ranks, (uint64_t)rank);
	MPI_Alltoall(cyclic, (int)each, MPI_C_DOUBLE_COMPLEX, landing, (int)each,
		     MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
	for (uint64_t l = 0; l < local; l++)
		blocked[l % each * (uint64_t)ranks + l / each] = landing[l];
	for (uint64_t apart = (uint64_t)ranks / 2; apart >= 1; apart /= 2)
		column(blocked, apart, 1, 0);
}

uint64_t program_wrong(void)
{
	uint64_t wrong = 0;
	for (uint64_t l = 0; l < local; l++) {
		uint64_t at = app_fft_place((uint64_t)rank * local + l, points);
		wrong += !(cabs(blocked[l] - expected[at]) <= 1e-12 * (double)points);
		blocked[l] = 0;
	}
	return wrong;
}
