/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that do not answer, in silence.c. */
#ifndef TERN_NET_PACKET_SILENCE_H
#define TERN_NET_PACKET_SILENCE_H

#include "net/net.h"
#include "net/packet/wire.h"

struct packet_net;
struct path;

/* Whether a peer answers. */
enum verdict { VERDICT_WAIT, VERDICT_CUT, VERDICT_LOSSY };
struct silence {
	enum verdict over; /* it was given up, and why */
	bool warned;       /* the user knows that it does not answer */
	unsigned again;    /* how often it came back after a warning */
	/* Since when it owed an answer when it did last, as of a review, ns. */
	uint64_t owing;
	uint64_t polls;   /* of the peer, by then; only of one on this machine */
	uint64_t asked;   /* packets and moves of memory that it was last asked about */
	uint64_t lossy;   /* when a loss was found on a wire that promised to lose nothing, ns */
	bool missed;      /* that loss was of what it sent, and nothing behind it is taken */
	struct failure f; /* as of when it was given up */
};

int silence_open(struct packet_net *n);        /* -EINVAL with a sentence for a bad setting */
int unreachable_judge(void);                   /* TERN_UNREACHABLE */
uint64_t silence_review(struct packet_net *n); /* when it wants to be asked again, ns */
void silence_missed(struct packet_net *n,
		    uint32_t rank);          /* packets of `rank` were lost on a reliable wire */
void silence_told(struct path *p);           /* it has missed some of ours */
void silence_watch(struct path *p);          /* from now on, */
bool silence_computes(const struct path *p); /* it is of this machine and has not polled since */
int silence_check(struct path *p);           /* 0, or -EHOSTUNREACH with a sentence */

#endif
