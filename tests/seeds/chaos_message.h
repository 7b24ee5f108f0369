/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of chaos_ranks.c: what each is, from the seed alone. */
#ifndef TERN_TESTS_CHAOS_MESSAGE_H
#define TERN_TESTS_CHAOS_MESSAGE_H

#include <tern/tern.h>

#include "lib/chance.h"

/* How a message travels: as a request, or as a gathered item. */
enum way { REQUESTED, POSTED, WAYS };
/* Handlers, three for each way. */
enum { TELL, ASK, ANSWER, HANDLERS };

struct message {
	uint64_t number;
	enum way way;
	bool asks, payload, answer_payload, claimed;
	unsigned n, answer_n;
	size_t len, answer_len;
	uint64_t word[TERN_WORDS_MAX];
};

/* An item has the words of a line, and no payload. */
static inline void message_gather(struct message *l)
{
	l->payload = l->answer_payload = false;
	l->n = l->n < TERN_LINE_WORDS ? l->n : TERN_LINE_WORDS;
	l->answer_n = l->answer_n < TERN_LINE_WORDS ? l->answer_n : TERN_LINE_WORDS;
}

/* The i-th message of a session from one rank to another. */
static inline struct message message_drawn(uint64_t seed, uint32_t session, enum way way,
					   uint32_t from, uint32_t to, uint32_t i)
{
	uint64_t which = (uint64_t)way << 56 | (uint64_t)session << 48 | (uint64_t)from << 40 |
			 (uint64_t)to << 32 | i;
	struct chance c = { chance_of(seed, which) };
	struct message l = { .number = chance_next(&c), .way = way };
	l.asks = chance_one_in(&c, 2);
	l.n = chance_one_in(&c, 2) ? chance_below(&c, 2) : chance_below(&c, TERN_WORDS_MAX + 1);
	l.payload = chance_one_in(&c, 4);
	l.answer_payload = chance_one_in(&c, 8);
	l.claimed = chance_one_in(&c, 2);
	l.len = chance_one_in(&c, 3) ? chance_below(&c, TERN_PAYLOAD_MAX + 1)
				     : chance_below(&c, 100);
	l.answer_len = l.len;
	if (chance_one_in(&c, 8)) /* what only a request carries */
		l.len += chance_below(&c, TERN_REQUEST_MAX - (uint32_t)l.len + 1);
	for (unsigned k = 0; k < l.n; k++)
		l.word[k] = chance_next(&c);
	l.answer_n = 2 + chance_below(&c, TERN_WORDS_MAX - 1);
	if (way == POSTED)
		message_gather(&l);
	return l;
}

static inline unsigned handler_id(enum way way, unsigned handler)
{
	return way * HANDLERS + handler;
}

/* The k-th word of the answer to the i-th message. */
static inline uint64_t answer_word(const struct message *l, uint32_t i, unsigned k)
{
	return k ? l->number + k : i;
}

#endif
