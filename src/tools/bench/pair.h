/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints of one thread. A batch is sent while nobody polls, then handled, and
 * every line stays in this core's cache: what remains is the processor's part.
 */
#ifndef TERN_TOOLS_BENCH_PAIR_H
#define TERN_TOOLS_BENCH_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include <tern/tern.h>

#include "tools/bench/raw.h"

enum {
	PAIR_BATCH = RAW_LINES / 2, /* requests: always find room, */
	PAIR_REPLIES = 64,          /* and so do as many replies, */
	PAIR_PAYLOADS = 8,          /* and payloads */
};

extern tern *pair[2];

/* Opens both and registers the handlers of words.h with them. */
int pair_open(void);

/* ns since `began`, less what looking at the clock costs: batches are that short. */
uint64_t pair_since(uint64_t began);
uint64_t pair_between(uint64_t began, uint64_t ended);

/* Nanoseconds, of all batches: sending from 0 to 1, handling there, handling replies at 0. */
struct pair_cost {
	uint64_t send, handle, answer;
};

/* Sends `n` messages of `size` from pair[0] to 1; what it returns is 0 or an error. */
typedef int pair_send(uint32_t size, unsigned n);

struct pair_batch {
	pair_send *send;
	unsigned n;    /* messages */
	bool answered; /* each by a reply */
};

/* Batches until `count` messages have been sent and handled; *sent is how many those were. */
int pair_play(const struct pair_batch *b, uint32_t size, uint64_t count, struct pair_cost *c,
	      uint64_t *sent);

#endif
