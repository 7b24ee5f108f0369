/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which networks a rank has: one to the ranks of its machine, one to those of others. TERN_NET
 * names them. With "auto", the network to other machines is the one that has devices (libfabric) if
 * every machine has such a device; the machines tell each other before their ranks open.
 */
#ifndef TERN_OPEN_NETS_H
#define TERN_OPEN_NETS_H

#include <stdbool.h>

#include "base/world.h"
#include "endpoint/endpoint.h"
#include "job/job.h"
#include "net/net.h"

/* Every network of this build, and NULL. Adding one is a folder and a line in table.c. */
extern const struct net_ops *const net_table[];

/* The networks that a rank is to have. */
struct nets {
	const struct net_ops *self, *near, *far; /* near, far: NULL if there is none */
	const char *how;                         /* what TERN_NET says behind far's name */
};

/* Whether TERN_NET is understood: 0, or -EINVAL with a sentence. Nothing is opened. */
int nets_judge(void);

/* The process lives in the world of the network that TERN_NET names; before anything is opened. */
void nets_world(void);

/*
 * Whether this machine would use the network with devices, as far as it can tell by itself. May
 * take long.
 */
bool nets_fabric_here(void);

/*
 * Opens the networks that TERN_NET names, in the order of their span: 0, or a code with a sentence.
 */
int nets_open(struct endpoint *e, struct group *g);
void nets_close(struct endpoint *e);

#endif
