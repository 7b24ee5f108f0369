/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer: its state in an endpoint, and what both kinds of sequences share. */
#include "sequence/sequence.h"

#include <errno.h>

#include "base/error.h"
#include "base/memory.h"

enum { PATIENCE_NS = 2000000, DOUBLINGS = 5 };

unsigned sequence_provided(const struct endpoint *e, uint32_t rank)
{
	return e->site.peer[rank].net->provides;
}

int way_refuse(enum tern_way way, const char *call)
{
	return error_set(
		-EINVAL,
		"%s was given way %d; there are TERN_WAY_AUTO, TERN_WAY_FULL and TERN_WAY_PLAIN",
		call, (int)way);
}

enum tern_way sequence_way(const tern *t, uint32_t rank, enum tern_way way)
{
	const unsigned all = PROVIDES_ORDER | PROVIDES_ROOM | PROVIDES_RELIABLE;
	if (way != TERN_WAY_AUTO)
		return way;
	bool provided = rank < t->size && (sequence_provided(t->own, rank) & all) == all;
	return provided ? TERN_WAY_PLAIN : TERN_WAY_FULL;
}

bool patience_over(struct endpoint *e, struct patience *p)
{
	uint64_t now = e->world->now();
	if (now < p->due)
		return false;
	p->due = now + ((uint64_t)PATIENCE_NS << p->tries);
	p->tries += p->tries < DOUBLINGS;
	return true;
}

static int sequence_open(struct endpoint *e, void *state)
{
	struct sequence *q = state;
	q->e = e;
	q->out = (struct outbound *)(q->in + e->t->size);
	SEQUENCE_MESSAGES(LAYER_ON)
	return 0;
}

static void sequence_close(void *state)
{
	struct sequence *q = state;
	inbound_close(q);
	stream_in_close(q);
	stream_close_all(q);
}

LAYER_FITS(struct sequence, STREAM_PLAIN, SEQUENCE_HANDLERS_END);
const struct layer sequence_layer = {
	.bytes = sizeof(struct sequence),
	.bytes_a_rank = sizeof(struct inbound) + sizeof(struct outbound),
	.open = sequence_open,
	.close = sequence_close,
	/* A block's sender waits, and does it by itself; and it sees that a rank is lost. */
	.progress = stream_progress,
};
