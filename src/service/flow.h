/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow: no receiver is overrun, and a reply can always be sent. There are several ways to that;
 * each is a service of its own, and TERN_FLOW names the one that a job has. What they have in
 * common:
 *
 *  - Requests and replies are counted apart, and neither ever waits for room for the other.
 *  - Reply handlers send nothing, so replies are always handled, so room for replies always comes
 *    back, so staged replies drain, so gates open and requests are handled.
 *  - Whatever they tell each other is a count since ever, in a header of every packet: one that is
 *    lost or doubled does no harm, and the next has all of it. It is told when a packet with a new
 *    number has it: one that is sent again may be a double, whose header nobody looks at. A header
 *    that makes no sense is counted and not believed; the messages behind it are taken in, since
 *    retry has acknowledged them.
 */
#ifndef TERN_SERVICE_FLOW_H
#define TERN_SERVICE_FLOW_H

#include "service/service.h"

enum {
	FLOW_LOOK_NS = 100000
}; /* between two looks for blocks that the program gives back: nobody tells of those */

/*
 * What a receiver grants: leaves of its rings that are free again, and payloads that may be begun,
 * since ever.
 */
struct grant {
	uint32_t freed[2], allowed[2];
};

/* Sending without asking, one stream. */
struct retry_state {
	/* as a receiver */
	uint32_t said;  /* messages taken, as the peer was told */
	uint16_t asked; /* times that something was to be sent again */
	bool noticed;   /* it was asked for since the last message was taken */
	/* as a sender */
	uint16_t heard;  /* of the peer's `asked` */
	bool waiting;    /* before it is sent again */
	bool probing;    /* one packet at a time, until something is taken */
	uint8_t tries;   /* in a row */
	uint32_t most;   /* messages that were ever sent */
	uint64_t resume; /* when waiting ends, ns */
	uint64_t timer;  /* when what is under way is taken for dropped, ns; 0: nothing is */
};

/* Tokens of one stream. */
enum { TOKENS = 8 };
struct tokens {
	/* as a sender */
	uint32_t spent;    /* packets */
	uint32_t returned; /* by the peer */
	uint64_t begun;    /* messages, when the last packet had been sent */
	/* as a receiver: packets, and the messages that had been begun when each had come */
	uint32_t came, gone, said, said_allowed;
	uint64_t end[TOKENS];
};

/* Asking first, one stream: messages and payloads, since ever. */
struct ask_state {
	uint32_t want, want_blocks;   /* as a sender: asked for */
	uint32_t may, may_blocks;     /* as a receiver: permitted */
	uint32_t asked, asked_blocks; /* by the peer */
};

struct flow {
	union {
		struct {
			struct grant said;  /* what the peer was told last */
			struct grant heard; /* what it said last, */
			uint32_t freed[2];  /* and the furthest of that */
		} credit;
		struct retry_state tries[2];
		struct tokens tokens[2];
		struct ask_state ask[2];
	};
	bool returning; /* the packet under way goes back to its sender */
};

static inline struct flow *flow_of(const struct path *p)
{
	return p->state[SERVICE_FLOW];
}

#endif
