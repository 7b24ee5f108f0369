/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks of packets. The core writes messages into a ring and reads messages from a ring, as on
 * shared memory; here both rings are private, and this is their other end:
 *
 *    core   lane -> [ ring of out ] -> place     place -> fill -> [ ring of in ] -> inlet   core
 *                                        |                  ^
 *                                     records of a packet, down and up the services, a datagram
 *
 * The ring of an `out` and the ring of the `in` that it leads to have the same shape, and a ring's
 * layout follows from the messages in it alone. So the two are copies of one another: what has room
 * in one has room in the other, and `freed`, which the consumer over there writes, is all the
 * credit that messages without payloads need.
 *
 * A packet is described by a slice, the places in the rings where it begins and ends, and can be
 * made again from it: messages are kept in their ring, and payloads in their block, until they are
 * acknowledged. Nothing is copied for the sake of sending it again.
 *
 * Invariants.
 *  P1  A line of an `out` is overwritten only after its packet was acknowledged (or, without retry,
 *      sent); where a receiver may refuse what it has no room for, only after it was taken.
 *  P2  A block that a message names is free only then, too, unless its peer is lost.
 *  P3  What is put into an `in` came in a packet that was authenticated and looked through whole: a
 *      packet is taken with everything in it or not at all. Flow that tries takes or refuses
 *      requests and replies separately.
 *  P4  With credits, tokens or permission, what is sent has a place: a line, and a block for its
 *      payload.
 */
#ifndef TERN_NET_PACKET_PACKET_H
#define TERN_NET_PACKET_PACKET_H

#include "job/job.h"
#include "net/net.h"
#include "net/packet/barrier.h"
#include "net/packet/path.h"
#include "net/packet/seal.h"
#include "net/packet/terms.h"
#include "net/packet/wire.h"

struct service;

struct packet_net {
	struct net net;
	struct job *job;
	struct wire *wire;
	unsigned records; /* that a packet may have, at most PACKET_RECORDS */
	const struct guard_ops *guard;
	void *keys;        /* the guard's */
	bool copies;       /* payloads into packets, because their bytes are changed there */
	bool confirms;     /* the wire is reliable, and nobody acknowledges */
	unsigned services; /* enum provides: those that are added; and FLOW_SHIFT */
	const struct service *flow;     /* the strategy; NULL without flow */
	const struct service *layer[4]; /* the highest first */
	unsigned layers;
	/* How an arrival goes up: the records' own at 0, then each layer's, the highest first. */
	bool (*up[5])(struct path *p, struct arrival *a, unsigned level);
	bool (*ready)(struct path *p);              /* of the layer that has one, or NULL */
	const struct service *const *service_table; /* as service_list, service.h */
	struct path **path;                         /* one a rank; NULL until the two talk */
	uint32_t *active;                           /* ranks with a path */
	uint32_t actives;
	uint32_t *dirty; /* ranks where something is to be done */
	uint32_t dirty_count;
	uint64_t due;          /* when the first of the others wants to be looked after */
	_Atomic uint64_t bell; /* always rung: a poll asks the network */
	_Atomic uint8_t heed;  /* always 0: a send ends in a knock */
	struct packet *batch;  /* PACKET_BATCH of them */
	unsigned filled;
	bool replied; /* a reply was written since the last poll, and not sent */
	/*
	 * A single packet came, and is for its handler first, which may answer it; what else there
	 * is to do waits for the next look.
	 */
	bool put_off;
	bool sleeping; /* the bell says so */
	bool leaving;  /* packet_settled() was asked */
	/* After this look there may be none for long: nothing that can be said is put off. */
	bool resting;
	bool called;          /* what arrives raises a signal: the program computes */
	uint64_t now, looked; /* ns */
	uint64_t ticked;      /* when the clock was last asked, in ticks */
	uint64_t empties;     /* looks that found nothing */
	uint64_t round;       /* looks at which nothing was held back for company */
	uint32_t known_left;
	/* Shared memory with the ranks of this machine; NULL: they are reached like all others. */
	struct net *local;
	int wake;             /* a socket of loopback that ends a sleep */
	struct terms terms;   /* ours, */
	uint8_t *met;         /* and whether those of each rank are the same, see terms.c; */
	uint64_t patience;    /* with a rank that owes an answer, ns; 0: it has no end */
	bool fails;           /* such a rank is given up, and not only warned of */
	uint32_t unreachable; /* ranks that were given up */
	struct unmet *unmets; /* datagrams of ranks whose card has not come yet, in their order, */
	size_t unmet_bytes;   /* and what they take */
	uint32_t unmet;       /* those ranks, */
	uint32_t strangers;   /* and those who have others */
	uint64_t review, review_gap; /* when cards are looked for again, ns */
	struct barrier barrier;
	/* Where packets are counted, and what has gone wrong and was dealt with. */
	struct pulse *pulse;
};

