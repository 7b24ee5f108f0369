/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of the programs: PROGRAM ROUNDS SIZE... prints NAME,RANKS,SIZE,NANOSECONDS,RIGHT. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIZES_MOST = 4 };

int rank, ranks;

void *memory(uint64_t count, size_t each)
{
	void *p = calloc(count ? count : 1, each);
	if (!p) {
		fprintf(stderr, "%s: rank %d has no memory\n", program_name, rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

uint64_t first_of(uint64_t n, int r)
{
	return app_part(n, (uint64_t)ranks, (uint64_t)r);
}

uint64_t count_of(uint64_t n, int r)
{
	return first_of(n, r + 1) - first_of(n, r);
}

int places_of(const int *count, int *place)
{
	int all = 0;
	for (int r = 0; r < ranks; r++) {
		place[r] = all;
		all += count[r];
	}
	return all;
}

double sum_all(double value)
{
	MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return value;
}

/* Seconds of the slowest rank. */
static double round_play(void)
{
	double took;
	program_reset();
	MPI_Barrier(MPI_COMM_WORLD);
	took = MPI_Wtime();
	program_run();
	took = MPI_Wtime() - took;
	MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return took;
}

int main(int argc, char **argv)
{
	uint64_t size[SIZES_MOST] = { 0 };
	int right = 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 3 || argc > 2 + SIZES_MOST) {
		fprintf(stderr, "usage: %s ROUNDS SIZE...\n", program_name);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = 2; i < argc; i++)
		size[i - 2] = strtoull(argv[i], NULL, 10);
	program_open(size);
	for (int i = atoi(argv[1]); i > 0; i--) {
		double took = round_play();
		double wrong = sum_all((double)program_wrong());
		right &= wrong == 0;
		if (rank == 0)
			printf("%s,%d,%s,%.1f,%s\n", program_name, ranks, argv[2], took * 1e9,
			       wrong == 0 ? "yes" : "no");
	}
	MPI_Finalize();
	return !right;
}
