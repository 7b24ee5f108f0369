/* SPDX-License-Identifier: BSD-3-Clause */
/* What both ends of a stream know: how packets are named and described, and a window of them. */
#ifndef TERN_SEQUENCE_STREAM_H
#define TERN_SEQUENCE_STREAM_H

#include "core/direct.h"
#include "core/wait.h"
#include "sequence/sequence.h"

enum { WINDOW = TERN_STREAM_WINDOW };

/*
 * A packet's key: its number, and below that the stream. So one comparison says whether it is the
 * packet that is expected, and of the stream that is meant.
 */
enum { KEY_STEP = 256 };
#define KEY_WINDOW ((uint64_t)WINDOW * KEY_STEP)
_Static_assert((TERN_SEQUENCES_MAX & (TERN_SEQUENCES_MAX - 1)) == 0 &&
		       (int)TERN_SEQUENCES_MAX <= (int)KEY_STEP,
	       "a mask reads a number");

static inline unsigned key_id(uint64_t key)
{
	return key % TERN_SEQUENCES_MAX;
}

struct words {
	uint64_t word[TERN_STREAM_WORDS];
};

/* A place in a window: of a packet that is kept until it is acknowledged, or that came early. */
struct piece {
	uint64_t word[TERN_STREAM_WORDS];
	uint8_t n;
	bool asks;
	uint64_t unused_[3]; /* so that a shift finds it */
};
_Static_assert(sizeof(struct piece) == 64, "a place is a line");

static inline struct piece *piece_at(struct piece *window, uint64_t key)
{
	return &window[key / KEY_STEP % WINDOW];
}

/* How packets of any number of words are described: that number, whether an answer is wanted. */
enum { SHAPE_ASKS = 1 << 8, SHAPE_WORDS = SHAPE_ASKS - 1 };

/* The headers of packets of two and of four words, which are described by their handlers. */
#define BITS_TWO layer_bits(STREAM_TWO, 3)
#define BITS_FOUR layer_bits(STREAM_FOUR, 5)
#define BITS_ASKS (UINT64_C(1) << TERN_ID_SHIFT)
_Static_assert(STREAM_TWO_ASKS == STREAM_TWO + 1 && STREAM_FOUR_ASKS == STREAM_FOUR + 1,
	       "added to a header");

/* The sending end. */
struct tern_stream {
	tern *t;
	struct tern_lane *lane;
	uint64_t next, acked; /* keys under way: [acked, next) */
	uint64_t end;         /* keys below it may be put; 0 if the common case is not to be */
	uint64_t bits;        /* of the header of a packet of two words */
	unsigned left;        /* packets until one asks for an acknowledgement, */
	unsigned period;      /* then so many again: the group, or no end where each of them asks */
	unsigned group;
	unsigned id;
	uint32_t dst;
	bool open; /* else it is here for its numbers, from which the next one goes on */
	bool plain;
	struct tern_inlet *replies;
	struct tern_stream *next_stream;
	struct sequence *q;
	uint64_t tried;           /* what `acked` was at the last look: patience begins anew */
	struct patience patience; /* of the first */
	struct piece kept[WINDOW];
};

#endif
