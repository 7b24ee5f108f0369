/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract of a simulated network. It gets packets, has events of its own, and calls
 * machine_deliver() for each packet once. What it remembers lies in the machine's memory, behind
 * the arrays that every machine has, and has no pointers.
 */
#ifndef TERN_NET_SIM_MACHINE_NETWORK_H
#define TERN_NET_SIM_MACHINE_NETWORK_H

#include <stdio.h>

#include "net/sim/machine/machine.h"

/* Equal links, one of which a packet takes, and the vertex behind them. */
struct hop {
	uint32_t link, links, to;
};

struct sim_network {
	const char *name;
	const char *meaning; /* one line, for help */
	/* Whether it has a way between all of so many nodes; -EINVAL with a sentence. */
	int (*judge)(const struct profile *p, uint32_t nodes);
	/* How long a packet takes at least, ps; NULL: `latency`. */
	uint64_t (*least)(const struct profile *p);
	/* Whether a packet can overtake another from the same node to the same; NULL: never. */
	bool (*overtakes)(const struct profile *p);
	size_t (*bytes)(const struct profile *p, uint32_t nodes);
	void (*init)(struct machine *m); /* its memory is zero */
	/* The packet enters, at the clock's time. */
	void (*inject)(struct machine *m, uint32_t travel);
	/* Of those in hops.c: where a packet that is at vertex `at` goes. */
	struct hop (*next)(const struct machine *m, uint32_t at, const struct travel *t);
	/* EVENT_NETWORK and EVENT_LEFT; or NULL. */
	void (*happen)(struct machine *m, const struct event *e);
	/*
	 * Of a network that asks its controllers whether they take() a packet, and tells them what
	 * has left(): a node may take what it has refused. NULL: it does neither.
	 */
	void (*wake)(struct machine *m);
	/*
	 * How many links it has, and which vertices the i-th joins: false, if it is none. What
	 * observe() does: the links' figures are complete. NULL: no links.
	 */
	uint32_t (*links)(uint32_t nodes);
	bool (*ends)(const struct machine *m, uint32_t link, uint32_t *from, uint32_t *to);
	void (*observe)(struct machine *m);
	/* Whether no packet moves before a node takes one that it has refused; NULL: never. */
	bool (*stands)(const struct machine *m);
	/*
	 * Nothing can happen any more though packets are under way: why, in words. NULL: cannot be.
	 */
	void (*stuck)(struct machine *m, FILE *to);
};

extern const struct sim_network logp_network, crossbar_network;                    /* flat.c */
extern const struct sim_network torus_network, hypercube_network, fattree_network; /* hops.c */
extern const struct sim_network mesh_network;                                      /* mesh.c */

extern const struct sim_network *const network_table[]; /* ends with NULL */

/* When a packet leaves; the way into the network is taken until then and for a gap. */
uint64_t flat_leave(struct machine *m, const struct travel *t);

/* How many nodes a row of a grid has, and its links: right, left, down, up of each. */
uint32_t grid_width(const struct profile *p, uint32_t nodes);
uint32_t grid_links(uint32_t nodes);
bool grid_ends(const struct machine *m, uint32_t link, uint32_t *from, uint32_t *to);
int grid_judge(const struct profile *p, uint32_t nodes);
const struct sim_network *network_named(const char *name);

#endif
