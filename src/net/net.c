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

int pool_take(struct net *net, struct block **out)
{
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

void pool_reclaim(struct net *net, uint32_t rank)
{
	for (struct block *b = pool_at(net, 0); b < pool_at(net, net->blocks); b++)
		if (b->peer == rank && block_is(b, BLOCK_SENT))
			block_set(b, BLOCK_FREE);
}

/* cost: protection control */
bool net_owns(const struct net *net, uint32_t rank, const char *data, size_t len)
{
	const struct peer *p = &net->site->peer[rank];
	const struct block *b = block_of(data);
	return len <= TERN_PAYLOAD_MAX &&
	       (range_has(&p->may[0], b) || range_has(&p->may[1], b) || range_has(&net->any, b));
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
