/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits: what the hardware does between the same processes when no library
 * stands in between. test.h has what ranks do together.
 */
#ifndef TERN_LAB_BENCH_RAW_H
#define TERN_LAB_BENCH_RAW_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring.h"

/*
 * As many lines as a ring has: with fewer, the figure depends on which slice of the
 * cache they happen to live in.
 */
enum { RAW_LEAF = REQUEST_LEAF_LINES, RAW_LINES = RING_LEAVES * RAW_LEAF };

struct raw_line {
	_Alignas(64) _Atomic uint64_t head;
	uint64_t word[7];
};

/* As large, and as far apart, as a payload block. */
struct raw_slot {
	_Alignas(64) _Atomic uint64_t use;
	_Alignas(64) char data[TERN_PAYLOAD_MAX];
};

/* As far apart as large blocks. */
struct raw_large {
	_Alignas(64) char line[64], data[TERN_REQUEST_MAX];
};

/* Memory that the ranks share; zero at first. */
struct raw_arena {
	struct raw_line ping[RAW_LINES], pong[RAW_LINES];
	struct raw_line stream[RAW_LINES + TERN_PREFETCH + 1];
	struct raw_line freed, finished;
	struct raw_line token[TERN_RANKS_MAX];
	struct raw_slot slot[TERN_POOL_BLOCKS];
	struct raw_large large[TERN_POOL_BLOCKS]; /* for copies that a slot is too small for */
};

/* How to wait for another core: the way of a phase that test.h's raw_ functions play. */
enum raw_manner { RAW_BARE, RAW_PAUSE, RAW_YIELD };

/* One rank's place. What has been done counts on from round to round. */
struct raw {
	struct raw_arena *arena;
	bool crowded; /* more ranks than cores: every wait yields */
	uint64_t trips, lines, copies, laps;
};

/* Writing and reading lines that no other core has; `line` has RAW_LINES. */
void raw_write_own(struct raw_line *line, uint64_t first, uint64_t count);
uint64_t raw_read_own(const struct raw_line *line, uint64_t first, uint64_t count);

/* Reads all of it: what the receiver of a payload does, with a message and without. */
uint64_t raw_sum(const void *data, size_t len);

/* Steps in registers that call nothing, each of which needs the one before. */
enum { COMPUTE_PIECE = 512 }; /* steps, about a microsecond */
void compute(uint64_t steps);

/* Where sums go, so that the compiler cannot leave them out. */
extern uint64_t raw_sink;

#endif
