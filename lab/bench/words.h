/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers and loops for messages of each number of words: what a program would write. */
#ifndef TERN_LAB_BENCH_WORDS_H
#define TERN_LAB_BENCH_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include <tern/tern.h>

#include "lab/bench/test.h"

enum {
	WORDS_TAKE = 0,    /* + the number of words: sums them */
	WORDS_ASK = 16,    /* + the number of words: replies with as many */
	WORDS_ANSWER = 32, /* what words_answered() waits for */
	WORDS_LAST,        /* ends words_serve(); answered */
	WORDS_LAND,        /* counts a message, and reads nothing of it */
	WORDS_READ,        /* reads its payload */
	WORDS_FREE,        /* the first handler number that is not used here */
};

int words_register(tern *t);                 /* every rank of a test has done so */
void words_read(tern *t, const tern_msg *m); /* reads a payload, as the handler WORDS_READ does */
/* Registers `n` handlers, the first with the number `first`. */
int handlers_on(tern *t, unsigned first, tern_handler *const *handlers, unsigned n);

/* `count` requests to rank `to`; 0 or the first error. */
int words_send(tern *t, uint32_t to, unsigned words, uint64_t count);
/* The same to the handler of any number, which gets the words and need not read them. */
int words_send_to(tern *t, uint32_t to, unsigned id, unsigned words, uint64_t count);
/* `count` requests to rank 1, each sent when the one before has been answered. */
int words_trips(tern *t, unsigned words, uint64_t count);
int words_trips_with(tern *t, uint32_t with, unsigned words, uint64_t count);
extern _Atomic uint64_t words_answers; /* that have come and were not waited for */
/* Waits for one WORDS_ANSWER if what was sent for it was sent: if `rc` is 0. 0, or the error. */
static inline int words_answered(tern *t, int rc)
{
	return rc ? rc : tern_wait(t, &words_answers, 1);
}

/* Tells `to` that this was the last of a round, and returns when everything has been handled. */
int words_last(tern *t, uint32_t to);
/* Handles what comes until `senders` ranks have sent their last. */
int words_serve(tern *t, uint32_t senders);
/* Whether a last has come that words_serve() has not waited for, without serving anything. */
bool words_over(void);

/* The figure of a phase, by the unit that it is wanted in. */
double phase_figure(struct bench_rank *p, const struct phase *f, const char *unit);

/*
 * Ns of rank 0 for a phase of PHASE_ACTED or PHASE_HANDLED, 1 elsewhere; after `warm` with a count
 * of 1, untimed: the other rank may still be on its way.
 */
uint64_t words_acted_after(struct bench_rank *p, phase_act *warm, phase_act *act);
perf_phase words_acted; /* ns for each of the phase's acts, after one that is not timed */
/* Ns for each of `count` acts of all ranks, after one that is not timed. */
double acts_ns(struct bench_rank *p, phase_act *act);
uint64_t words_handled_after(struct bench_rank *p, phase_act *warm, phase_act *act);

/*
 * The papers' phases for overheads, of three ranks. Ns for each message: rank 0 sends to ranks 1
 * and 2 in turn, and is the bottleneck; ranks 1 and 2 send half of them each to rank 0, and the
 * receiver is. Until all have been handled. Takes are what receivers do before they serve, or NULL.
 */
double fan_out_ns(struct bench_rank *p, phase_act *sends, phase_act *takes);
double fan_in_ns(struct bench_rank *p, phase_act *sends, phase_act *takes);
/* The same with as many words as the size. */
perf_phase words_two_receivers, words_two_senders;

phase_act words_trips_of; /* round trips with rank 1, of as many words as the size */
phase_act words_sends_of; /* requests to rank 1, likewise */

#endif
