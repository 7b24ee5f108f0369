/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel's ring: what lies in the shared heap of the rank that fills it.
 *
 * Four leaves, each a control line and 127 lines of seven words. Neither counts nor lines are
 * cleared by readers, and lines carry no lap number; three rules stand in for it.
 *
 * 1. Whoever fills the ring enters leaf n (counted from 1, over all laps) only when every
 *    reader has given back leaf n - 4, which had its place; it then opens the
 *    leaf's first two lines and writes n into the control line. (chan.R6, chan.R5)
 * 2. A line's successor is open before the line can be full, so a reader that has emptied a
 *    full line finds in the next one what this lap wrote. (chan.R4, in <tern/chan.h>)
 * 3. A reader passes a control line when it has seen there the number it waits for,
 *    and then gives back the leaf that it came from.
 *
 * Control lines have the count of an empty line for ever: the inline get, which knows nothing of
 * leaves, finds nothing there and goes to the library. One such line guards the ring's end.
 *
 * A line that is closed early has a mark; the item in its last word says why. (chan.R7)
 */
#ifndef TERN_CHAN_PIPE_H
#define TERN_CHAN_PIPE_H

#include <stdalign.h>
#include <stdbool.h>
#include <tern/chan.h>

enum {
	PIPE_LEAVES = 4,
	LEAF_LINES = TERN_CHAN_LEAF / TERN_LINE - 1,
	LINE_WORDS = TERN_CHAN_FULL / 8,
	LEAF_WORDS = LEAF_LINES * LINE_WORDS,
	PIPE_WORDS = (PIPE_LEAVES - 1) *
		     LEAF_WORDS, /* have room when all is read, wherever one stands */
};

#define MARK_NONE UINT32_MAX

/* Looks like an empty line to whoever steps on it. */
struct leaf_head {
	_Atomic int64_t head;
	_Atomic uint64_t number; /* of the leaf that its producer entered last here */
	uint64_t unused_[6];
};

struct leaf {
	struct leaf_head head;
	struct tern_chan_line line[LEAF_LINES];
};

/* What follows when a line ends early: the kind, and above it a number. */
enum item { ITEM_END = 1, ITEM_CALL };
enum { ITEM_BITS = 8 };

enum pipe_state {
	PIPE_OPEN,
	PIPE_CLOSED, /* the sending end was closed */
	PIPE_LEFT,   /* its rank left without closing it */
};

enum reader_state {
	READER_NONE, /* has not got the offer: nothing is put before all have */
	READER_OPEN, /* or only offered */
	READER_CLOSED,
	READER_LEFT,
};

/* What a reader says to whoever fills the ring. */
struct reader {
	alignas(TERN_LINE) _Atomic uint64_t freed; /* leaves that it has given back */
	_Atomic uint32_t state;                    /* enum reader_state */
};

struct pipe {
	struct leaf leaf[PIPE_LEAVES];
	struct leaf_head guard;
	_Atomic uint32_t state; /* enum pipe_state */
	struct reader reader[]; /* one for each rank of the list */
};

_Static_assert(sizeof(struct leaf) == TERN_CHAN_LEAF, "leaves lie side by side");
_Static_assert(sizeof(struct leaf_head) == TERN_LINE, "a control line is a line");

static inline size_t pipe_bytes(size_t readers)
{
	return sizeof(struct pipe) + readers * sizeof(struct reader);
}

void pipe_init(struct pipe *r, unsigned readers);
static inline void reader_set(struct reader *r, enum reader_state state)
{
	/* chan.R8, release; acquired in out_listens(): it has read what it wanted. */
	atomic_store_explicit(&r->state, (uint32_t)state, memory_order_release);
}

static inline struct tern_chan_line *pipe_begin(struct pipe *r)
{
	return (struct tern_chan_line *)(void *)r->leaf;
}

static inline bool line_is_control(const struct tern_chan_line *line)
{
	return (uintptr_t)line % TERN_CHAN_LEAF == 0;
}

#endif
