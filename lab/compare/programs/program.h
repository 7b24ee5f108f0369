/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of apps/ as one would write them with MPI, each less than a page. The inputs, and the
 * serial results that they are compared with, are those of apps/frame. program.c has main(): it
 * times rounds and prints a line for each. Every rank calls every function.
 */
#ifndef COMPARE_PROGRAM_H
#define COMPARE_PROGRAM_H

#include <mpi.h>
#include <stddef.h>

#include "frame/number.h"

/* -- A program defines */

extern const char *const program_name;
void program_open(const uint64_t *size); /* its sizes, in the order of the command line */
void program_reset(void);                /* before a round */
void program_run(void);                  /* what is timed */
uint64_t program_wrong(void);            /* elements of this rank that differ */

/* -- and finds */

extern int rank, ranks;

void *memory(uint64_t count, size_t each); /* cleared, or the job ends */
uint64_t first_of(uint64_t n, int r);      /* the first of n things that rank r has */
uint64_t count_of(uint64_t n, int r);
/* Where each rank's part begins, behind each other; the sum of the counts. */
int places_of(const int *count, int *place);
double sum_all(double value);

#endif
