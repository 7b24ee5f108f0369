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

/* One with large rings from the beginning, in private memory. */
struct talk {
	_Alignas(64) _Atomic uint64_t requests_freed; /* written by the server */
	_Alignas(64) _Atomic uint64_t replies_freed;  /* written by the requester */
	_Alignas(64) struct block reserve;            /* the server's, for its reply */
	char requests[RING_LEAVES * REQUEST_LEAF_LINES * TERN_LINE];
	char replies[RING_LEAVES * REPLY_LEAF_LINES * TERN_LINE];
};

/*
 * One in the memory of a job begins small, in half a page, and its rings grow one by one into
 * memory elsewhere. Blocks for replies are the server's, for all its peers. The other half of the
 * page is the talk in the other direction.
 */
enum {
	SMALL_REQUEST_LINES = 4, /* of a leaf: for two messages */
	SMALL_REPLY_LINES = 3,   /* for one */
	SMALL_TALK_BYTES = 2048,
};

struct small_talk {
	/* Written by the server, but for the first value of the second. */
	_Alignas(64) _Atomic uint64_t requests_freed, larger_requests_freed;
	/* Written by the requester. */
	_Alignas(64) _Atomic uint64_t replies_freed, larger_replies_freed;
	_Alignas(64) char requests[RING_LEAVES * SMALL_REQUEST_LINES * TERN_LINE];
	char replies[RING_LEAVES * SMALL_REPLY_LINES * TERN_LINE];
};

_Static_assert(sizeof(struct small_talk) <= SMALL_TALK_BYTES, "two talks fit into a page");
_Static_assert((int)SMALL_REPLY_LINES >= (int)LEAF_KEPT, "a leaf takes a message of any kind");

/* What both grow into. */
struct large_talk {
	char requests[RING_LEAVES * REQUEST_LEAF_LINES * TERN_LINE];
	char replies[RING_LEAVES * REPLY_LEAF_LINES * TERN_LINE];
};

/* Blocks of a server for replies: so many at first, and so many more when the last is taken. */
enum { SPARES = 2 };

/* The rings of a talk, wherever they lie. */
struct rings {
	struct ring_memory requests, replies;
};

static inline struct rings talk_rings(struct talk *k)
{
	return (struct rings){ { k->requests, REQUEST_LEAF_LINES, &k->requests_freed },
			       { k->replies, REPLY_LEAF_LINES, &k->replies_freed } };
}

static inline struct rings small_rings(struct small_talk *k)
{
	return (struct rings){ { k->requests, SMALL_REQUEST_LINES, &k->requests_freed },
			       { k->replies, SMALL_REPLY_LINES, &k->replies_freed } };
}

static inline struct rings large_rings(struct small_talk *k, struct large_talk *l)
{
	return (struct rings){
		{ l->requests, REQUEST_LEAF_LINES, &k->larger_requests_freed },
		{ l->replies, REPLY_LEAF_LINES, &k->larger_replies_freed },
	};
}

#endif
