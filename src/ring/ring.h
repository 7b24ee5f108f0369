/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of lines with one producer (its lane) and one consumer (its inlet).
 *
 * The ring is cut into four leaves. When the producer goes on to the next leaf it
 * writes a credit line behind the last message of the old one, and the consumer that meets
 * it gives the leaf back. So the producer compares its tail with one limit and
 * the consumer looks at one header; wrapping, laps and credit cost something once a leaf.
 *
 *      leaf 0               leaf 1               leaf 2         leaf 3
 *     | line line . CREDIT | line line . CREDIT | line . CREDIT | . CREDIT |
 *
 * A message of more words than a line has takes two lines. It begins at the latest
 * LEAF_KEPT lines before the leaf's end, as every message does, so both lie in one leaf,
 * with the credit line behind them; behind a last message of one line it lies a line earlier.
 *
 * A ring may begin small and grow once: the credit line of a leaf then leads into other memory,
 * with larger leaves and a count of freed leaves of its own. So the order of messages does not
 * change, and nothing waits for the consumer. The producer decides (struct ring_growth): when the
 * ring is full, or has gone through a number of leaves, and there is memory. Leaves are numbered
 * on.
 *
 * Invariants.
 *  I1  The producer is in leaf k only while k - freed < RING_LEAVES, so it never
 *      writes a line that the consumer has not given back.
 *  I2  Every line's header is written once a lap. What a line holds when its leaf
 *      is entered is smaller than what is expected there: the previous lap's header, or 0.
 *      In the lap after the lap number has wrapped it is 0, because the producer
 *      clears each leaf before the line that leads into it.
 *  I3  A line shared by pieces is opened with its other headers cleared, before
 *      its first header is published.
 *  I4  The last message of a leaf is written by lane_put() alone, which then
 *      goes on at once if it can. A lane that could not is stuck: it has no room
 *      until the consumer gives a leaf back. That is what gates requests.
 *  I5  A lane that is not stuck has room for two lines before the credit line: for one message of
 *      any kind. So a reply of two lines has room whenever a reply of one line has.
 *  I6  The second line of a message, its header too, is written before the first line's
 *      header is published. Its header has the lap, so I2 holds, and says what it is:
 *      whoever looks back from the cursor finds the first line.
 *  I7  The larger memory is zero and its count of freed leaves is that of the first leaf there
 *      before the header that leads into it is published. So I1 and I2 hold there from the
 *      beginning, whatever the consumer has not given back of the small ring.
 *  I8  The lines of a payload behind its message have no headers, and their bytes may look like
 *      any. The consumer clears the headers of those lines when the message has been handled,
 *      before it gives the leaf back. So I2 holds there, too: smaller than what is expected.
 */
#ifndef TERN_RING_RING_H
#define TERN_RING_RING_H

#include <stdbool.h>
#include <tern/tern.h>

enum {
	RING_LEAVES = 4,
	REQUEST_LEAF_LINES = 128,
	REPLY_LEAF_LINES = 64,
	LEAF_KEPT = 3, /* lines of a leaf behind the last that the inline path writes */
};

/* Lines of messages that a leaf has room for in any case, where one of two lines counts as two. */
static inline uint32_t ring_leaf_room(uint32_t leaf_lines)
{
	return leaf_lines - LEAF_KEPT + 1;
}

#define RING_LAPS \
	((UINT64_C(1) << (64 - TERN_LAP_SHIFT)) - 1) /* numbers of laps: 1 to this, and 1 again */

/* Control headers, in the place of the handler number. */
enum control { CONTROL_NEXT, CONTROL_PAD, CONTROL_GROW = 3 }; /* 2: TERN_HEAD_SECOND */

/* Whether a message of `n` words takes two lines. */
static inline bool words_double(unsigned n)
{
	return n > TERN_LINE_WORDS;
}

/* Whether a header, or what it differs by from what was expected, is of a message of two lines. */
static inline bool head_double(uint64_t head)
{
	unsigned n = head & TERN_HEAD_WORDS;
	return (head & (TERN_HEAD_CONTROL | TERN_HEAD_PIECE)) == TERN_HEAD_CONTROL &&
	       words_double(n) && n <= TERN_WORDS_MAX;
}

