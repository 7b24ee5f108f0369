/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocols of Karamcheti and Chien's study: what the layer has in an endpoint.
 *
 * Nothing here counts on a message to arrive. Every question is asked again until it is answered,
 * and every answer can be given again: who asks, and what for, is numbered. Questions are requests,
 * answers are replies, so whatever comes can be answered at once.
 *
 * Invariants.
 *  S1  A rank has at most one block under way to each other rank, and numbers them from 1.
 *  S2  A block's `end` has been called exactly if its number is not above `finished`.
 *  S3  A packet of a stream is passed up exactly if its number is below `expected`, and
 *      those under way are fewer than TERN_STREAM_WINDOW above it. Its acknowledgement may be
 *      written before it is passed up, but both belong to one turn of its handler: no message
 *      that the sender sends because of the acknowledgement is handled in between. So a lost
 *      rank is the only reason for which an acknowledged packet has not been handled when
 *      something else that its sender has sent later is.
 */
#ifndef TERN_SEQUENCE_STATE_H
#define TERN_SEQUENCE_STATE_H

#include <tern/sequence.h>

#include "core/layer.h"

extern const struct layer sequence_layer;

enum sequence_handler {
	SEQUENCE_ASK =
		LAYER_SEQUENCE * LAYER_HANDLERS, /* number, id, length, shift: is there room? */
	SEQUENCE_VERDICT,                        /* the reply: number, code */
	SEQUENCE_PACKET,                         /* number, index, bytes */
	SEQUENCE_LINE2,                          /* number, index, 16 bytes */
	SEQUENCE_LINE4,                          /* number, index, 32 bytes */
	SEQUENCE_DONE,                           /* the reply to the last one of them: number, 0 */
	SEQUENCE_END,                            /* number: has all of it come? */
	SEQUENCE_MISSING, /* the reply: number, packets from the first missing on */
	SEQUENCE_HEAD,    /* plain: number, id, length */
	SEQUENCE_PIECE,   /* plain: number, bytes */
	STREAM_PACKET,    /* number, shape, words */
	STREAM_ASK,       /* shape: how far are you? */
	STREAM_ACK,       /* the reply: id, expected */
	STREAM_PLAIN,     /* nothing, shape, words */
};

enum { MISSING_WORDS = 3, MISSING_BITS = 64 * MISSING_WORDS };

/* A kind of sequence, as its receiver registered it. */
struct kind {
	tern_sequence_accept *accept;
	tern_sequence_end *end;
	void *arg;
};

/* Packets have 1 << shift bytes: those of a line, or those of a payload. */
enum { SHIFT_LINE2 = 4, SHIFT_LINE4 = 5, SHIFT_PAYLOAD = 13, CAME_FEW = 64 };
_Static_assert(1 << SHIFT_PAYLOAD == TERN_PAYLOAD_MAX, "a packet is as long as a payload can be");

/* The block that comes from a rank. */
struct inbound {
	uint64_t line[2]; /* number of the block, if its lines come whole and in order; else 0 */
	uint64_t next;    /* first packet that has not come */
	uint64_t stop;    /* of the lines that are whole, how many there are */
	char *at;         /* where the next line goes */
	uint64_t packets; /* of the block, */
	uint64_t *came;   /* a bit each, for those beyond `next`; `few` if that is enough */
	uint64_t few;
	uint64_t early; /* packets beyond `next` that have come */
	unsigned shift;
	unsigned id;
	uint64_t number, finished;
	char *data;
	size_t len, got; /* `got`: plain */
	bool refused;    /* plain: what comes of it is dropped */
};

/* The block that goes to a rank. */
struct outbound {
	uint64_t number;
	bool busy;
	unsigned question; /* the handler that was asked: a late answer to another one is none */
	bool answered;
	int verdict;                     /* of the answer: 0, or a code */
	uint64_t first;                  /* packet that is missing; */
	uint64_t missing[MISSING_WORDS]; /* and those from there on */
};

struct stream_in;
struct stream_kind {
	struct stream_in *in; /* one a rank; NULL: nobody has registered */
};

struct sequence {
	struct endpoint *e;
	struct kind kind[TERN_SEQUENCES_MAX];
	struct stream_kind stream[TERN_SEQUENCES_MAX];
	struct inbound *in;   /* one a rank; NULL until one comes */
	struct outbound *out; /* one a rank; NULL until one goes */
	struct tern_stream *streams;
	unsigned waiting; /* streams that have packets under way */
	bool resending;   /* a turn of stream_progress() is under way */
};

static inline struct sequence *sequence_of(tern *t)
{
	return t->own->layer[LAYER_SEQUENCE];
}

/* What the network to `rank` provides, its services included: of enum provides. */
unsigned sequence_provided(const struct endpoint *e, uint32_t rank);

/* `way` is none, `call` was given it: -EINVAL with a sentence. */
int way_refuse(enum tern_way way, const char *call);

/* A block on its way: the steps of its sender, none of which waits. */
struct shipment {
	struct sequence *q;
	struct outbound *out;
	uint32_t dst;
	unsigned id;
	const char *data;
	size_t len;
	unsigned shift;
};
int shipment_ask(const struct shipment *s, unsigned handler); /* SEQUENCE_ASK, _END or _HEAD */
int shipment_packet(const struct shipment *s, uint64_t i);
int shipment_packets(const struct shipment *s, uint64_t n); /* the first n */
int shipment_piece(const struct shipment *s, size_t at);

/* Waiting for an answer: when the question is to be asked again. */
struct patience {
	uint64_t due; /* ns; 0: it has not been asked */
	unsigned tries;
};
bool patience_over(struct endpoint *e, struct patience *p);

/* The packets of a block. */
static inline uint64_t packets_of(size_t len, unsigned shift)
{
	/* A peer's length may be as large as there is. */
	return (len >> shift) + ((len & ((1u << shift) - 1)) != 0);
}

void inbound_register(struct endpoint *e);
void inbound_close(struct sequence *q);
void finite_register(struct endpoint *e);
void finite_close(struct sequence *q);
void stream_register(struct endpoint *e);
unsigned stream_progress(struct sequence *q); /* sends again what was not acknowledged in time */
void stream_close_all(struct sequence *q);

#endif

/* cost: base control */
