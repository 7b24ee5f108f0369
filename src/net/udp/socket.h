/* SPDX-License-Identifier: BSD-3-Clause */
/* A wire of one UDP socket. */
#ifndef TERN_NET_UDP_SOCKET_H
#define TERN_NET_UDP_SOCKET_H

#include <netinet/in.h>

#include "net/packet/wire.h"

struct job;

/* Bound to the address of TERN_UDP_BIND; which one that became is in `address`. */
int socket_open(struct wire **out, struct job *job, uint32_t size, struct sockaddr_in6 *address);

#endif
