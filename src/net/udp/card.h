/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank tells the others of itself, so that they can send to it and know it. */
#ifndef TERN_NET_UDP_CARD_H
#define TERN_NET_UDP_CARD_H

#include <netinet/in.h>

#include "job/job.h"
#include "net/packet/terms.h"

struct card {
	struct card_front front;
	struct sockaddr_in6 address; /* or a sockaddr_in in the same place */
};

_Static_assert(sizeof(struct card) <= JOB_CARD_BYTES, "a card fits where cards are kept");

#endif
