/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of ranks that packets connect, in barrier.c. */
#ifndef TERN_NET_PACKET_BARRIER_H
#define TERN_NET_PACKET_BARRIER_H

#include "net/net.h"

struct packet_net;

enum { ROUNDS_MAX = 11 };

/* A token is a generation and, in its lowest bits, a round. */
enum { TOKEN_SHIFT = 8 };
static inline unsigned token_round(uint64_t token)
{
	return token % (1 << TOKEN_SHIFT);
}

enum barrier_stage { BARRIER_OVER, BARRIER_LANDING, BARRIER_LOCAL, BARRIER_ROUNDS };
struct barrier {
	uint64_t arrived, passed; /* generations, */
	uint64_t told;            /* and that of which all tokens have been sent */
	enum barrier_stage stage;
	bool silent;            /* the one under way waits for no message */
	uint64_t ticket;        /* of the machine's own barrier */
	unsigned round, rounds; /* the one whose token is awaited */
	uint64_t heard[ROUNDS_MAX];
	uint32_t machine, machines; /* ours among them */
	/* Ranks, by machine; and where those of each begin, up to one behind the last. */
	uint32_t *member;
	uint32_t *first;
	uint32_t place; /* ours among those of our machine */
};

uint64_t packet_arrive(struct net *net);
bool packet_passed(struct net *net, uint64_t ticket, uint32_t rank);
void barrier_open(struct packet_net *n);                  /* where its memory is */
void barrier_token(struct packet_net *n, uint64_t token); /* has come */
void barrier_go_on(struct packet_net *n);
void barrier_tell(struct packet_net *n); /* after a flush: whether our part in it is over */

#endif
