/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a ring become records of a packet, in record.c. */
#ifndef TERN_NET_PACKET_RECORD_H
#define TERN_NET_PACKET_RECORD_H

#include "net/net.h"
#include "net/packet/transit.h"
#include "net/packet/wire.h"

enum {
	PACKET_FRONT = 160, /* bytes before the records that headers may take */
	PACKET_TAG = 16,    /* and behind them */
	PACKET_PARTS = 16,
	/* Messages in a packet: an empty ring of replies takes them in any case. */
	PACKET_RECORDS = 120,
	/* Payloads are copied into a packet up to this many bytes, and named above. */
	PACKET_COPY = 512,
	PACKET_BATCH = 32, /* packets sent with one call */
};

/* What the network itself has to say; at most one in a packet, in the place of a record. */
enum news { NEWS_NONE, NEWS_FLOW, NEWS_BARRIER, NEWS_ASK, NEWS_CONFIRM, NEWS_LOST, NEWS_KINDS };

/* How a record begins: handler, number of words, and these. */
enum {
	RECORD_WORDS_SHIFT = 10,
	/* In the place of a number of words: there are more than a line has, and 16 bits that say
	   how many come before them. */
	RECORD_WORDS_MORE = 7,
	RECORD_IS_REPLY = 1 << 13,
	/* Length, offset, bytes here, and bytes that are skipped before those follow the words,
	   each in 16 bits. */
	RECORD_HAS_PAYLOAD = 1 << 14,
	/* The kind is where the handler is; a value of 64 bits follows. */
	RECORD_IS_NEWS = 1 << 15,
};

/* The network's end of a ring that the core writes. */
struct out {
	struct place next; /* what is sent next */
	struct place done; /* what the peer has not taken, where it may refuse */
	char *base;        /* NULL until the core may write there */
	uint32_t leaf_lines;
	_Atomic uint64_t *freed; /* the core's lane looks at it */
	struct tern_lane *lane;
	uint64_t acked;   /* messages */
	uint64_t sent;    /* messages, all of each */
	uint64_t may;     /* messages that may be begun */
	uint64_t blocks;  /* payloads begun */
	uint64_t allowed; /* that may be */
	bool by_line;     /* a message of two lines counts as two of `may` */
};

/* A packet on its way out. What services write grows towards the front of `bytes`. */
struct packet {
	struct path *path;
	struct flight flight; /* what it is, for who has to send it again */
	bool again;
	bool full;               /* there was more to say */
	unsigned char *at, *end; /* of what is written in `bytes` */
	struct iovec part[PACKET_PARTS];
	int parts;
	size_t named; /* bytes in parts that lie elsewhere */
	unsigned records;
	enum packet_class class;
	uint64_t context; /* as of struct outgoing */
	unsigned char bytes[PACKET_FRONT + DATAGRAM_MAX];
};

struct path;

const tern_msg *place_look_on(const struct out *o, struct place *p); /* over control lines */

/* Whether the ring goes on there, be it with a control line. */
static inline bool place_has(const struct place *p)
{
	const tern_msg *m = (const tern_msg *)(const void *)p->cursor;
	uint64_t x = atomic_load_explicit(&m->head, memory_order_acquire) ^ p->expect;
	return !(x >> TERN_LAP_SHIFT);
}

/* The message there; NULL if there is none. */
static inline const tern_msg *place_look(const struct out *o, struct place *p)
{
	const tern_msg *m = (const tern_msg *)(const void *)p->cursor;
	uint64_t x = atomic_load_explicit(&m->head, memory_order_acquire) ^ p->expect;
	if (TERN_LIKELY(x < TERN_HEAD_CONTROL))
		return m;
	return x >> TERN_LAP_SHIFT ? NULL : place_look_on(o, p);
}

/* Over a credit line, if there is one: the line that it lies in may be given back. */
static inline void place_settle(const struct out *o, struct place *p)
{
	if (place_has(p))
		place_look(o, p);
}

static inline void place_pass(struct place *p, const tern_msg *m)
{
	p->cursor += message_bytes(m, atomic_load_explicit(&m->head, memory_order_relaxed));
	p->offset = 0;
}

/*
 * Writes what fits of what has been staged, and says in the packet's slice what that is. False if
 * it is nothing.
 */
bool record_write(struct path *p, struct packet *k, size_t most);
void record_again(struct path *p, struct packet *k); /* the packet's slice, once more */
void record_landed(struct path *p,
		   const struct slice *s); /* acknowledged, though others before it may not be, */
void record_acked(struct path *p, const struct slice *s); /* and those too */

#endif
