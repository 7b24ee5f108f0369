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
#include "net/net.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"
#include "net/sim/sim.h"

enum {
	PACKET_MOST = 16 << 10,
	HEADERS = DATAGRAM_HEAD + 16, /* of a packet with one message */
	PATIENCE = 8,                 /* a look takes this part of the wait so far */
};

struct sim_wire {
	struct wire wire;
	uint32_t node;
	uint32_t held; /* the packet that was last received; NOTHING */
};

static struct sim_wire *of(struct wire *w)
{
	return (struct sim_wire *)(void *)w;
}

static size_t sim_most(struct wire *w, uint32_t rank)
{
	(void)w, (void)rank;
	return PACKET_MOST;
}

/* Arguments and data: the simulated machine's packets have its own headers, not Tern's. */
static uint32_t words_of(const struct outgoing *o)
{
	size_t bytes = 0;
	for (int i = 0; i < o->parts; i++)
		bytes += o->part[i].iov_len;
	return (uint32_t)(bytes > HEADERS ? bytes - HEADERS : 0) / 4;
}

static void sim_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	struct machine *m = sim_machine();
	const struct profile *p = &m->profile;
	for (unsigned i = 0; i < n; i++) {
		uint32_t words = words_of(&o[i]);
		turn_charge(m, (o[i].class == CLASS_REPLY ? p->send_reply : p->send_request) +
				       words * p->send_word);
		turn_send(m, of(w)->node, &o[i], words);
	}
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

/* One at a time: its handler runs before the processor is charged for the next. */
static unsigned sim_receive(struct wire *w, struct datagram *d, unsigned n)
{
	struct sim_wire *s = of(w);
	struct machine *m = sim_machine();
	const struct profile *p = &m->profile;
	(void)n;
	bool more = s->held != NOTHING || m->rested;
	let_go(s);
	m->rested = false;
	uint32_t got = turn_take(m, s->node);
	if (got == NOTHING && more)
		return 0; /* what the last one has caused is sent first; a wait has looked already
			   */
	if (got == NOTHING) {
		turn_look(m, PATIENCE, p->poll);
		got = turn_take(m, s->node);
	}
	if (got == NOTHING)
		return 0;
	const struct travel *t = &m->travel[got];
	s->held = got;
	turn_charge(m, p->receive + t->words * p->receive_word);
	*d = (struct datagram){ .bytes = travel_data(m, got), .len = t->bytes, .from = t->src + 1 };
	return 1;
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

static void sim_close(struct wire *w)
{
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

int sim_wire(struct wire **out, uint32_t node)
{
	struct sim_wire *s = calloc(1, sizeof *s);
	if (!s)
		return error_set(-ENOMEM, "opening the way of node %u: no memory", node);
	const struct profile *p = &sim_machine()->profile;
	s->wire = (struct wire){ .ops = &wire_ops,
				 .provides = (p->jitter ? 0 : PROVIDES_ORDER) |
					     (p->jitter || p->drop ? 0 : PROVIDES_RELIABLE),
				 .messages = 1 };
	s->node = node;
	s->held = NOTHING;
	*out = &s->wire;
	return 0;
}
