/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a library does for the comparison. Each library has one back end behind these calls, linked
 * with measure.c; so all are measured by the same code. Every rank makes the same calls in the same
 * order. A call that fails writes a sentence and ends the job.
 *
 * PEER_MAY marks what not every library has. measure.c leaves out the rows of a call that the back
 * end does not define: a weak symbol without a definition is NULL.
 */
#ifndef COMPARE_PEER_H
#define COMPARE_PEER_H

#include <stddef.h>
#include <stdint.h>

#define PEER_MAY __attribute__((weak))

void peer_open(int *argc, char ***argv);
void peer_close(void);
int peer_rank(void);
int peer_ranks(void);
void peer_barrier(void);
double peer_max(double value); /* of all ranks, at all */

/* -- Collectives of all ranks */

/* Whoever defines peer_broadcast() has them all, and its barrier is the library's. */
PEER_MAY void peer_broadcast(int root, double *data, size_t n);
PEER_MAY void peer_reduce(int root, const double *in, double *out, size_t n); /* sums */
PEER_MAY void peer_allreduce(const double *in, double *out, size_t n);        /* sums */
PEER_MAY void peer_allgather(const double *in, size_t n, double *out);        /* n of each rank */
PEER_MAY void peer_alltoall(const double *in, double *out, size_t n);         /* n for each rank */

/* Memory for the other calls' data, if the library wants to choose it. */
PEER_MAY double *peer_buffer(size_t bytes);

/* -- Between ranks 0 and 1; the others do nothing */

/*
 * Rank 0 sends the words 0 to count - 1, each when the one before was answered, and rank 1 answers
 * each with the next larger word. The sum of the answers at rank 0. By the library's shortest
 * message, and by its send and receive.
 */
uint64_t peer_trips(uint64_t count);
PEER_MAY uint64_t peer_send_trips(uint64_t count);
/*
 * Rank 0 sends the same words without waiting for answers, rank 1 takes as many: the sum. Up to
 * PEER_BURST words leave rank 0 though rank 1 makes no call.
 */
enum { PEER_BURST = 32 };
void peer_words_send(uint64_t count);
uint64_t peer_words_take(uint64_t count);

enum { PEER_WINDOW = 16 }; /* messages of peer_stream() under way */
/*
 * Rank 0 sends `count` messages of `n` doubles to rank 1, from places of `data` in turn; they lie
 * `apart` doubles from each other, and there are `places` of them. Rank 1 receives them likewise.
 */
void peer_stream(double *data, size_t n, size_t apart, size_t places, uint64_t count);

/*
 * `bytes` at each rank, which the other may write and read. Rank 0 writes to, or reads from, the
 * same place of rank 1's memory, and on return the doubles are there. Rank 1 waits in
 * peer_barrier() or peer_max() meanwhile.
 */
PEER_MAY double *peer_memory(size_t bytes);
PEER_MAY void peer_put(double *at, size_t n);
PEER_MAY void peer_get(double *at, size_t n);

#endif
