/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints of one thread. A batch is sent while nobody polls, then handled, and
 * every line stays in this core's cache: what remains is the processor's part.
 */
#ifndef TERN_LAB_BENCH_PAIR_H
#define TERN_LAB_BENCH_PAIR_H

#include "lab/bench/test.h"

enum {
	PAIR_BATCH = RAW_LINES / 2, /* requests: always find room, */
	PAIR_REPLIES = 64,          /* and so do as many replies, */
	PAIR_PAYLOADS = 8,          /* and payloads, */
	PAIR_PACKETS = 32,          /* and over a network requests, at most */
};

extern tern *pair[2];
extern uint32_t pair_to; /* where batches go: 1 */

/* Whether time is a simulated machine's: there one rank runs at a time, and nobody disturbs it. */
bool pair_simulated(void);

/* Whether messages go over a network of packets: then whoever waits has to poll. */
bool pair_networked(void);

/*
 * Opens both, and registers the handlers of words.h with them. On a simulated
 * machine, where a process is a node, pair[0] and pair[1] are the rank itself, and ranks 0 and 1
 * send to each other.
 */
int pair_open(struct bench_rank *p);

/* ns since `began`, less what looking at the clock costs: batches are that short. */
uint64_t pair_since(uint64_t began);
uint64_t pair_between(uint64_t began, uint64_t ended);

/* Sends `n` messages of `size` from pair[0] to `pair_to`; what it returns is 0 or an error. */
typedef int pair_send(uint32_t size, unsigned n);

struct pair_batch {
	pair_send *send;
	unsigned n;    /* messages */
	bool answered; /* each by a reply */
};

/*
 * Ns for one message, of batches until p->count of `size` have been sent and handled: to send it
 * from 0 to 1, to handle it there, to handle its reply at 0. Nothing at other ranks than 0.
 */
struct pair_each {
	double send, handle, answer;
};
struct pair_each pair_each(struct bench_rank *p, const struct pair_batch *b, uint32_t size);

/* Of requests with as many words as the size, at rank 0. */
perf_phase words_sending, words_handling;

#endif
