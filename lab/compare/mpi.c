/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end for MPI, compiled by the wrapper of each implementation. */
#include <mpi.h>
#include <string.h>

#include "peer.h"

enum { TAG_TRIP = 1, TAG_WORD, TAG_STREAM, TAG_DONE, WORDS_WINDOW = 64 };

static int rank, ranks;
static MPI_Win window = MPI_WIN_NULL; /* for puts and gets, over `memory` */
static double *memory;

void peer_open(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

void peer_close(void)
{
	if (window != MPI_WIN_NULL) {
		MPI_Win_unlock_all(window);
		MPI_Win_free(&window);
	}
	MPI_Finalize();
}

int peer_rank(void)
{
	return rank;
}

int peer_ranks(void)
{
	return ranks;
}

/* -- Collectives ------------------------------------------------------------------- */

void peer_barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

void peer_broadcast(int root, double *data, size_t n)
{
	MPI_Bcast(data, (int)n, MPI_DOUBLE, root, MPI_COMM_WORLD);
}

void peer_reduce(int root, const double *in, double *out, size_t n)
{
	MPI_Reduce(in, out, (int)n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
}

void peer_allreduce(const double *in, double *out, size_t n)
{
	MPI_Allreduce(in, out, (int)n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

void peer_allgather(const double *in, size_t n, double *out)
{
	MPI_Allgather(in, (int)n, MPI_DOUBLE, out, (int)n, MPI_DOUBLE, MPI_COMM_WORLD);
}

void peer_alltoall(const double *in, double *out, size_t n)
{
	MPI_Alltoall(in, (int)n, MPI_DOUBLE, out, (int)n, MPI_DOUBLE, MPI_COMM_WORLD);
}

double peer_max(double value)
{
	double most;
	MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

/* -- Between two ranks ------------------------------------------------------------- */

static uint64_t word_receive(int from)
{
	uint64_t word;
	MPI_Recv(&word, 1, MPI_UINT64_T, from, TAG_TRIP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return word;
}

static void word_send(int to, uint64_t word)
{
	MPI_Send(&word, 1, MPI_UINT64_T, to, TAG_TRIP, MPI_COMM_WORLD);
}

uint64_t peer_send_trips(uint64_t count)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < count && rank < 2; i++) {
		if (rank == 1) {
			word_send(0, word_receive(0) + 1);
		} else {
			word_send(1, i);
			sum += word_receive(1);
		}
	}
	return sum;
}

/* MPI has no shorter message than a send. */
uint64_t peer_trips(uint64_t count)
{
	return peer_send_trips(count);
}

/* The words `first` to `first` + n - 1; their sum. */
static uint64_t window_play(uint64_t first, int n)
{
	MPI_Request request[WORDS_WINDOW];
	uint64_t word[WORDS_WINDOW], sum = 0;
	for (int k = 0; k < n; k++) {
		word[k] = first + (uint64_t)k;
		if (rank == 0)
			MPI_Isend(&word[k], 1, MPI_UINT64_T, 1, TAG_WORD, MPI_COMM_WORLD,
				  &request[k]);
		else
			MPI_Irecv(&word[k], 1, MPI_UINT64_T, 0, TAG_WORD, MPI_COMM_WORLD,
				  &request[k]);
	}
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	for (int k = 0; k < n; k++)
		sum += word[k];
	return sum;
}

uint64_t peer_words_take(uint64_t count)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < count; i += WORDS_WINDOW)
		sum += window_play(i, count - i < WORDS_WINDOW ? (int)(count - i) : WORDS_WINDOW);
	return sum;
}

void peer_words_send(uint64_t count)
{
	peer_words_take(count);
}

/* Rank 1 tells rank 0 that it has all. */
static void done(void)
{
	if (rank == 0)
		MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_DONE, MPI_COMM_WORLD);
}

void peer_stream(double *data, size_t n, size_t apart, size_t places, uint64_t count)
{
	MPI_Request request[PEER_WINDOW];
	if (rank > 1)
		return;
	for (uint64_t i = 0; i < count; i++) {
		double *at = data + i % places * apart;
		MPI_Request *r = &request[i % PEER_WINDOW];
		if (i >= PEER_WINDOW)
			MPI_Wait(r, MPI_STATUS_IGNORE);
		if (rank == 0)
			MPI_Isend(at, (int)n, MPI_DOUBLE, 1, TAG_STREAM, MPI_COMM_WORLD, r);
		else
			MPI_Irecv(at, (int)n, MPI_DOUBLE, 0, TAG_STREAM, MPI_COMM_WORLD, r);
	}
	MPI_Waitall(count < PEER_WINDOW ? (int)count : PEER_WINDOW, request, MPI_STATUSES_IGNORE);
	done();
}

/* -- Memory of the other rank ------------------------------------------------------ */

/* peer_close() frees the window. */
double *peer_memory(size_t bytes)
{
	MPI_Win_allocate((MPI_Aint)bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
			 &window);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
	return memory;
}

void peer_put(double *at, size_t n)
{
	MPI_Put(at, (int)n, MPI_DOUBLE, 1, at - memory, (int)n, MPI_DOUBLE, window);
	MPI_Win_flush(1, window);
}

void peer_get(double *at, size_t n)
{
	MPI_Get(at, (int)n, MPI_DOUBLE, 1, at - memory, (int)n, MPI_DOUBLE, window);
	MPI_Win_flush(1, window);
}
