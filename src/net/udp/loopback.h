/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of loopback, which only their own machine reaches. */
#ifndef TERN_NET_UDP_LOOPBACK_H
#define TERN_NET_UDP_LOOPBACK_H

#include "net/udp/socket.h"

/* 0, or -ENETDOWN with a sentence if `address` is one of loopback and that interface is down. */
int loopback_check(const struct sockaddr_in6 *address);

/*
 * Warns if `rank` has an address of loopback on another machine. Processes of one host may stand
 * for several machines; those reach each other by loopback.
 */
void loopback_warn(const struct job *job, uint32_t rank, const struct card *card,
		   const struct sockaddr_in6 *own);

#endif
