/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network over UDP sockets: nothing but a kernel is needed between two ranks. It lacks order,
 * room and reliability, so all three services are added; and anybody may send to a port, so its
 * datagrams are authenticated (guard.h).
 */
#ifndef TERN_NET_UDP_UDP_H
#define TERN_NET_UDP_UDP_H

#include "net/packet/packet.h"

extern const struct net_ops udp_ops;

#endif
