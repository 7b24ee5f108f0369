/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the tests of the memory layer move data between. */
#ifndef TERN_LAB_BENCH_PLACE_H
#define TERN_LAB_BENCH_PLACE_H

#include <tern/mem.h>

#include "lab/bench/test.h"

/* Heap memory at the same offset of ranks 0 and 1. */
extern struct place {
	char *own, *there; /* this rank's, and the other's as it is mapped here */
	tern_addr addr;    /* of the other's */
} place;

/*
 * Both ranks call it. Afterwards every page has been touched by both, and every line is
 * clean: written once by its owner, then read by the other.
 */
int place_make(struct bench_rank *p, size_t bytes);
phase_act place_open; /* as many bytes as the size */

/* Private memory of each rank, of as many bytes as the size, registered. */
extern struct private_place {
	char *own;
	tern_addr addr;    /* of the other rank's */
	uint64_t there;    /* its address in that process, */
	int32_t there_pid; /* which is this */
} private;

phase_act private_open;

/* A memcpy that the compiler cannot leave out. */
void place_copy(char *to, const char *from, size_t len);
static inline int place_copied(char *to, const char *from, size_t len)
{
	place_copy(to, from, len);
	return 0;
}

#endif
