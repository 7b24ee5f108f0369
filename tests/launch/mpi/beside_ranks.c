/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI and Tern in one program, in the order that the argument says, one letter for each step:
 *
 *   I MPI_Init   T MPI_Init_thread, and a thread that exchanges messages from then on
 *   F MPI_Finalize
 *   O tern_open  A the same over MPI_COMM_WORLD  S over every second rank  C tern_close
 *   X the step before was refused: its sentence is printed
 *
 * After each step, what is there is used. tests/launch/mpi_test.sh compiles this with each MPI.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

static tern *t;
static tern_flag got;
static int active, rank, size, refused, halved;
static char sentence[1000];
static MPI_Comm half = MPI_COMM_NULL, apart;
static pthread_t thread;
static atomic_int threads, stop;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "beside_ranks: rank %d: %s: %s\n", rank, what, why);
	exit(1);
}

static void must(const char *what, int rc)
{
	if (rc)
		fail(what, tern_strerror(rc));
}

static void on_token(tern *e, const tern_msg *m)
{
	tern_signal(e, &got, tern_msg_word(m, 0) == 7);
}

/* Around a ring of those who are in the job. */
static void tern_used(int mpi_rank, int mpi_size)
{
	if (active && ((int)tern_rank(t) != mpi_rank || (int)tern_size(t) != mpi_size))
		fail("ranks", "Tern's are not MPI's");
	must("tern_barrier", tern_barrier(t));
	must("tern_request", tern_request(t, (tern_rank(t) + 1) % tern_size(t), 1, 7));
	must("tern_wait", tern_wait(t, &got, 1));
	must("tern_barrier", tern_barrier(t));
}

static void mpi_used(void)
{
	int one = 1, sum = 0;
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum != size)
		fail("MPI_Allreduce", "the sum is wrong");
}

static void *exchange(void *arg)
{
	(void)arg;
	for (int all = 0, mine; !all;) {
		mine = atomic_load(&stop);
		MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, apart);
	}
	return NULL;
}

static void mpi_begin(int threaded)
{
	int level = MPI_THREAD_MULTIPLE;
	if (threaded)
		MPI_Init_thread(NULL, NULL, level, &level);
	else
		MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	active = 1;
	if (!threaded || level != MPI_THREAD_MULTIPLE)
		return;
	MPI_Comm_dup(MPI_COMM_WORLD, &apart);
	atomic_store(&threads, pthread_create(&thread, NULL, exchange, NULL) == 0);
}

static void mpi_end(void)
{
	if (atomic_exchange(&threads, 0)) {
		atomic_store(&stop, 1);
		pthread_join(thread, NULL);
		MPI_Comm_free(&apart);
	}
	MPI_Comm_free(&half);
	MPI_Finalize();
	active = 0;
}

static int gather(void *arg, const void *mine, void *all, size_t len)
{
	return MPI_Allgather(mine, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, *(MPI_Comm *)arg) ==
			       MPI_SUCCESS
		       ? 0
		       : -1;
}

static int open_over(MPI_Comm *comm)
{
	int r, n;
	MPI_Comm_rank(*comm, &r);
	MPI_Comm_size(*comm, &n);
	tern_options o = {
		.allgather = gather, .allgather_arg = comm, .rank = (uint32_t)r, .size = (uint32_t)n
	};
	return tern_open(&t, &o);
}

static void step(char what)
{
	static MPI_Comm world = MPI_COMM_WORLD;
	int rc = 0, r, n;
	if (what == 'I' || what == 'T')
		mpi_begin(what == 'T');
	else if (what == 'F')
		mpi_end();
	else if (what == 'C') {
		must("tern_close", tern_close(t));
		t = NULL;
	} else if (what == 'X') {
		if (!refused)
			fail("X", "it was not refused");
		printf("refused: %s\n", sentence);
		refused = 0;
	} else
		rc = what == 'A'   ? open_over(&world)
		     : what == 'S' ? open_over(&half)
				   : tern_open(&t, NULL);
	if (refused)
		fail("tern_open", sentence);
	if ((refused = rc != 0))
		snprintf(sentence, sizeof sentence, "%s", tern_strerror(rc));
	else if (strchr("OAS", what))
		must("tern_on", tern_on(t, 1, on_token));
	if (what == 'S' || what == 'C')
		halved = what == 'S';
	r = rank;
	n = size;
	if (active && halved) {
		MPI_Comm_rank(half, &r);
		MPI_Comm_size(half, &n);
	}
	if (t)
		tern_used(r, n);
	if (active)
		mpi_used();
}

int main(int argc, char **argv)
{
	for (const char *c = argc > 1 ? argv[1] : ""; *c; c++)
		step(*c);
	printf("rank %d of %d: %s is done\n", rank, size, argc > 1 ? argv[1] : "");
	return refused;
}
