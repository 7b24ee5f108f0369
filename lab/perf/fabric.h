/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A provider of libfabric without Tern, between two ranks: what the tests of the network ofi are
 * compared with.
 */
#ifndef TERN_LAB_PERF_FABRIC_H
#define TERN_LAB_PERF_FABRIC_H

#include "lab/bench/test.h"

enum { FABRIC_MOST = 4 << 20 }; /* bytes of a write */

/*
 * Both ranks: opens an endpoint of the provider that TERN_NET names; they tell each other in
 * memory that they share. `waits`: its queue has a descriptor that could be slept on.
 */
int fabric_bare_open(struct bench_rank *p, bool waits);
/* `count` messages of `len` bytes there and back, by fi_tsend and fi_trecv, both sides polling. */
int fabric_bare_trips(struct bench_rank *p, uint64_t count, size_t len);
/*
 * `count` writes of `len` bytes from rank 0 into memory of rank 1, a few of them under way, by
 * fi_write.
 */
int fabric_bare_writes(struct bench_rank *p, uint64_t count, size_t len);

#endif
