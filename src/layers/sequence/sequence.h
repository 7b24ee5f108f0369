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

#include "core/messages.h"
#include "layers.h"
#include "sequence/threshold.h"

extern const struct layer sequence_layer;

/* A block's number comes first in each message of it; see enum block_key. */
#define SEQUENCE_MESSAGES(X)                                                                \
	X(SEQUENCE_ASK, on_sequence_ask)         /* length, shape: is there room? */        \
	X(SEQUENCE_VERDICT, on_sequence_verdict) /* the reply: code */                      \
	X(SEQUENCE_PACKET, on_sequence_packet)   /* index, bytes */                         \
	X(SEQUENCE_LINE2, on_sequence_line2)     /* 16 bytes; the index is in the number */ \
	X(SEQUENCE_LINE4, on_sequence_line4)     /* 32 bytes */                             \
	X(SEQUENCE_DONE, on_sequence_missing)    /* the reply to the last one of them: 0 */ \
	X(SEQUENCE_END, on_sequence_end)         /* has all of it come? */                  \
	X(SEQUENCE_MISSING, on_sequence_missing) /* the reply: code, those missing */       \
	/* A packet's key comes first in those of a stream; see stream.h. */                \
	X(STREAM_TWO, on_stream_two) /* two words; */                                       \
	X(STREAM_TWO_ASKS, on_stream_two_asks)                                              \
	X(STREAM_FOUR, on_stream_four) /* four; */                                          \
	X(STREAM_FOUR_ASKS, on_stream_four_asks)                                            \
	X(STREAM_PACKET, on_stream_packet) /* any number: shape, words */                   \
	X(STREAM_ASK, on_stream_ask)       /* how far are you? */                           \
	X(STREAM_ACK, on_stream_ack)       /* the reply: the key that is expected, 0 */     \
	X(STREAM_PLAIN, on_stream_plain)   /* shape, words */
enum sequence_handler { SEQUENCE_BEFORE = SEQUENCE_HANDLERS - 1, SEQUENCE_MESSAGES(LAYER_NUMBER) };
SEQUENCE_MESSAGES(LAYER_HANDLER)

/*
 * Numbers of blocks count in steps of BLOCK_STEP: behind them is the index of a line. 2^48 blocks
 * to one rank are as many as nobody sends; blocks of more lines than there are indices go in
 * payloads.
 */
enum block_key { BLOCK_STEP = 1 << 16, BLOCK_INDEX = BLOCK_STEP - 1 };

/* The shape of a block: its kind, its shift above that, and whether it is plain. */
enum { BLOCK_SHIFT = 8, SHIFT_MASK = 63, SHIFT_PLAIN = 64 };

enum { MISSING_WORDS = 3, MISSING_BITS = 64 * MISSING_WORDS };

/* A kind of sequence, as its receiver registered it. */
struct kind {
	tern_sequence_accept *accept;
	tern_sequence_end *end;
	void *arg;
	uint64_t unused_; /* so that a shift finds it */
};

/* Packets have 1 << shift bytes: those of a line, or those of a payload. */
enum { SHIFT_LINE2 = 4, SHIFT_LINE4 = 5, SHIFT_PAYLOAD = 13, CAME_FEW = FEW_BYTES / PACKET };
_Static_assert(1 << SHIFT_LINE2 == (int)LINE2_BYTES && 1 << SHIFT_LINE4 == (int)LINE4_BYTES &&
		       1 << SHIFT_PAYLOAD == (int)PACKET,
	       "shifts are those of the lengths");

/*
 * The block that comes from a rank. While its lines come whole and in order, `key` says which is
 * the next, and `next` says nothing.
 */
struct inbound {
	_Alignas(64)
		uint64_t key[2]; /* of the next line, of 16 or 32 bytes, if that is so; else 0 */
	uint64_t last;           /* behind that of the last whole line */
	char *at;                /* where the next line goes */
	uint64_t number, finished;
	char *data; /* NULL: no block is under way */
	size_t len;
	uint64_t shape;
	uint64_t next;  /* first packet that has not come */
	uint64_t *came; /* a bit each, for those beyond `next`; `few` if that is enough; or NULL */
	uint64_t few;
	uint64_t early;      /* packets beyond `next` that have come */
	uint64_t unused_[3]; /* so that a shift finds it */
};

/* The block that goes to a rank. */
struct outbound {
	uint64_t number;
	uint32_t question; /* the handler that was asked: a late answer to another one is none */
	uint32_t answered; /* 0 or 1; as wide as what is written with it */
	bool busy;
	int verdict;                     /* of the answer: 0, or a code */
	uint64_t first;                  /* packet that is missing; */
	uint64_t missing[MISSING_WORDS]; /* and those from there on */
};

struct stream_in;
struct tern_stream;

struct sequence {
	struct endpoint *e;
	struct kind kind[TERN_SEQUENCES_MAX];
	/*
	 * Ends of streams, each an array with one a rank: NULL until one is registered, or opened.
	 */
	struct stream_in *stream_in[TERN_SEQUENCES_MAX];
	struct tern_stream **stream_out[TERN_SEQUENCES_MAX];
	struct tern_stream *streams;
	bool resending;       /* a turn of stream_progress() is under way */
	struct outbound *out; /* one a rank, behind: */
	struct inbound in[];  /* one a rank */
};

static inline struct sequence *sequence_of(tern *t)
{
	return t->own->layer[LAYER_SEQUENCE];
}

/* What the network to `rank` provides, its services included: of enum provides. */
unsigned sequence_provided(const struct endpoint *e, uint32_t rank);
/* What `way` means for messages to `rank`: TERN_WAY_FULL or TERN_WAY_PLAIN. */
enum tern_way sequence_way(const tern *t, uint32_t rank, enum tern_way way);

/* `way` is none, `call` was given it: -EINVAL with a sentence. */
int way_refuse(enum tern_way way, const char *call);

/* A block on its way: the steps of its sender, none of which waits. */
struct shipment {
	tern *t;
	struct tern_lane *lane;
	struct tern_inlet *replies;
	uint64_t number;
	size_t len;
	uint64_t shape;
	const char *data;
	uint64_t lines; /* that are whole; 0: it goes in payloads */
	unsigned shift;
	unsigned id;
	uint32_t dst;
	struct outbound *out;
	struct sequence *q;
};
struct shipment shipment_of(struct sequence *q, uint32_t dst, unsigned id, const void *data,
			    size_t len, unsigned shift);
void shipment_number(struct shipment *s);                     /* gives it the next number */
int shipment_ask(const struct shipment *s);                   /* whether there is room */
int shipment_say(const struct shipment *s, unsigned handler); /* SEQUENCE_ASK, or _END */
int shipment_packet(const struct shipment *s, uint64_t i);
int shipment_packets(const struct shipment *s, uint64_t n); /* the first n */
void shipment_plain(struct shipment *s);                    /* it goes plain, in payloads */

/* Take the answer, to SEQUENCE_ASK or to the packets, if it is the next reply: 0 or a code. */
enum { ANSWER_NONE = 1 };
int shipment_verdict(const struct shipment *s);
int shipment_done(const struct shipment *s);

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

void inbound_close(struct sequence *q);
void stream_in_close(struct sequence *q);
unsigned stream_progress(void *state); /* sends again what was not acknowledged in time */
void stream_close_all(struct sequence *q);

#endif
