/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of `tern logp` do in turn. One set of ranks plays all of it, so that a
 * parameter and what is predicted from it see the same machine: where a phase is for
 * two ranks, the others wait for the next.
 *
 * Figures are nanoseconds for one message, one burst, one exchange or one lap. Each phase
 * does its thing once before it looks at the clock: a rank may still be on its way, and has
 * given up its core if it waited for long.
 */
#ifndef TERN_LAB_LOGP_PHASE_H
#define TERN_LAB_LOGP_PHASE_H

#include "lab/bench/test.h"
#include "lab/bench/words.h"

enum {
	LOGP_ASK = WORDS_FREE, /* a payload that is answered by as much */
	LOGP_ANSWER,
	LOGP_BURST,
	LOGP_STAMP,
	LOGP_BLOCK,
	LOGP_CAME,
	LOGP_TOKEN,
};

/* phase.c: the size is a number of words, or a payload's; words_sending is in bench/pair.h */
enum { LOGP_WORDS, LOGP_BYTES }; /* ways */
perf_phase logp_trip, logp_gap, bytes_sending, bytes_handling;
int logp_bytes_open(struct bench_rank *p);
phase_act logp_payload_fill;
extern char logp_payload[TERN_PAYLOAD_MAX];

/* pattern.c: what is predicted. The open function finds the words of its messages as size. */
enum { LOGP_BLOCKS = 16 };
perf_phase pattern_burst;    /* the size is how many; from the first send to the last handler */
perf_phase pattern_block;    /* one payload of that size, likewise */
perf_phase pattern_blocks;   /* LOGP_BLOCKS of them */
perf_phase pattern_exchange; /* every rank sends as many as the size says to every other */
perf_phase pattern_ring;     /* a token, once around */
perf_phase pattern_trips;    /* a round trip between neighbours, the mean over all of them */
int logp_pattern_open(struct bench_rank *p);

#endif
