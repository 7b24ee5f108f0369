/* SPDX-License-Identifier: BSD-3-Clause */
/* What networks share: the rings of a pair of ranks, the blocks of a pool, the poll set. */
#include "net/net.h"

#include <errno.h>

#include "base/world.h"
#include "net/talk.h"

void talk_ask(struct site *site, struct talk *k, uint32_t rank, _Atomic uint8_t *heed)
{
	struct tern_inlet *in = &site->peer[rank].replies;
	lane_open(&site->lane[rank], k->requests, REQUEST_LEAF_LINES, &k->requests_freed, heed,
		  site->rank, rank);
	inlet_open(in, k->replies, REPLY_LEAF_LINES, &k->replies_freed, rank, TERN_KIND_REPLY);
	in->answer = site->refuse;
}

void talk_serve(struct site *site, struct talk *k, uint32_t member, uint32_t rank,
		_Atomic uint8_t *heed)
{
	struct peer *p = &site->peer[member];
	inlet_open(&p->requests, k->requests, REQUEST_LEAF_LINES, &k->requests_freed, rank,
		   TERN_KIND_REQUEST);
	p->requests.peer = member;
	lane_open(&p->answer, k->replies, REPLY_LEAF_LINES, &k->replies_freed, heed, site->rank,
		  member);
	p->requests.answer = &p->answer;
	p->answer.gate = &p->requests;
	p->reserve = &k->reserve;
}

/* The first that is free: the caches have it most likely, and few are ever touched. */
/* cost: buffer setup */
static int large_take(struct net *net, struct block **out)
{
	unsigned own = 0; /* that only this endpoint can give back */
	for (unsigned i = 0; i < net->larges; i++) {
		struct block *b = large_at(net, i);
		own += block_is(b, BLOCK_CLAIMED) || block_is(b, BLOCK_KEPT);
		if (!block_is(b, BLOCK_FREE))
			continue;
		block_set(b, BLOCK_CLAIMED);
		*out = b;
		return 0;
	}
	return own == net->larges ? -ENOBUFS : -EAGAIN;
}

int pool_take(struct net *net, size_t len, struct block **out)
{
	if (len > TERN_PAYLOAD_MAX)
		return large_take(net, out);
	unsigned own = 0; /* that only this endpoint can give back */
	for (unsigned i = 0; i < net->blocks; i++) {
		unsigned turn = (net->next + i) % TERN_POOL_BLOCKS;
		struct block *b = pool_at(net, i < TERN_POOL_BLOCKS ? turn : i);
		own += block_is(b, BLOCK_CLAIMED) || block_is(b, BLOCK_KEPT);
		if (!block_is(b, BLOCK_FREE))
			continue;
		block_set(b, BLOCK_CLAIMED);
		if (i < TERN_POOL_BLOCKS)
			net->next = (turn + 1) % TERN_POOL_BLOCKS;
		*out = b;
		return 0;
	}
	return own == net->blocks ? -ENOBUFS : -EAGAIN;
}

static void block_reclaim(struct block *b, uint32_t rank)
{
	if (b->peer == rank && block_is(b, BLOCK_SENT))
		block_set(b, BLOCK_FREE);
}

void pool_reclaim(struct net *net, uint32_t rank)
{
	for (unsigned i = 0; i < net->blocks; i++)
		block_reclaim(pool_at(net, i), rank);
	for (unsigned i = 0; i < net->larges; i++)
		block_reclaim(large_at(net, i), rank);
}

/* cost: protection control */
static bool range_holds(const struct block_range *x, const struct block *b, size_t len)
{
	return len <= x->most && range_has(x, b);
}

/* cost: protection control */
bool net_owns(const struct net *net, uint32_t rank, const char *data, size_t len)
{
	const struct peer *p = &net->site->peer[rank];
	const struct block *b = block_of(data);
	return range_holds(&p->may[0], b, len) || range_holds(&p->may[1], b, len) ||
	       range_holds(&p->may[2], b, len) || range_holds(&net->any[0], b, len) ||
	       range_holds(&net->any[1], b, len);
}

/* -- The poll set: a circle of inlets that begins with the bell ------------------------------ */

/* cost: base status */
void pollset_begin(struct site *site, _Atomic uint64_t *bell)
{
	site->bell = (struct tern_inlet){
		.cursor = (char *)(void *)(uintptr_t)bell,
		.expect = BELL_RUNG, /* a bell is polled like a line whose header is its word */
		.kind = TERN_KIND_BELL,
		.hot = 1,
		.next = &site->bell,
	};
	site->pollset = 0;
}

/* cost: base status */
void pollset_join(struct site *site, struct tern_inlet *in)
{
	in->hot = 1;
	in->seen = NULL;
	in->next = site->bell.next;
	site->bell.next = in;
	site->pollset++;
}

/* cost: base status */
void pollset_remove(struct site *site, struct tern_inlet *in)
{
	if (!in->hot)
		return;
	struct tern_inlet *before = &site->bell;
	while (before->next != in)
		before = before->next;
	before->next = in->next;
	in->hot = 0;
	site->pollset--;
}

/* cost: buffer setup */
