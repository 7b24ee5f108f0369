/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank computes that calls nothing: steps in registers, each of which needs the one
 * before.
 */
#ifndef TERN_TOOLS_BENCH_COMPUTE_H
#define TERN_TOOLS_BENCH_COMPUTE_H

#include "tools/bench/test.h"

enum { COMPUTE_PIECE = 512 }; /* steps, about a microsecond */

void compute(uint64_t steps);

/* Where there is a core that no rank has, this rank's progress thread will run there. */
int compute_spare_core(const struct bench_rank *p);

#endif