/* The bytes in a ring of a message of one line and the payload behind it. */
static inline size_t carry_bytes(size_t len)
{
	return (len + 2 * TERN_LINE - 1) & ~(size_t)(TERN_LINE - 1);
}

/* Whether a message's payload lies behind it in the ring, and not in a block. */
static inline bool message_carries(const tern_msg *m, uint64_t head)
{
	return (head & (TERN_HEAD_PAYLOAD | TERN_HEAD_PIECE)) == TERN_HEAD_PAYLOAD &&
	       m->payload - ((uint64_t)TERN_LINE << TERN_LEN_BITS) <= TERN_CARRY_MAX;
}

/* The bytes in a ring of a message with that header, or what it differs by. */
static inline size_t message_bytes(const tern_msg *m, uint64_t head)
{
	if (head & TERN_HEAD_PIECE)
		return TERN_PIECE;
	if (TERN_UNLIKELY(message_carries(m, head)))
		return carry_bytes(m->payload & ((1 << TERN_LEN_BITS) - 1));
	return TERN_UNLIKELY(head & TERN_HEAD_CONTROL) ? 2 * TERN_LINE : TERN_LINE;
}

/*
 * Clears the headers of the lines behind a message whose payload has been read (I8), up to the next
 * message.
 */
static inline void message_clear(const tern_msg *m, const char *next)
{
	for (tern_msg *line = (tern_msg *)(uintptr_t)m + 1; (const char *)line < next; line++)
		atomic_store_explicit(&line->head, 0, memory_order_relaxed);
}

/*
 * The message of whole lines that ends at `end`: the line before it, or two. It carries no payload.
 */
static inline const tern_msg *message_before(const char *end)
{
	const tern_msg *m = (const tern_msg *)(const void *)(end - TERN_LINE);
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	uint64_t mark = head & ((UINT64_C(1) << TERN_SRC_SHIFT) - 1);
	return m - (mark == TERN_HEAD_SECOND);
}

/* What is sent besides the words: handler, count, flags in the header's low part. */
struct parcel {
	uint64_t bits;
	unsigned n;
	const char *payload; /* with TERN_HEAD_PAYLOAD: where it lies, and its length */
	size_t len;
	bool carried; /* it is copied behind the message */
	uint64_t word[TERN_WORDS_MAX];
};

static inline struct parcel parcel_of(unsigned id, unsigned n, const uint64_t *words)
{
	struct parcel p = { .bits = (uint64_t)id << TERN_ID_SHIFT | n, .n = n };
	for (unsigned i = 0; i < n; i++)
		p.word[i] = words[i];
	return p;
}

/* Memory of a ring: RING_LEAVES * leaf_lines lines, all zero, and where leaves are given back. */
struct ring_memory {
	char *lines;
	uint32_t leaf_lines;
	_Atomic uint64_t *freed;
};

/* How the rings of a network grow. */
struct ring_growth {
	/* The larger memory for a lane; false: there is none, and it stays as it is. */
	bool (*larger)(const struct ring_growth *g, const struct tern_lane *lane,
		       struct ring_memory *m);
	uint64_t leaves; /* a ring that has gone through so many grows, though it is not full */
};

#define RING_MOVED UINT64_MAX /* the consumer of a small ring has gone on to the larger one */

/* The producer's end. `memory` holds RING_LEAVES * leaf_lines lines, all zero. */
void lane_open(struct tern_lane *lane, char *memory, uint32_t leaf_lines, _Atomic uint64_t *freed,
	       _Atomic uint8_t *heed, uint32_t source, uint32_t peer);

/* Whether there is room for one message of any kind; enters the next leaf if it must and can. */
bool lane_ready(struct tern_lane *lane);

/*
 * Writes a message of any kind. The caller has seen lane_ready(); of one with its payload behind
 * it, lane_carries().
 */
void lane_put(struct tern_lane *lane, const struct parcel *p);

/*
 * Whether there is room for a message with so many bytes of payload behind it; enters the next leaf
 * if it must and can.
 */
bool lane_carries(struct tern_lane *lane, size_t len);

