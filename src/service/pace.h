/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much may be under way to a peer, and how long to wait for an answer. Round-trip times are smoothed as in RFC
 * 6298. The window opens by what is acknowledged, at first, and by a packet a round later; it closes by a third in a
 * round that has lost more than a sixteenth of its packets: less than that is a bad link and no
 * congestion, and slowing down would not help it. Bursts are spread over the round trip.
 */
#ifndef TERN_SERVICE_PACE_H
#define TERN_SERVICE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pace {
	uint64_t smooth, spread; /* round-trip time and its variation, ns; 0: none has been seen */
	size_t window;           /* bytes that may be under way */
	size_t enough;           /* where it opens slowly from */
	size_t flying;           /* bytes that are */
	size_t packet;           /* of one packet, at most */
	uint32_t round_end;      /* the number that ends this round */
	uint32_t sent, lost;     /* packets of this round */
	uint64_t earliest;       /* when the next may be sent, ns */
};

void pace_open(struct pace *p, size_t packet);
bool pace_ready(const struct pace *p, uint64_t now);
void pace_sent(struct pace *p, size_t bytes, uint64_t now);
void pace_landed(struct pace *p, size_t bytes); /* acknowledged */
void pace_lost(struct pace *p, size_t bytes);   /* taken for lost */
void pace_sampled(struct pace *p, uint64_t ns); /* a round trip */
/* Everything below `acked` has been acknowledged, and `next` is the next number: a round may be over. */
void pace_round(struct pace *p, uint32_t acked, uint32_t next);
void pace_timeout(struct pace *p);
uint64_t pace_patience(const struct pace *p); /* ns after which a packet is taken for lost */

#endif
