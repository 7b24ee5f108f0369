/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank's rings to itself, in private memory. */
#include "net/self/self.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/world.h"
#include "net/talk.h"

struct memory {
	struct talk talk;
	struct pool pool;
	struct large_block large[TERN_POOL_BLOCKS];
};

struct self {
	struct net net;
	_Atomic uint8_t heed;  /* always 1: whoever sends here polls here */
	struct memory *memory; /* zero pages until something is sent */
};

static struct self *self_of(struct net *net)
{
	return (struct self *)(void *)net;
}

static bool self_usable(char *why, size_t len)
{
	(void)why, (void)len;
	return true;
}

static int self_connect(struct net *net, uint32_t rank)
{
	struct self *s = self_of(net);
	struct peer *me = &net->site->peer[rank];
	struct rings rings = talk_rings(&s->memory->talk);
	talk_ask(net->site, &rings, rank, rank, &s->heed);
	talk_serve(net->site, &rings, rank, rank, &s->heed);
	me->reserve = &s->memory->talk.reserve;
	me->pool = &s->memory->pool;
	pollset_add(net->site, &me->requests);
	pollset_add(net->site, &me->replies);
	return 0;
}

static void self_knock(struct net *net, struct tern_lane *lane)
{
	(void)net, (void)lane; /* never needed: heed is 1 */
}

static void self_answer(struct net *net)
{
	(void)net; /* nobody else has this bell */
}

static int self_check(struct net *net, uint32_t rank)
{
	(void)net, (void)rank;
	return 0;
}

static void self_demote(struct net *net)
{
	(void)net; /* two inlets in private memory cost nothing worth saving */
}

static bool self_arm(struct net *net, struct sleep *s)
{
	if (!s)
		return true;
	struct peer *me = &net->site->peer[net->site->rank];
	return !(me->requests.hot && (inlet_has(&me->requests) || inlet_has(&me->replies)));
}

static uint64_t self_arrive(struct net *net)
{
	(void)net;
	return 0;
}

static bool self_passed(struct net *net, uint64_t ticket, uint32_t rank)
{
	(void)net, (void)ticket;
	return rank == NET_ALL;
}

static void self_close(struct net *net)
{
	memory_free(self_of(net)->memory);
	free(net);
}

static int self_open(struct net **out, struct site *site, struct job *job, struct net *local,
		     const char *how)
{
	(void)job, (void)local, (void)how;
	struct self *s = calloc(1, sizeof *s);
	struct memory *memory = memory_new(1, sizeof *memory);
	if (!s || !memory) {
		free(s);
		memory_free(memory);
		return error_set(-ENOMEM, "opening rank %u's network to itself: no memory",
				 site->rank);
	}
	s->net = (struct net){ .ops = &self_ops, .site = site };
	s->heed = 1;
	s->memory = memory;
	s->net.pool = &s->memory->pool;
	s->net.provides = self_ops.provides;
	s->net.own = s->net.any[0] = blocks_short(s->net.pool, TERN_POOL_BLOCKS);
	s->net.large = s->net.any[1] = blocks_large(s->memory->large, TERN_POOL_BLOCKS);
	site->peer[site->rank].may[0] = blocks_short(&s->memory->talk.reserve, 1);
	s->net.blocks = s->net.larges = TERN_POOL_BLOCKS;
	*out = &s->net;
	return 0;
}

const struct net_ops self_ops = {
	.name = "self",
	.reach = "this rank",
	.span = SPAN_SELF,
	.provides = PROVIDES_ORDER | PROVIDES_ROOM | PROVIDES_RELIABLE | PROVIDES_SHARED,
	.open = self_open,
	.usable = self_usable,
	.connect = self_connect,
	.knock = self_knock,
	.answer = self_answer,
	.check = self_check,
	.take = pool_take,
	.reclaim = pool_reclaim, /* never: this rank does not leave itself */
	.demote = self_demote,
	.arm = self_arm,
	.arrive = self_arrive,
	.passed = self_passed,
	.close = self_close,
};
