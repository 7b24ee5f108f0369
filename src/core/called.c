/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With TERN_CHECK each rank tells all others, before it comes to a barrier, which call that is a
 * part of. What was sent before a barrier is handled when that is over, so each rank then has the
 * calls of all, and a call that meets another one fails at every rank. Ranks that do not check say
 * nothing.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/called.h"
#include "core/layers.h"

/* What a rank has said. Nobody is two barriers ahead, so two places of each rank are enough. */
struct called {
	uint64_t round;
	char name[32]; /* 24 of them in a message: the end stays 0 */
};
enum { CALLED_WORDS = 4 };

static struct called *called_at(struct endpoint *e, uint64_t round, uint32_t rank)
{
	struct barrier_call *b = &e->barrier;
	if (!b->called)
		b->called = memory_new(2 * (size_t)e->t->size, sizeof *b->called);
	return b->called ? &b->called[round % 2 * e->t->size + rank] : NULL;
}

void on_called(tern *t, const tern_msg *m)
{
	struct called *c = called_at(t->own, tern_msg_word(m, 0), tern_msg_src(m));
	uint64_t words[CALLED_WORDS];
	for (unsigned i = 0; i < CALLED_WORDS; i++)
		words[i] = tern_msg_word(m, i);
	if (c)
		memcpy(c, words, sizeof words);
}

/* All, and this rank, too. Who cannot be told is found missing by the barrier itself. */
void called_tell(struct endpoint *e)
{
	struct called own = { .round = e->barrier.round };
	uint64_t words[CALLED_WORDS];
	strncpy(own.name, e->barrier.call ? e->barrier.call : "tern_barrier",
		sizeof words - sizeof own.round);
	memcpy(words, &own, sizeof words);
	/* The barrier in two phases does not wait for room, so a rank may not be told. */
	for (uint32_t rank = 0; rank < e->t->size; rank++)
		(void)(e->barrier.op ? layer_request_now : layer_request)(
			e, rank, CORE_CALLED, NULL, 0, CALLED_WORDS, words);
}

int called_compare(struct endpoint *e)
{
	uint64_t round = e->barrier.round;
	const struct called *first = NULL;
	for (uint32_t rank = 0; rank < e->t->size && e->barrier.called; rank++) {
		const struct called *c = called_at(e, round, rank);
		if (c->round != round)
			continue;
		if (first && strcmp(first->name, c->name) != 0)
			return error_set(-EINVAL,
					 "rank %u calls %s, rank %u %s: all ranks make the same "
					 "calls in the same order",
					 (uint32_t)(first - called_at(e, round, 0)), first->name,
					 rank, c->name);
		first = first ? first : c;
	}
	return 0;
}
