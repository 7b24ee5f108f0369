/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated node's way to the others. Here the processor is charged for what it does: sending,
 * receiving, looking in vain.
 *
 * Looking in vain takes `poll`. Whoever looks again and again waits for a packet, so a look takes
 * longer the longer the wait has lasted, an eighth of it; a packet that arrives in a look ends it
 * where a program that looks each `poll` would have seen it. So idle ranks cost few events, and
 * what they wait for they see when they should.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/threshold.h"
#include "net/net.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"
#include "net/sim/machine/controller.h"
#include "net/sim/machine/network.h"
#include "net/sim/sim.h"

struct sim_wire {
	struct wire wire;
	uint32_t node;
	uint32_t held; /* the packet that was last received; NOTHING */
	struct packet_net *user;
	struct sim_wire *next;
};

static struct sim_wire *wires; /* of this process */

static struct sim_wire *of(struct wire *w)
{
	return (struct sim_wire *)(void *)w;
}

static size_t sim_most(struct wire *w, uint32_t rank)
{
	(void)w, (void)rank;
	return PACKET_MOST;
}

static void sim_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	struct machine *m = sim_machine();
	baton_measure_end(m);
	m->active = true;
	for (unsigned i = 0; i < n; i++)
		baton_send(m, of(w)->node, &o[i]);
	baton_measure_begin(m);
}

static void let_go(struct sim_wire *s)
{
	struct machine *m = sim_machine();
	if (s->held == NOTHING)
		return;
	machine_lock(m);
	travel_free(m, s->held);
	machine_unlock(m);
	s->held = NOTHING;
}

/* Who handles it: the processor, or the controller, from when it had done with the packet. */
static void receive_charge(struct machine *m, const struct travel *t)
{
	const struct profile *p = &m->profile;
	m->serving = m->controller->handles && (t->library || m->controller->programs);
	if (m->serving)
		m->served = t->arrived > m->shared->clock ? t->arrived : m->shared->clock;
	if (m->serving)
		return;
	uint64_t cost =
		(m->controller->handles ? p->interrupt : p->receive) + t->words * p->receive_word;
	baton_charge(m, cost);
	use_serve(use_node(m, t->dst, USE_RECEIVE), 0, cost);
}

/* One at a time: its handler runs before the processor is charged for the next. */
static unsigned receive(struct sim_wire *s, struct datagram *d)
{
	struct machine *m = sim_machine();
	bool more = s->held != NOTHING || m->rested || m->working;
	m->serving = false;
	let_go(s);
	m->rested = false;
	uint32_t got = baton_take(m, s->node);
	if (got == NOTHING)
		m->active = false; /* this poll comes behind all that was taken and sent */
	if (got == NOTHING && more)
		return 0; /* what the last one has caused is sent first; a wait has looked already;
			     or another thread computes */
	if (got == NOTHING) {
		baton_look(m, PATIENCE, m->profile.poll, sim_wakes());
		got = baton_take(m, s->node);
	}
	if (got == NOTHING)
		return 0;
	m->active = true;
	const struct travel *t = &m->travel[got];
	s->held = got;
	receive_charge(m, t);
	*d = (struct datagram){ .bytes = travel_data(m, got), .len = t->bytes, .from = t->src + 1 };
	return 1;
}

static unsigned sim_receive(struct wire *w, struct datagram *d, unsigned n)
{
	(void)n;
	baton_measure_end(sim_machine());
	unsigned got = receive(of(w), d);
	baton_measure_begin(sim_machine());
	return got;
}

/* What has arrived ends every wait of a simulated rank. */
static int sim_descriptor(struct wire *w)
{
	(void)w;
	return -1;
}

static uint64_t sim_due(struct wire *w)
{
	(void)w;
	return DUE_NEVER;
}

uint64_t sim_wakes(void)
{
	uint64_t first = DUE_NEVER;
	for (struct sim_wire *s = wires; s; s = s->next) {
		uint64_t due = post_due(s->user);
		first = due < first ? due : first;
	}
	return first < NEVER / PS_NS ? first * PS_NS : NEVER;
}

static void sim_close(struct wire *w)
{
	struct sim_wire **at = &wires;
	while (*at != of(w))
		at = &(*at)->next;
	*at = of(w)->next;
	let_go(of(w));
	sim_leave(of(w)->node);
	free(w);
}

static const struct wire_ops wire_ops = { .most = sim_most,
					  .send = sim_send,
					  .receive = sim_receive,
					  .descriptor = sim_descriptor,
					  .due = sim_due,
					  .close = sim_close };

static bool overtakes(const struct profile *p)
{
	const struct sim_network *n = network_named(p->network);
	return p->jitter || (n->overtakes && n->overtakes(p));
}

/*
 * What Tern's services need not add. What jitter delays may be further behind than Tern keeps
 * packets that came early. Types of messages that overtake each other are left so, unless `order`
 * is 0: a machine that has channels for each promises order within a type alone.
 */
static unsigned provided(const struct profile *p)
{
	bool lost = p->corrupt || (p->drop && !p->tolerant);
	bool sorted = !overtakes(p) || (p->channel_types && !p->jitter);
	return (p->order && sorted ? PROVIDES_ORDER : 0) | (p->room ? PROVIDES_ROOM : 0) |
	       (p->jitter || lost ? 0 : PROVIDES_RELIABLE);
}

int sim_wire(struct wire **out, uint32_t node, struct packet_net *user)
{
	struct sim_wire *s = calloc(1, sizeof *s);
	if (!s)
		return error_set(-ENOMEM, "opening the way of node %u: no memory", node);
	const struct profile *p = &sim_machine()->profile;
	s->wire = (struct wire){
		.ops = &wire_ops, .provides = provided(p), .overtakes = overtakes(p), .messages = 1
	};
	s->node = node;
	s->held = NOTHING;
	s->user = user;
	s->next = wires;
	wires = s;
	*out = &s->wire;
	return 0;
}
