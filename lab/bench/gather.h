/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathering by hand: what a programmer would write for very many items of 16 bytes without a
 * library. Every rank has a buffer of 8 lines for each other one. A full buffer is copied into a
 * ring in the receiver's memory. After each GATHER_LOOK items, and whenever a ring is full, the
 * sender looks at all of its own rings, and calls a function for each item.
 */
#ifndef TERN_LAB_BENCH_GATHER_H
#define TERN_LAB_BENCH_GATHER_H

#include "lab/bench/test.h"

enum { GATHER_LINES = 256, GATHER_BUFFER = 8, GATHER_LOOK = 128, GATHER_RANKS = 64 };

typedef void gather_handler(const uint64_t *word); /* two words */

/* Allocates the rings in the ranks' heaps; every rank calls it. 0, or a negative code. */
int gather_hand_open(struct bench_rank *p, gather_handler *handler);

/* One item. It may handle what has arrived first, if the ring is full. */
void gather_hand_post(uint32_t to, uint64_t w0, uint64_t w1);

/* Sends what is gathered; returns when all ranks have called it, and all items were handled. */
void gather_hand_barrier(void);

#endif
