/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a packet carries, and what is under way to a peer. A slice says from which place in the
 * rings to which a packet goes; it can be made again from that.
 */
#ifndef TERN_NET_PACKET_TRANSIT_H
#define TERN_NET_PACKET_TRANSIT_H

#include "net/packet/pace.h"

enum { STREAM_REQUESTS, STREAM_REPLIES, STREAMS };

/* A place in a ring, and how much of the payload there has been sent. */
struct place {
	char *cursor;
	uint64_t expect, leaf;
	uint32_t offset;
};

/* What a packet carries: from where to where. */
struct until {
	uint64_t leaf;
	uint32_t offset;
};
struct slice {
	struct place from[STREAMS];
	struct until to[STREAMS];
	uint32_t begin[STREAMS];    /* messages before it */
	uint16_t messages[STREAMS]; /* that end in it */
	uint8_t news;
	uint64_t value; /* of the news */
};

/* A packet that was sent: what it takes to send it again. */
enum flight_state { FLIGHT_FLYING, FLIGHT_LANDED, FLIGHT_LOST };
struct flight {
	struct slice slice;
	uint64_t sent; /* when, ns */
	uint32_t bytes;
	uint32_t order;  /* its number there */
	uint32_t number; /* its number in retry */
	uint8_t state;
};

/*
 * What is under way to a peer. A service that sends again keeps it, and the path and other services
 * read it: all zero without one.
 */
struct transit {
	struct flight *window; /* by number; NULL: nothing is sent again */
	uint32_t size;         /* how many there are places for, a power of two */
	uint32_t first, next;  /* numbers that may be under way: [first, next) */
	uint32_t lost;         /* of those, how many are to be sent again */
	uint32_t tries;        /* timeouts in a row, */
	uint64_t overdue;      /* and when the first of them was, ns */
	uint64_t timer;        /* when the first is taken for lost, ns; 0: nothing is under way */
	struct pace pace;
	/* What it was before a timeout that may have closed the window for nothing, */
	struct pace before;
	uint64_t doubt;   /* and when that was, ns; 0: none may have */
	unsigned unacked; /* packets that have come from the peer and were not acknowledged */
};

/* The place of a packet in the window. */
static inline struct flight *flight_at(const struct transit *t, uint32_t number)
{
	return &t->window[number & (t->size - 1)];
}

#endif