/* Nothing is to be sent any more. */
void lane_shut(struct tern_lane *lane);

/*
 * Where leaves and messages are counted from: 0, or near the wrap of what travels of them
 * (base/wrap.h).
 */
uint64_t ring_first_leaf(void);
uint64_t ring_first_message(void);

/* How many messages have been written, of any kind, counted from there. */
uint64_t lane_count(const struct tern_lane *lane);

/* The same, counted from 0. */
uint64_t lane_sent(const struct tern_lane *lane);
uint64_t inlet_handled(const struct tern_inlet *in);

/* The consumer's end of the same memory. */
void inlet_open(struct tern_inlet *in, char *memory, uint32_t leaf_lines, _Atomic uint64_t *freed,
		uint32_t source, uint8_t kind);

/* The ring may grow, and where it then goes on. */
static inline void inlet_may_grow(struct tern_inlet *in, const struct ring_memory *m)
{
	in->larger = m->lines;
	in->larger_freed = m->freed;
	in->larger_lines = m->leaf_lines;
}

/* Passes the control header at the cursor; false if it is none. */
bool inlet_control(struct tern_inlet *in, uint64_t difference);

/* The same of the header that leads into the larger ring, which is met once. */
bool inlet_grown(struct tern_inlet *in, uint64_t difference);

/* Passes control headers; whether a message is next, and by what its header differs. */
bool inlet_next(struct tern_inlet *in, uint64_t *difference);

/* Messages that lie in the inlet now, the one at the cursor included. */
uint64_t inlet_lying(const struct tern_inlet *in);

/* The rank that its messages say they are from. Several inlets may be of one: see `peer`. */
static inline uint32_t inlet_source(const struct tern_inlet *in)
{
	return (uint32_t)(in->expect >> TERN_SRC_SHIFT) & 0xffff;
}

static inline const tern_msg *inlet_at(const struct tern_inlet *in)
{
	return (const tern_msg *)(const void *)in->cursor;
}

/*
 * Whether something new lies at the cursor: by I2, what is old is smaller. For a bell, whether it
 * has rung.
 */
static inline bool inlet_arrived(const struct tern_inlet *in)
{
	return atomic_load_explicit(&inlet_at(in)->head, memory_order_relaxed) >= in->expect;
}

/*
 * The same of a ring alone, whatever lies there: for looks that nothing but a message may answer.
 */
static inline bool inlet_has(const struct tern_inlet *in)
{
	uint64_t head = atomic_load_explicit(&inlet_at(in)->head, memory_order_relaxed);
	return (head ^ in->expect) >> TERN_LAP_SHIFT == 0;
}

/*
 * To behind the message at `at`, whose header differs by `x` from what was expected. Fetches the
 * line that is `ahead` lines ahead, although it has not been written yet; 0: none.
 */
static inline void inlet_step(struct tern_inlet *in, char *at, uint64_t x, int ahead)
{
	if (x & TERN_HEAD_PIECE) {
		in->cursor = at + TERN_PIECE; /* cost: order read */
	} else {
		if (ahead)
			__builtin_prefetch(at + ahead * TERN_LINE); /* cost: base read */
		in->cursor = at + TERN_LINE;                        /* cost: order read */
	}
}

/* The next lap's header; lap 0 is left out, so that a cleared header never matches. */
static inline uint64_t ring_next_lap(uint64_t head)
{
	head += UINT64_C(1) << TERN_LAP_SHIFT;
	return head >> TERN_LAP_SHIFT ? head : head + (UINT64_C(1) << TERN_LAP_SHIFT);
}

/* The header of the lap that a leaf is of. */
static inline uint64_t ring_lap_of(uint64_t leaf, uint32_t source)
{
	return (leaf / RING_LEAVES % RING_LAPS + 1) << TERN_LAP_SHIFT | (uint64_t)source
										<< TERN_SRC_SHIFT;
}

/* Whether a leaf is of the lap behind a wrap: that lap has the number of the first again. */
static inline bool ring_wrapped(uint64_t head, uint64_t leaf)
{
	return head >> TERN_LAP_SHIFT == 1 && leaf >= RING_LEAVES;
}

#endif
