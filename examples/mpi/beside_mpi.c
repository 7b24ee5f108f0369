/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tern beside MPI in one program: MPI says how the work is spread and adds up what was found, Tern
 * carries the small messages that come unexpectedly.
 *
 *     mpicc beside_mpi.c $(pkg-config --cflags --libs tern) && mpirun -n 4 ./a.out
 *
 * Each rank draws numbers and sends each to the rank that counts its bin. The job of Tern is that
 * of MPI_COMM_WORLD, because tern_open() finds the same launcher. Here the ranks of a communicator
 * open it instead, with an allgather of their own: that works for any communicator.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/tern.h>

enum { COUNT, NUMBERS = 10000, BINS = 64 };

static uint64_t bin[BINS]; /* of which this rank counts some */

static void on_count(tern *t, const tern_msg *m)
{
	(void)t;
	bin[tern_msg_word(m, 0) % BINS]++;
}

static int gather(void *comm, const void *mine, void *all, size_t len)
{
	int rc =
		MPI_Allgather(mine, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, *(MPI_Comm *)comm);
	return rc == MPI_SUCCESS ? 0 : -1;
}

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "beside_mpi: %s\n", tern_strerror(rc));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	tern *t;
	int rank, size;
	uint64_t mine = 0, all = 0;
	MPI_Comm comm = MPI_COMM_WORLD;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	tern_options o = { .allgather = gather,
			   .allgather_arg = &comm,
			   .rank = (uint32_t)rank,
			   .size = (uint32_t)size };
	must(tern_open(&t, &o));
	must(tern_on(t, COUNT, on_count));
	must(tern_barrier(t)); /* everybody knows the handler */
	srand((unsigned)rank);
	for (int i = 0; i < NUMBERS; i++) {
		unsigned b = (unsigned)rand() % BINS;
		must(tern_request(t, b % (unsigned)size, COUNT, b));
	}
	must(tern_barrier(t)); /* whatever was sent has been counted */
	for (int i = 0; i < BINS; i++)
		mine += bin[i];
	MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, comm);
	if (rank == 0)
		printf("%llu numbers of %d ranks were counted\n", (unsigned long long)all, size);
	must(tern_close(t)); /* before or after MPI_Finalize() */
	MPI_Finalize();
	return all != (uint64_t)NUMBERS * (uint64_t)size;
}
