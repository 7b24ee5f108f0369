/* SPDX-License-Identifier: BSD-3-Clause */
/* A wire of one UDP socket, and the card by which other ranks send to it. */
#ifndef TERN_NET_UDP_SOCKET_H
#define TERN_NET_UDP_SOCKET_H

#include <netinet/in.h>

#include "job/job.h"
#include "net/packet/terms.h"
#include "net/packet/wire.h"

/* What a rank tells the others of itself, so that they can send to it and know it. */
struct card {
	struct card_front front;
	struct sockaddr_in6 address; /* or a sockaddr_in in the same place */
};

_Static_assert(sizeof(struct card) <= JOB_CARD_BYTES, "a card fits where cards are kept");

/* Bound to the address of TERN_UDP_BIND; which one that became is in `address`. */
int socket_open(struct wire **out, struct job *job, uint32_t size, struct sockaddr_in6 *address);

#endif
