/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network among the ranks of one machine: rings in the job's memory.
 *
 * Who looks at what. heed[receiver][sender] is a byte that the receiver owns: 1
 * says "I poll your rings", 0 says "knock". A receiver polls the peers that have
 * been active; a peer it does not poll costs it nothing. To knock is to set one's
 * bit among the receiver's knockers and to ring its bell, which the receiver
 * polls like a ring and which is the futex it sleeps on.
 *
 * A sender writes its message and then loads the byte, without a fence between
 * the two. So whoever clears a byte issues a membarrier before its last look at
 * the ring: a sender that loaded 1 has then published its message. Setting a byte
 * needs nothing, because from then on the ring is polled.
 */
#ifndef TERN_NET_SHM_SHM_H
#define TERN_NET_SHM_SHM_H

#include "job/job.h"
#include "net/net.h"

extern const struct net_ops shm_ops;

#endif
