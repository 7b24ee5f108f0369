/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The barrier by messages, among machines. A rank that comes to it goes through these stages:
 *
 *   landing   until all that it sent before has been acknowledged; a silent barrier leaves this
 *             out;
 *   local     until all ranks of its machine have come so far, by the barrier of their shared
 *             memory;
 *   rounds    in round i it tells the machine 2^i further on, once it has heard of the round
 *             before, so after log2(machines) rounds everybody has heard of everybody.
 *
 * So whatever was sent to a rank before the barrier lies in its rings when it passes. Every rank
 * must hear: the ranks of a machine share those of the next among them, the k-th telling the k-th,
 * and if there are more, every so many-th behind it. Where ranks of a machine are reached by
 * messages, too, each is a machine by itself. A token of a later generation says all that an
 * earlier one does, so the latest suffices.
 */
#include "net/packet/packet.h"
#include "net/packet/service.h"

/* -- Who is where ------------------------------------------------------------------------ */

static uint32_t machine_of(const struct packet_net *n, uint32_t rank)
{
	return n->local ? n->job->rank[rank].machine : rank;
}

static void members_sort(struct packet_net *n, uint32_t size)
{
	struct barrier *b = &n->barrier;
	for (uint32_t r = 0; r < size; r++)
		b->first[machine_of(n, r) + 1]++;
	for (uint32_t m = 0; m < b->machines; m++)
		b->first[m + 1] += b->first[m];
	for (uint32_t r = size;
	     r-- > 0;) /* from behind, so that each begins where it should in the end */
		b->member[--b->first[machine_of(n, r) + 1]] = r;
	for (uint32_t m = 0; m < b->machines; m++)
		b->first[m] = b->first[m + 1];
	b->first[b->machines] = size;
}

void barrier_open(struct packet_net *n)
{
	struct barrier *b = &n->barrier;
	const struct site *site = n->net.site;
	b->machines = n->local ? n->job->head->machines : site->size;
	b->machine = machine_of(n, site->rank);
	members_sort(n, site->size);
	while (b->member[b->first[b->machine] + b->place] != site->rank)
		b->place++;
	while (UINT64_C(1) << b->rounds < b->machines)
		b->rounds++;
}

/* -- Tokens ------------------------------------------------------------------------------ */

/* False if there is no memory: tried again at the next look. */
static bool token_send(struct packet_net *n, uint32_t rank, unsigned round)
{
	struct path *p = path_to(n, rank);
	if (!p)
		return false;
	p->token = n->barrier.arrived << TOKEN_SHIFT | round;
	p->pending_control |= 1u << NEWS_BARRIER;
	path_mark_dirty(p);
	return true;
}

static bool tokens_send(struct packet_net *n, unsigned round)
{
	const struct barrier *b = &n->barrier;
	uint32_t ours = b->first[b->machine + 1] - b->first[b->machine];
	uint32_t next = (uint32_t)((b->machine + (UINT64_C(1) << round)) % b->machines);
	bool sent = true;
	for (uint32_t i = b->first[next] + b->place; i < b->first[next + 1]; i += ours)
		sent &= token_send(n, b->member[i], round);
	return sent;
}

void barrier_token(struct packet_net *n, uint64_t token)
{
	uint64_t *heard = &n->barrier.heard[token_round(token)], generation = token >> TOKEN_SHIFT;
	if (generation > *heard)
		*heard = generation;
}

static bool all_landed(const struct packet_net *n)
{
	for (uint32_t i = 0; i < n->actives; i++) {
		if (!path_landed(n->path[n->active[i]]))
			return false;
	}
	return true;
}

/* As far as what has been heard allows; `all`: somebody has passed, so nothing is waited for. */
static void rounds_go_on(struct packet_net *n, bool all)
{
	struct barrier *b = &n->barrier;
	if (b->stage != BARRIER_ROUNDS)
		return;
	for (; b->round < b->rounds && (all || b->heard[b->round] >= b->arrived); b->round++)
		if (b->round + 1 < b->rounds && !tokens_send(n, b->round + 1))
			return;
	if (b->round < b->rounds)
		return;
	b->stage = BARRIER_OVER;
	b->passed = b->arrived;
}

void barrier_go_on(struct packet_net *n)
{
	struct barrier *b = &n->barrier;
	if (b->stage == BARRIER_LANDING && (b->silent || all_landed(n))) {
		b->ticket = n->local ? n->local->ops->arrive(n->local) : 0;
		b->stage = BARRIER_LOCAL;
	}
	if (b->stage == BARRIER_LOCAL &&
	    (!n->local || n->local->ops->passed(n->local, b->ticket, NET_ALL)) &&
	    (!b->rounds || tokens_send(n, 0))) {
		b->round = 0;
		b->stage = BARRIER_ROUNDS;
	}
	rounds_go_on(n, false);
}

/* Whoever is through may end at once, so it is through only when its tokens have been sent. */
void barrier_tell(struct packet_net *n)
{
	struct barrier *b = &n->barrier;
	if (b->told == b->passed)
		return;
	for (uint32_t i = 0; i < n->actives; i++) {
		const struct path *p = n->path[n->active[i]];
		if (!p->gone && p->pending_control >> NEWS_BARRIER & 1)
			return;
	}
	b->told = b->passed;
	/*
	 * The default order: once a barrier, before this rank may leave, whose state is read later.
	 */
	atomic_store(&n->job->rank[n->net.site->rank].passed, b->told);
}

uint64_t packet_arrive(struct net *net)
{
	struct packet_net *n = packet_of(net);
	n->barrier.arrived++;
	n->barrier.stage = BARRIER_LANDING;
	n->barrier.silent = n->net.site->silent;
	for (uint32_t i = 0; i < n->actives; i++) {
		struct path *p = n->path[n->active[i]];
		path_mark(p);
		path_mark_dirty(p);
	}
	post_look(n, true);
	return n->barrier.arrived;
}

/*
 * Somebody has passed, so all have come, and what they sent before has landed: nothing is left to
 * wait for. The token that would have told it may be lost for good, if its sender has left. Ours
 * are sent all the same: others may wait for them.
 */
static bool had_passed(struct packet_net *n, uint64_t ticket, uint32_t rank)
{
	uint64_t passed = job_rank_passed(n->job, rank);
	if (passed < ticket)
		return false;
	if (passed != UINT64_MAX) /* else it is too far ahead for anybody to know exactly */
		rounds_go_on(n, true);
	return true;
}

bool packet_passed(struct net *net, uint64_t ticket, uint32_t rank)
{
	struct packet_net *n = packet_of(net);
	if (rank != NET_ALL)
		return had_passed(n, ticket, rank);
	barrier_go_on(n);
	post_send(n); /* its tokens leave at once: whoever asks may be about to sleep */
	barrier_tell(n);
	return n->barrier.told >= ticket;
}
