/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a network of datagrams puts on its wire, the same for all of them:
 *
 *     net/packet  ->  services  ->  guard  ->  faults  ->  wire
 */
#ifndef TERN_SERVICE_STACK_H
#define TERN_SERVICE_STACK_H

#include "net/guard/guard.h"
#include "net/packet/packet.h"

struct stack {
	struct site *site;
	struct job *job;
	struct net *local;       /* as net_ops.open gets it */
	enum guard_mode mode;    /* of protection, where TERN_PROTECT does not say */
	const char *provider;    /* for the card; "": the network has none */
	struct card_front *card; /* what the rank publishes; the stack writes its front */
	size_t card_bytes;
};

/*
 * Opens `n`, whose wire is open, puts faults around the wire if TERN_FAULT says so, and publishes
 * the card. 0, or a code with a sentence; then n is for packet_dispose().
 */
int stack_open(struct packet_net *n, const struct net_ops *ops, const struct stack *s);

#endif
