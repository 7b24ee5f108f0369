/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire over an endpoint of libfabric. The provider is reliable, and orders messages if it says
 * so; if it does not, the wire promises nothing.
 *
 * What is sent is copied into a send buffer, which lives until the provider is done with it: send
 * buffers of a peer stand in a ring, [first, posted) are the provider's and [posted, next) wait
 * until it has room. So nothing is lost, and a peer that takes nothing holds up nobody else: when
 * its ring is full, room() says so, and messages stay staged. Each message comes into a receive
 * buffer of its own, and is read there.
 */
#ifndef TERN_NET_OFI_PORT_H
#define TERN_NET_OFI_PORT_H

#include "net/ofi/fabric.h"
#include "net/packet/packet.h"

enum {
	SEND_BUFS = 16, /* of a peer */
	RECV_BUFS = 128,
	/* Bytes of a datagram: providers on sockets copy those, and ask first for longer ones. */
	PORT_MOST = (16 << 10) - 256,
	EXPOSED = 128, /* pieces of memory that peers may reach */
	MOVES = 64,    /* of memory, under way; a bit each */
};

enum { OFI_ADDRESS_MOST = 192 };

/* What a rank tells the others of itself, so that they can send to it and know it. */
struct ofi_card {
	struct card_front front; /* it names the provider: ranks must have the same */
	unsigned char address[OFI_ADDRESS_MOST]; /* as the provider has it */
};

_Static_assert(sizeof(struct ofi_card) <= JOB_CARD_BYTES, "a card fits where cards are kept");

/* What a completion tells of. The provider may use the context. */
enum work_kind { WORK_SEND, WORK_RECV, WORK_MOVE };
struct work {
	struct fi_context2 context;
	enum work_kind kind;
	uint32_t of; /* a send buffer's rank; the number of a receive buffer or a move */
};

/* Where a datagram lies that is sent, or will come. */
struct buf {
	struct work work;
	size_t len;       /* of what is sent */
	bool over;        /* the provider is done with it, */
	struct buf *next; /* and so with this one, which was received in */
	unsigned char *bytes;
};

struct ofi_peer {
	fi_addr_t address;
	uint32_t first, posted, next; /* of its send buffers; from 0 again when there are none */
	struct buf *send_buf;         /* SEND_BUFS; NULL until its card was seen */
	struct fid_mr *mr;            /* of their bytes, if the provider wants that */
	struct failure failure;       /* send buffers that the provider has lost */
};

/* A move of memory, as mem asked for it. */
struct move {
	struct work work;
	int error;
	struct fid_mr *mr; /* of the local memory, if the provider wants that */
	uint64_t tag;
};

struct port {
	struct wire wire;
	struct fabric fabric;
	struct job *job;
	uint32_t size;
	size_t most;
	struct ofi_peer *to; /* one a rank */
	uint32_t *rank_at;   /* by address: the rank, plus 1 */
	bool waits;          /* a send buffer that found no room is not posted */
	uint32_t posted;     /* send buffers with the provider */
	bool sources;        /* it tells who sent what, */
	/*
	 * Ranks that it knows. It is believed when it knows all: some take a stranger for another.
	 */
	uint32_t known;
	bool believed;  /* and has nothing left that came before that */
	uint32_t looks; /* at what has come since we last looked for ranks that it does not know */
	struct buf *recv_buf; /* RECV_BUFS */
	struct buf *spent;    /* of those, to be posted again */
	struct fid_mr *mr;    /* of their bytes, if the provider wants that */
	struct move move[MOVES];
	uint64_t moves, moved;           /* a bit each: it is used, and it has ended */
	struct fid_mr *exposed[EXPOSED]; /* what peers may reach */
	unsigned exposures;
};

/* The network. Its wire may have faults; memory goes past those. */
struct ofi {
	struct packet_net packet;
	struct port *port;
};

static inline struct port *port_of(struct wire *w)
{
	return (struct port *)(void *)w;
}

extern const struct net_rma ofi_rma;
bool rma_able(const struct port *p); /* whether the provider can, on terms that we can meet */

/* `name` as for provider_find(). */
int port_open(struct port **out, struct job *job, uint32_t size, const char *name);

/* Where peers send to, in at most `most` bytes; 0, or a negative code with a sentence. */
int port_address(struct port *p, unsigned char *address, size_t most);

#endif
