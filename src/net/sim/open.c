/* SPDX-License-Identifier: BSD-3-Clause */
/* The network `sim`: packets over the wire of a simulated machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/setting.h"
#include "net/packet/packet.h"
#include "net/sim/sim.h"
#include "service/stack.h"

enum { MEET_NS = 100000 };

static bool sim_usable(char *why, size_t len)
{
	struct profile p;
	int rc = profile_load(&p, setting_text(SETTING_SIM));
	if (rc)
		snprintf(why, len, "%s", tern_strerror(rc));
	return !rc;
}

static int sim_open(struct net **out, struct site *site, struct job *job, struct net *local,
		    const char *how)
{
	(void)how;
	struct card_front card = { 0 };
	struct packet_net *n = calloc(1, sizeof *n);
	int rc = n ? sim_join(job, site->rank)
		   : error_set(-ENOMEM, "opening the network of rank %u: no memory", site->rank);
	if (!rc)
		rc = sim_wire(&n->wire, site->rank, n);
	if (!rc)
		rc = stack_open(n, &sim_ops,
				&(struct stack){ .site = site,
						 .job = job,
						 .local = local,
						 .mode = GUARD_NONE,
						 .provider = "",
						 .card = &card,
						 .card_bytes = sizeof card });
	if (rc && n)
		packet_dispose(n);
	else if (!rc)
		*out = &n->net;
	if (!rc)
		atomic_fetch_add(&sim_machine()->shared->opened, 1);
	return rc;
}

/*
 * Before anything is sent, every rank has opened: it waits for that in real time. Whether a peer
 * can be sent to at once would depend on that otherwise, and with it virtual times.
 */
static void sim_meet(void)
{
	struct machine *m = sim_machine();
	if (m->met)
		return;
	while (atomic_load(&m->shared->opened) < m->shared->nodes)
		world_real.nap(MEET_NS);
	m->met = true;
	baton_begin(m);
}

static int sim_connect(struct net *net, uint32_t rank)
{
	sim_meet();
	return packet_connect(net, rank);
}

/* Where a poll has ended, so has what a controller did in it. */
static void sim_knock(struct net *net, struct tern_lane *lane)
{
	packet_knock(net, lane);
	if (!lane && sim_machine())
		sim_machine()->serving = false;
}

static uint64_t sim_arrive(struct net *net)
{
	sim_meet();
	return packet_arrive(net);
}

const struct net_ops sim_ops = {
	.name = "sim",
	.reach = "ranks on a simulated machine (tern sim)",
	.span = SPAN_JOB,
	.provides = 0,
	.world = &sim_world,
	.open = sim_open,
	.usable = sim_usable,
	PACKET_OPERATIONS_BUT(sim_connect, sim_knock, sim_arrive),
};
