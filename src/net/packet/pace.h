/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much may be under way to a peer, and how long to wait for an answer. Round-trip times are
 * smoothed as in RFC 6298. Bursts are spread over the round trip.
 *
 * The window opens by what is acknowledged until round trips take longer or something is lost, and
 * then as that of CUBIC (RFC 9438), so that TCP beside it gets its share, and it of TCP's. It
 * closes to seven tenths, once for whatever was sent before it closed, for a packet that is lost
 * while others wait in a queue, which round trips tell; and for more than a thirty-second of a
 * round whatever they tell. Fewer losses without a queue are a bad link and no congestion, and
 * slowing down would not help it.
 */
#ifndef TERN_NET_PACKET_PACE_H
#define TERN_NET_PACKET_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pace {
	uint64_t smooth, spread; /* round-trip time and its variation, ns; 0: none has been seen */
	uint64_t least;          /* the shortest, ns, */
	uint64_t low[2];         /* the shortest of the last few, and of those before */
	unsigned samples;
	size_t window;       /* bytes that may be under way */
	size_t enough;       /* where it opens slowly from */
	size_t flying;       /* bytes that are */
	size_t packet;       /* of one packet, at most */
	size_t peak;         /* the window when it was closed last, bytes */
	uint64_t closed;     /* when that was, ns, */
	uint64_t since;      /* and since when it opens, */
	uint64_t until_peak; /* and how long it takes until it is as large again, ms */
	uint64_t used;       /* when all of the window was last used, ns */
	uint32_t round_end;  /* the number that ends this round */
	uint32_t sent, lost; /* packets of this round */
	uint64_t earliest;   /* when the next may be sent, ns, */
	bool held;           /* and one waits for that */
	uint64_t late;       /* how long after that time the last one to wait was sent, ns */
};

void pace_open(struct pace *p, size_t packet);
/* Whether a packet, which is there, may be sent now. */
bool pace_ready(struct pace *p, uint64_t now);
void pace_sent(struct pace *p, size_t bytes, uint64_t now);
void pace_landed(struct pace *p, size_t bytes, uint64_t now); /* acknowledged */
/* Taken for lost, and when it was sent. */
void pace_lost(struct pace *p, size_t bytes, uint64_t sent, uint64_t now);
void pace_sampled(struct pace *p, uint64_t ns); /* a round trip */
/*
 * Everything below `acked` has been acknowledged, and `next` is the next number: a round may be
 * over.
 */
void pace_round(struct pace *p, uint32_t acked, uint32_t next, uint64_t now);
void pace_timeout(struct pace *p, uint64_t now);
/*
 * The window is as it was before a timeout again, which was for nothing: its peer was only late.
 */
void pace_undo(struct pace *p, const struct pace *before);
uint64_t pace_patience(const struct pace *p); /* ns after which a packet is taken for lost */

#endif
