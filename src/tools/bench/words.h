/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers and loops for messages of each number of words: what a program would write. */
#ifndef TERN_TOOLS_BENCH_WORDS_H
#define TERN_TOOLS_BENCH_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include <tern/tern.h>

#include "tools/bench/test.h"

enum {
	WORDS_TAKE = 0, /* + the number of words: sums them */
	WORDS_ASK = 8,  /* + the number of words: replies with as many */
	WORDS_ANSWER = 16,
	WORDS_LAST, /* ends words_serve(); answered */
	WORDS_FREE, /* the first handler number that is not used here */
};

int words_register(tern *t);

/* `count` requests to rank `to`; 0 or the first error. */
int words_send(tern *t, uint32_t to, unsigned words, uint64_t count);
/* The same to the handler of any number, which gets the words and need not read them. */
int words_send_to(tern *t, uint32_t to, unsigned id, unsigned words, uint64_t count);
/* `count` requests to rank 1, each sent when the one before has been answered. */
int words_trips(tern *t, unsigned words, uint64_t count);
int words_trips_with(tern *t, uint32_t with, unsigned words, uint64_t count);
/* Tells `to` that this was the last of a round, and returns when everything has been handled. */
int words_last(tern *t, uint32_t to);
/* Handles what comes until `senders` ranks have sent their last. */
int words_serve(tern *t, uint32_t senders);
/* Whether a last has come that words_serve() has not waited for, without serving anything. */
bool words_over(void);

/*
 * What most phases do: rank 0 acts, and rank 1 handles what comes until it is told that this was
 * the last. Ns of rank 0 until `act` has returned, or until all of it has been handled; 1
 * elsewhere.
 */
typedef int words_act(struct bench_rank *p);
uint64_t words_acted(struct bench_rank *p, words_act *act);
uint64_t words_handled(struct bench_rank *p, words_act *act);
/* The same after `warm` with a count of 1, untimed: the other rank may still be on its way. */
uint64_t words_acted_after(struct bench_rank *p, words_act *warm, words_act *act);
uint64_t words_handled_after(struct bench_rank *p, words_act *warm, words_act *act);

/* What a round-trip test measures: ns for one. */
double words_trip_time(struct bench_rank *p);
int words_open(struct bench_rank *p); /* registers the handlers */

#endif
