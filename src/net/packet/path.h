/* SPDX-License-Identifier: BSD-3-Clause */
/* One peer of a network of packets, in path.c. */
#ifndef TERN_NET_PACKET_PATH_H
#define TERN_NET_PACKET_PATH_H

#include "net/packet/landing.h"
#include "net/packet/record.h"
#include "net/packet/silence.h"
#include "net/packet/transit.h"
#include "net/talk.h"

/* What a path has of each service; the highest first. */
enum service_kind { SERVICE_FLOW, SERVICE_ORDER, SERVICE_RETRY, SERVICE_KINDS };

/* One peer. Private memory, zero until it is used; the state of its services lies behind it. */
struct path {
	struct packet_net *net;
	uint32_t rank;
	/* Lost, or given up: nothing is sent to it, though what it sent may still come. */
	bool gone;
	size_t most; /* bytes of a datagram to it; 0: its card is not there yet */
	/* Bytes of headers that the last one had; the next nearly always has as many. */
	size_t front;
	size_t staged;            /* bytes written by the core and not sent, about, */
	unsigned staged_messages; /* and messages */
	uint64_t sent;            /* when messages last were, ns, */
	uint64_t spoken;          /* and when anything first was; 0: never */
	bool heard;               /* something has come from it */
	uint64_t ended;           /* when it was first seen to have left or died, ns; 0: not yet */
	uint64_t empties;         /* looks in vain by then */
	uint64_t due;             /* when it must be looked after, ns */
	bool dirty;               /* among those to be looked after at the next look */
	uint32_t pending_control; /* news to send, a bit each */
	uint64_t token;           /* of NEWS_BARRIER, see barrier.h */
	uint64_t mark[STREAMS];   /* messages that had been written when the barrier was come to */
	/*
	 * Of a wire that is reliable by itself, where nothing is acknowledged unless it was asked
	 * for.
	 */
	struct {
		uint64_t sent; /* packets that matter: with messages, or tokens */
		/* How many of them the peer was last asked about, plus 1; 0: it has answered. */
		uint64_t asked;
		uint64_t landed; /* of which it said that they have come */
		uint64_t goal;   /* of which it must, for what was marked */
		uint64_t answer; /* what the peer asked about last */
		uint64_t since;  /* when it was asked, ns */
		uint64_t moves;  /* of memory, by the wire itself: they have no packet */
	} confirm;
	struct silence silence;
	unsigned ahead;    /* packets sent in */
	uint64_t ahead_in; /* that round */
	struct out out[STREAMS];
	struct in in[STREAMS];
	struct transit transit;
	void *state[SERVICE_KINDS]; /* of services in force, behind the path; NULL for others */
	struct talk ask, serve;     /* what we request, and what it does */
	struct block landing[STREAMS][LANDING];
	struct large_block large[LANDING]; /* of requests */
};

struct path *path_to(struct packet_net *n, uint32_t rank); /* made if need be; NULL: no memory */
void path_ask(struct path *p);                             /* our requests to it, and its replies */
void path_serve_open(struct path *p);                      /* the same the other way round, */
static inline void path_serve(struct path *p)              /* if it has not been */
{
	if (TERN_UNLIKELY(!p->in[STREAM_REQUESTS].fill.base))
		path_serve_open(p);
}
/* Sends what may be sent; `all`: though more might join it. */
void path_pump(struct path *p, bool all);
bool path_full(const struct path *p); /* what is staged makes a packet */
void path_mark(struct path *p);       /* what has been written by now, */
bool path_landed(struct path *p);     /* and whether that has come to its receiver; */
bool path_quiet(struct path *p);      /* nothing is under way, and all that was written has */
void path_question(struct path *p);   /* asks it to say that all has come; one question at a time */
void path_give_up(struct path *p);
void path_wake(struct path *p, uint64_t due); /* to be looked after then */
void path_service(struct path *p, bool all);  /* its services, its time, what is staged */

/*
 * Where the first message of a stream begins that may be sent again; where the next one does if
 * there is none.
 */
const struct place *path_unacked(const struct path *p, unsigned stream);

#endif
