/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting. What a rank has sent follows from where its lanes stand, and what it has handled
 * is known once a batch; so nothing is counted for each message unless TERN_STATS asks for
 * it, and then only by the loop that handles messages. Slow paths always count.
 */
#ifndef TERN_ENDPOINT_COUNT_H
#define TERN_ENDPOINT_COUNT_H

#include "base/clock.h"
#include "endpoint/endpoint.h"

/*
 * Reading the clock twice costs as much as five messages, so the time of one handler in 256 is
 * taken, and at first, so that a short program sees some too, of one in 16.
 */
enum { TIMED_OFTEN = 16, TIMED_SELDOM = 256, TIMED_FIRST = 4096 };

/* Of a drain under way; in registers, so that a message writes to one count and nothing else. */
struct tally {
	uint64_t nth;   /* messages that the endpoint has handled before this one */
	uint64_t every; /* less 1: which of those are timed */
	uint64_t bytes;
};

static inline struct tally tally_begin(const struct endpoint *e)
{
	uint64_t served = endpoint_served(e);
	return (struct tally){ .nth = served,
			       .every = (served < TIMED_FIRST ? TIMED_OFTEN : TIMED_SELDOM) - 1 };
}

static inline void pulse_add(struct endpoint *e, enum pulse_count what, uint64_t n)
{
	stats_add(&e->pulse->count[what], n);
}

/* Runs the handler of `m`, taking the time. */
void count_timed(struct endpoint *e, const tern_msg *m, unsigned id);

/* Runs and counts the handler of `m`; `bits` has its number and how many words there are. */
static inline __attribute__((always_inline)) void
count_handler(struct endpoint *e, const tern_msg *m, uint64_t bits, struct tally *y)
{
	unsigned id = (unsigned)(bits >> TERN_ID_SHIFT), words = bits & TERN_HEAD_WORDS;
	stats_add(&e->stats->handler[id].count[words], 1);
	y->bytes += words * sizeof(uint64_t);
	if (y->nth++ & y->every)
		e->t->handler[id](e->t, m);
	else
		count_timed(e, m, id);
}

/* What the drain that is over has handled, for the peer. */
void count_batch(struct endpoint *e, const struct tern_inlet *in, unsigned handled, uint64_t bytes);

/* A call that cannot go on for want of room. Begins at most once; ends if it has begun. */
struct stall {
	bool begun;
	uint64_t tick;
};
void stall_begin(struct endpoint *e, struct stall *s);
/* `what` is the count of such stalls; the one behind it is their time. */
void stall_end(struct endpoint *e, const struct stall *s, enum pulse_count what);

/* Messages of an inlet were handled, in any rank. */
static inline void poll_note(struct endpoint *e, struct tern_inlet *in, uint64_t handled)
{
	in->handled += handled;
	stats_bump(&e->pulse->served, handled);
}

#endif
