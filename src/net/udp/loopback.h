/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of loopback: whether datagrams to them get anywhere. */
#ifndef TERN_NET_UDP_LOOPBACK_H
#define TERN_NET_UDP_LOOPBACK_H

#include <netinet/in.h>
#include <stdbool.h>

#include "net/udp/card.h"

struct job;

/* 0, or -ENETDOWN with a sentence if `address` is one of loopback and that interface is down. */
int loopback_check(const struct sockaddr_in6 *address);
/* Warns if `rank` has an address of loopback on another machine than this one, which has `own`. */
void loopback_warn(const struct job *job, uint32_t rank, const struct card *card,
		   const struct sockaddr_in6 *own);

#endif
