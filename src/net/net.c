/* SPDX-License-Identifier: BSD-3-Clause */
/* What networks share: the rings of a pair of ranks, the blocks of a pool, the poll set. */
#include "net/net.h"

#include <errno.h>

#include "base/world.h"
#include "net/talk.h"

void talk_ask(struct site *site, const struct rings *k, uint32_t member, uint32_t rank,
	      _Atomic uint8_t *heed)
{
	struct tern_inlet *in = &site->peer[member].replies;
	lane_open(&site->lane[member], k->requests.lines, k->requests.leaf_lines, k->requests.freed,
		  heed, site->rank, member);
	inlet_open(in, k->replies.lines, k->replies.leaf_lines, k->replies.freed, rank,
		   TERN_KIND_REPLY);
	in->peer = member;
	in->answer = site->refuse;
}

void talk_serve(struct site *site, const struct rings *k, uint32_t member, uint32_t rank,
		_Atomic uint8_t *heed)
{
	struct peer *p = &site->peer[member];
	inlet_open(&p->requests, k->requests.lines, k->requests.leaf_lines, k->requests.freed, rank,
		   TERN_KIND_REQUEST);
	p->requests.peer = member;
	lane_open(&p->answer, k->replies.lines, k->replies.leaf_lines, k->replies.freed, heed,
		  site->rank, member);
	p->requests.answer = &p->answer;
	p->answer.gate = &p->requests;
}

/* The first that is free: the caches have it most likely, and few are ever touched. */
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
		unsigned at = (net->next + i) % TERN_POOL_BLOCKS;
		struct block *b = pool_at(net, i < TERN_POOL_BLOCKS ? at : i);
		own += block_is(b, BLOCK_CLAIMED) || block_is(b, BLOCK_KEPT);
		if (!block_is(b, BLOCK_FREE))
			continue;
		block_set(b, BLOCK_CLAIMED);
		if (i < TERN_POOL_BLOCKS)
			net->next = (at + 1) % TERN_POOL_BLOCKS;
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

struct block *spare_find(const struct net *net)
{
	for (unsigned i = 0; i < net->spares; i++)
		if (block_is(&net->spare[i], BLOCK_FREE))
			return &net->spare[i];
	return NULL;
}

/* Whether a reply to `member` has one, which has not been handled yet. */
static bool spare_held(const struct net *net, uint32_t member)
{
	for (unsigned i = 0; i < net->spares; i++)
		if (!block_is(&net->spare[i], BLOCK_FREE) && net->spare[i].peer == member)
			return true;
	return false;
}

struct block *reserve_find(const struct site *site, uint32_t member)
{
	const struct peer *p = &site->peer[member];
	if (p->reserve)
		return p->lost || block_is(p->reserve, BLOCK_FREE) ? p->reserve : NULL;
	return spare_held(p->net, member) ? NULL : spare_find(p->net);
}

void reserve_claim(struct site *site, uint32_t member, struct block *b)
{
	struct peer *p = &site->peer[member];
	block_set(b, BLOCK_CLAIMED);
	b->peer = member;
	p->requests.accept = 0;
	if (p->reserve || spare_find(p->net) || p->net->spare_more(p->net))
		return;
	for (uint32_t m = 0; m < p->net->served; m++)
		if (site->peer[m].net == p->net)
			site->peer[m].requests.accept = 0;
}

void pool_reclaim(struct net *net, uint32_t rank)
{
	for (unsigned i = 0; i < net->spares; i++)
		block_reclaim(&net->spare[i], rank);
	for (size_t i = 0; net->pool && i < net->own.bytes / net->own.step; i++)
		block_reclaim(pool_at(net, (unsigned)i), rank);
	for (unsigned i = 0; i < net->larges; i++)
		block_reclaim(large_at(net, i), rank);
}

static bool range_holds(const struct block_range *x, const struct block *b, size_t len)
{
	return len <= x->most && range_has(x, b);
}

bool net_owns(const struct net *net, uint32_t rank, const char *data, size_t len)
{
	const struct peer *p = &net->site->peer[rank];
	const struct block *b = block_of(data);
	return range_holds(&p->may[0], b, len) || range_holds(&p->may[1], b, len) ||
	       range_holds(&p->may[2], b, len) || range_holds(&net->any[0], b, len) ||
	       range_holds(&net->any[1], b, len);
}

/* -- The poll set: a circle of inlets that begins with the bell ------------------------------ */

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

void pollset_join(struct site *site, struct tern_inlet *in)
{
	in->hot = 1;
	in->seen = NULL;
	in->next = site->bell.next;
	site->bell.next = in;
	site->pollset++;
}

bool pollset_has(const struct site *site)
{
	for (struct tern_inlet *in = site->bell.next; in->kind != TERN_KIND_BELL; in = in->next)
		if (inlet_has(in))
			return true;
	return false;
}

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
