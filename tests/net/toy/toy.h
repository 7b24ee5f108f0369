/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A toy network among the ranks of one process: a mailbox for each, of a few packets, and what
 * finds no place is lost. It is a wire and nothing more; order, room and reliability are added by
 * services. It shows what a network is: this folder, and a line in the table of networks.
 */
#ifndef TERN_TESTS_TOY_TOY_H
#define TERN_TESTS_TOY_TOY_H

#include "net/net.h"
#include "net/packet/wire.h"

extern const struct net_ops toy_ops;

/* Packets that were sent, by class; and the context that sent the last one of each. */
extern unsigned toy_sent[CLASSES];
extern uint64_t toy_context[CLASSES];

#endif