static inline struct packet_net *packet_of(struct net *net)
{
	return (struct packet_net *)(void *)net;
}

static inline void packet_count(struct packet_net *n, enum pulse_count what, uint64_t packets)
{
	stats_add(&n->pulse->count[what], packets);
}

/* Packets sent since whatever was staged had to leave. */
static inline unsigned path_ahead(const struct path *p)
{
	return p->ahead_in == p->net->round ? p->ahead : 0;
}

/* Something is to be done for it at the next look. */
static inline void path_mark_dirty(struct path *p)
{
	if (p->dirty)
		return;
	p->dirty = true;
	p->net->dirty[p->net->dirty_count++] = p->rank;
}

/* -- unmet.c: datagrams that came before the card of who sent them -- */
enum { CARD_NS = 1000000 }; /* between two looks for a card */
bool unmet_keeps(const struct packet_net *n, uint32_t rank);
void unmet_keep(struct packet_net *n, uint32_t rank, const struct datagram *d);
void unmet_review(struct packet_net *n); /* takes in those whose card has come */
void unmet_forget(struct packet_net *n, uint32_t rank);
void unmet_close(struct packet_net *n);

/* -- post.c: packets in and out -- */
void post_take(struct packet_net *n, struct datagram *d); /* one that has come */
struct packet *post_begin(struct path *p);
void post_end(struct packet *k); /* with the headers of its services */
void post_flush(struct packet_net *n);
void post_time(struct packet_net *n);           /* asks the clock */
void post_send(struct packet_net *n);           /* whatever may be sent */
void post_look(struct packet_net *n, bool all); /* receives, minds the time, sends */
uint64_t post_due(struct packet_net *n);

/* -- packet.c -- */
/*
 * `n` has its wire, its guard with keys, whether it copies, the services that may be added to the
 * wire, and its terms; these without a name of the network: whatever others have.
 */
int packet_open(struct packet_net *n, const struct net_ops *ops, struct site *site, struct job *job,
		struct net *local);
void packet_free(struct packet_net *n); /* what packet_open() has made */
/* The same, with its guard and wire, and its own memory. */
void packet_dispose(struct packet_net *n);
void packet_close(struct net *net);
int packet_connect(struct net *net, uint32_t rank);
void packet_knock(struct net *net, struct tern_lane *lane);
void packet_answer(struct net *net);
void packet_report(struct net *net);
int packet_check(struct net *net, uint32_t rank);
int packet_take(struct net *net, size_t len, struct block **out);
void packet_reclaim(struct net *net, uint32_t rank);
void packet_demote(struct net *net);
bool packet_arm(struct net *net, struct sleep *s);
bool packet_settled(struct net *net, bool late);

/* What every network of packets has in its table. */
#define PACKET_OPERATIONS PACKET_OPERATIONS_BUT(packet_connect, packet_knock, packet_arrive)

/* The same, but for three that a network may do something before or behind. */
#define PACKET_OPERATIONS_BUT(connects, knocks, arrives)                                  \
	.connect = connects, .knock = knocks, .arrive = arrives, .answer = packet_answer, \
	.check = packet_check, .take = packet_take, .reclaim = packet_reclaim,            \
	.demote = packet_demote, .arm = packet_arm, .passed = packet_passed,              \
	.settled = packet_settled, .report = packet_report, .close = packet_close

#endif
