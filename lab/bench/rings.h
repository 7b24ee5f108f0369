/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings by hand: what a programmer would write for many ranks without a library. Every ordered
 * pair of ranks has a ring of lines in the receiver's memory. A send writes one line; after each
 * RINGS_LOOK sends, and whenever a ring is full, the sender looks at all of its own rings.
 *
 * Gathering by hand, for very many items of 16 bytes: a rank has a buffer of GATHER_BUFFER lines
 * for each other one, and copies it into the ring when it is full. A process does one or the other.
 */
#ifndef TERN_LAB_BENCH_RINGS_H
#define TERN_LAB_BENCH_RINGS_H

#include "lab/bench/test.h"

enum { RINGS_LINES = 256, RINGS_LOOK = 128, GATHER_BUFFER = 8, GATHER_RANKS = 64 };

/* What arrives: four words; the handler knows who sent them. */
typedef void rings_handler(uint32_t from, const uint64_t *word);

/* Allocates the rings in the ranks' heaps; every rank calls it. 0, or a negative code. */
int rings_open(struct bench_rank *p, rings_handler *handler);

/* One message of four words. It may handle what has arrived first, if the ring is full. */
void rings_send(uint32_t to, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3);

/* Counts a send; looks if it is the RINGS_LOOK-th. */
void rings_sent(void);

/* Handles all that has arrived; how many messages. */
unsigned rings_look(void);

/* Returns when all ranks have called it, and all that was sent before has been handled. */
void rings_barrier(void);

/* A word that all ranks see, 0 at first: which phase is over. */
_Atomic uint64_t *rings_word(void);

typedef void gather_handler(const uint64_t *word); /* two words */
int gather_hand_open(struct bench_rank *p, gather_handler *handler);
/* One item. It may handle what has arrived first, if the ring is full. */
void gather_hand_post(uint32_t to, uint64_t w0, uint64_t w1);
/* Sends what is gathered; returns when all ranks have called it, and all items were handled. */
void gather_hand_barrier(void);

#endif
