/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A talk: the memory that one rank's requests to another need. Requests go one
 * way, replies come back, and one block is reserved so that a reply with a payload
 * can be sent at once. Zero memory is a talk that has not begun.
 */
#ifndef TERN_NET_TALK_H
#define TERN_NET_TALK_H

#include "net/block.h"
#include "ring/ring.h"

struct talk {
	_Alignas(64) _Atomic uint64_t requests_freed; /* written by the server */
	_Alignas(64) _Atomic uint64_t replies_freed;  /* written by the requester */
	_Alignas(64) struct block reserve;            /* the server's, for its reply */
	char requests[RING_LEAVES * REQUEST_LEAF_LINES * TERN_LINE];
	char replies[RING_LEAVES * REPLY_LEAF_LINES * TERN_LINE];
};

#endif
