/* SPDX-License-Identifier: BSD-3-Clause */
/* The network `sim`: ranks on a simulated machine (docs/sim.md). */
#ifndef TERN_NET_SIM_SIM_H
#define TERN_NET_SIM_SIM_H

#include "net/net.h"
#include "net/sim/machine/machine.h"

extern const struct net_ops sim_ops;
extern const struct world sim_world;

/* The machine that this process is part of; NULL: none yet, or no more. */
struct machine *sim_machine(void);

int sim_price(const struct tern_work *work, uint64_t *left); /* as struct world has them */
enum working sim_work(uint64_t *left, uint64_t thread, bool may, bool others);

/* Joins the machine of the job as `node`; 0, or a code with a sentence. */
int sim_join(struct job *job, uint32_t node);
void sim_leave(uint32_t node);

/* The last rank of this process leaves at this virtual time. */
void sim_world_leave(uint64_t ns);

/* The wire of `node`, which has joined, for the network `user`. */
struct packet_net;
int sim_wire(struct wire **out, uint32_t node, struct packet_net *user);
/* When a network of this process wants to be asked though nothing has come, ps; NEVER. */
uint64_t sim_wakes(void);

#endif
