/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base control */
/*
 * The barrier by messages: in round i every rank tells the one 2^i further on, once it has heard of the round
 * before, so after log2(n) rounds everybody has heard of everybody. A rank begins when all that it sent
 * before has been acknowledged, so whatever was sent to a rank before the barrier lies in its rings
 * when it passes. A token of a later generation says all that an earlier one does, so the latest suffices.
 */
#include "base/clock.h"
#include "net/packet/packet.h"
#include "service/service.h"

enum { DOUBT_NS = 500000000 }; /* how long tokens of a rank that has died may be under way */

static uint32_t partner(const struct packet_net *n, unsigned round)
{
	const struct site *site = n->net.site;
	return (uint32_t)((site->rank + (UINT64_C(1) << round)) % site->size);
}

static void token_send(struct packet_net *n, unsigned round)
{
	struct path *p = path_to(n, partner(n, round));
	if (!p) {
		n->barrier.round = round; /* no memory: tried again at the next look */
		return;
	}
	p->token = n->barrier.arrived << 8 | round;
	p->wishes |= 1u << NEWS_BARRIER;
	path_stir(p);
}

void barrier_token(struct packet_net *n, unsigned round, uint64_t generation)
{
	if (generation > n->barrier.heard[round])
		n->barrier.heard[round] = generation;
}

static bool all_landed(const struct packet_net *n)
{
	for (uint32_t i = 0; i < n->actives; i++) {
		if (!path_landed(n->path[n->active[i]]))
			return false;
	}
	return true;
}

/* As far as what has been heard allows. */
void barrier_go_on(struct packet_net *n)
{
	if (n->barrier.passed == n->barrier.arrived)
		return;
	if (!n->barrier.open) {
		if (!all_landed(n))
			return;
		n->barrier.open = true;
		n->barrier.round = 0;
		if (n->barrier.rounds)
			token_send(n, 0);
	}
	while (n->barrier.round < n->barrier.rounds &&
	       n->barrier.heard[n->barrier.round] >= n->barrier.arrived) {
		n->barrier.round++;
		if (n->barrier.round < n->barrier.rounds)
			token_send(n, n->barrier.round);
	}
	if (n->barrier.round < n->barrier.rounds)
		return;
	n->barrier.passed = n->barrier.arrived;
	atomic_store(&n->job->rank[n->net.site->rank].passed, n->barrier.passed);
}

uint64_t packet_arrive(struct net *net)
{
	struct packet_net *n = packet_of(net);
	n->barrier.arrived++;
	n->barrier.open = false;
	n->barrier.doubt = 0;
	for (uint32_t i = 0; i < n->actives; i++) {
		struct path *p = n->path[n->active[i]];
		path_mark(p);
		path_stir(p);
	}
	post_look(n, true);
	return n->barrier.arrived;
}

bool packet_had_passed(struct net *net, uint32_t rank, uint64_t ticket)
{
	struct packet_net *n = packet_of(net);
	if (atomic_load(&n->job->rank[rank].passed) < ticket)
		return false;
	if (job_rank_state(n->job, rank) != RANK_DEAD)
		return true;
	/* It has sent all its tokens, but will send none again if one was lost. */
	if (!n->barrier.doubt)
		n->barrier.doubt = clock_ns();
	return clock_ns() - n->barrier.doubt < DOUBT_NS;
}

bool packet_passed(struct net *net, uint64_t ticket)
{
	struct packet_net *n = packet_of(net);
	barrier_go_on(n);
	post_flush(n);
	return n->barrier.passed >= ticket;
}
