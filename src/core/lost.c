/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that have left. They are sent nothing any more; layers hear of them when what they had sent
 * is handled; and the program is told in a deferred function, which may send and wait.
 */
#include <errno.h>

#include "core/layers.h"
#include "core/wait.h"

/* -- Telling the program ----------------------------------------------------------------------- */

static void lost_tell(tern *t, void *arg)
{
	struct endpoint *e = t->own;
	(void)arg;
	e->lost.deferred = false;
	for (uint32_t r = 0; r < t->size && e->lost.fn; r++) {
		struct peer *p = &e->site.peer[r];
		if (!p->lost || p->told)
			continue;
		p->told = true;
		e->lost.fn(t, r, p->net->ops->check(p->net, r), e->lost.arg);
	}
}

static void lost_tell_later(struct endpoint *e)
{
	if (!e->lost.fn || e->lost.deferred)
		return;
	e->lost.deferred = true;
	defer_add(e, lost_tell, NULL);
}

static bool lost_untold(const struct endpoint *e)
{
	for (uint32_t r = 0; r < e->t->size; r++)
		if (e->site.peer[r].lost && !e->site.peer[r].told)
			return true;
	return false;
}

int tern_lost_on(tern *t, tern_lost_handler *fn, void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked)
		return rules_forked(t->own);
	struct endpoint *e = t->own;
	e->lost.fn = fn;
	e->lost.arg = arg;
	if (lost_untold(e))
		lost_tell_later(e);
	return 0;
}

/* -- Finding them ----------------------------------------------------------------------------- */

enum { FAR_LOOKS = 2 }; /* packets may be on their way from the network to their inlet */

void lost_drain_begin(struct endpoint *e, uint32_t rank)
{
	e->site.peer[rank].draining = layer_maps(e, rank) ? 1 : FAR_LOOKS;
	e->work |= 1u << LAYERS_DRAINING;
}

/* Whether something is left to be handled. The rank may have died before it knocked for it. */
static bool inlet_drains(struct endpoint *e, struct tern_inlet *in)
{
	if (!in->base || !inlet_has(in))
		return false;
	pollset_add(&e->site, in);
	return true;
}

/*
 * Nothing is sent to it any more. What it held is ours again, once its last replies are read: some
 * name our own blocks. It may have died before it knocked for them.
 */
static unsigned lost_member(struct endpoint *e, uint32_t member)
{
	struct peer *p = &e->site.peer[member];
	if (!p->net)
		return 0; /* a worker, and nothing went either way */
	p->lost = true;
	lane_shut(&e->t->lane[member]);
	if (!inlet_drains(e, &p->replies))
		p->net->ops->reclaim(p->net, member);
	return 0;
}

/* The rank, and its workers: the sum of fn over them. */
static unsigned lost_members(struct endpoint *e, uint32_t rank,
			     unsigned (*fn)(struct endpoint *e, uint32_t member))
{
	const struct job *j = &e->group->job;
	unsigned sum = fn(e, rank);
	for (uint32_t m = j->size; m < job_members(j); m++)
		if (job_member_rank(j, m) == rank)
			sum += fn(e, m);
	return sum;
}

void lost_find(struct endpoint *e)
{
	for (uint32_t r = 0; r < e->t->size; r++) {
		struct peer *p = &e->site.peer[r];
		if (!p->lost && p->net->ops->check(p->net, r) == 0)
			continue;
		if (!p->lost) {
			p->lost = true;
			lost_drain_begin(e, r);
			lost_tell_later(e);
		}
		lost_members(e, r, lost_member);
	}
}

uint32_t lost_count(struct endpoint *e)
{
	uint32_t left = 0;
	for (unsigned i = 0; i < e->nets; i++)
		left += net_left(e->net[i]);
	return left;
}

/* -- What a rank had sent before it left ------------------------------------------------------- */

static unsigned member_drains(struct endpoint *e, uint32_t member)
{
	struct peer *p = &e->site.peer[member];
	bool requests = inlet_drains(e, &p->requests), replies = inlet_drains(e, &p->replies);
	return requests || replies;
}

/* One look at what a lost rank had sent. True if that was nothing. */
static bool peer_drain(struct endpoint *e, uint32_t rank)
{
	if (lost_members(e, rank, member_drains))
		return false;
	if (--e->site.peer[rank].draining)
		return true;
	e->inner++;
	layers_lost(e, rank);
	e->inner--;
	return true;
}

/*
 * A rank may have died between a knock and its ring, so whoever has knocked is let in without
 * one. The ring may also have meant that others have left.
 */
unsigned lost_drain(struct endpoint *e)
{
	unsigned done = 0;
	for (unsigned i = 0; i < e->nets; i++)
		e->net[i]->ops->answer(e->net[i]);
	lost_find(e);
	e->work &= ~(1u << LAYERS_DRAINING);
	for (uint32_t r = 0; r < e->t->size; r++) {
		if (e->site.peer[r].draining)
			done += peer_drain(e, r);
		if (e->site.peer[r].draining)
			e->work |= 1u << LAYERS_DRAINING;
	}
	return done;
}

/* -- Waits that a lost rank ends -------------------------------------------------------------- */

int wait_unreachable(struct endpoint *e, struct wait *w)
{
	lost_look(e); /* it may have left without a word, having never heard our knock */
	return send_reachable(e, w->whom - 1);
}

int wait_stalled(struct endpoint *e, struct wait *w, uint64_t moved)
{
	uint64_t now = e->world->now();
	if (!w->moved_at || moved != w->moved) {
		w->moved_at = now;
		w->moved = moved;
	}
	return now - w->moved_at > e->waiting.grace_ns ? -ETIMEDOUT : 0;
}

/*
 * A rank that is dead, or cannot be talked with, and that this endpoint has not forgiven; -1 if
 * there is none. Ranks that left well, and those that are forgiven, are missed only when no other
 * is there any more to send anything.
 */
static int wait_missing(struct endpoint *e)
{
	bool alone = lost_count(e) + 1 >= e->t->size;
	int missing = -1;
	for (uint32_t r = 0; r < e->t->size; r++)
		if (e->site.peer[r].lost) {
			struct net *net = e->site.peer[r].net;
			int rc = net->ops->check(net, r);
			bool gone = rc == -EOWNERDEAD || rc == -EPROTO || rc == -EHOSTUNREACH;
			if (gone && !e->site.peer[r].forgiven)
				return (int)r;
			if (alone && missing < 0)
				missing = (int)r;
		}
	return missing;
}

int wait_blame(struct endpoint *e, struct wait *w)
{
	if (!w->since || !lost_count(e))
		return 0;
	lost_find(e);
	int missing = wait_missing(e);
	if (missing < 0) {
		w->quiet = 0; /* whoever dies next can be forgiven in time, too */
		return 0;
	}
	uint64_t now = e->world->now();
	if (!w->quiet ||
	    w->served != endpoint_served(e)) { /* another thread's wait may have served some */
		w->quiet = now;
		w->served = endpoint_served(e);
	}
	if (now - w->quiet < e->waiting.grace_ns)
		return 0;
	struct peer *p = &e->site.peer[missing];
	return p->net->ops->check(p->net, (uint32_t)missing);
}

int tern_forgive(tern *t, uint32_t rank)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_destination(t->own, rank);
	if (!rc)
		t->own->site.peer[rank].forgiven = true;
	return rc;
}
