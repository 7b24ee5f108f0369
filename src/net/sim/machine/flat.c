/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks without a shape: LogP, whose packets only wait for the ends of their own way, and a
 * crossbar, where they also wait for each other at the receiver.
 *
 * LogP. A packet of b bytes leaves when its node's way into the network is free, which is
 * gap + b gap_byte behind the packet before it; it arrives latency + b gap_byte later.
 */
#include "net/sim/machine/network.h"

/* From its head to its tail. */
static uint64_t length(const struct machine *m, const struct travel *t)
{
	return later(t->hold, t->size * m->profile.gap_byte);
}

uint64_t flat_leave(struct machine *m, const struct travel *t)
{
	struct node *n = &m->node[t->src];
	uint64_t at = later(m->shared->clock, n->free);
	n->free = at + m->profile.gap + t->size * m->profile.gap_byte;
	use_serve(use_node(m, t->src, USE_IN), at - m->shared->clock, n->free - at);
	return at;
}

static void logp_inject(struct machine *m, uint32_t i)
{
	const struct travel *t = &m->travel[i];
	uint64_t at = flat_leave(m, t) + m->profile.latency + length(m, t);
	event_network(m, at, EVENT_ARRIVE, i, 0);
}

/* The way out of the network carries one packet at a time. */
static void crossbar_inject(struct machine *m, uint32_t i)
{
	const struct travel *t = &m->travel[i];
	struct node *n = &m->node[t->dst];
	uint64_t head = flat_leave(m, t) + m->profile.latency, at = later(head, n->drained);
	use_serve(use_node(m, t->dst, USE_OUT), at - head, m->profile.gap + length(m, t));
	at += length(m, t);
	n->drained = at + m->profile.gap;
	event_network(m, at, EVENT_ARRIVE, i, 0);
}

const struct sim_network logp_network = { .name = "logp",
					  .meaning = "LogP and LogGP: latency, gap, gap_byte",
					  .inject = logp_inject };

const struct sim_network crossbar_network = {
	.name = "crossbar",
	.meaning = "as logp, and packets to one node wait for each other",
	.inject = crossbar_inject
};
