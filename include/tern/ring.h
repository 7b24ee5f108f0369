/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inline path, first part: a ring's two ends, and how messages are written there and read.
 * Programs include <tern/tern.h>, never this file.
 *
 * A message is one 64-byte line in a ring with one producer and one consumer: a header, six words,
 * and a payload descriptor. Messages of 0 or 1 word are 16-byte pieces, four to a line. A message
 * of 7 or 8 words has a second line behind the first, with those words. A short payload may lie in
 * the lines behind its message. The header is written last and carries a lap number, so whatever an
 * older lap left in memory is smaller than, and never equal to, what the consumer expects.
 *
 *     63      36 35      20 19 18 17     8  7   5   4   3   0
 *    +----------+----------+--+--+--------+------+-----+-----+
 *    |   lap    |  source  |C |P |handler |  0   |piece|words|   C control, or two lines
 *    +----------+----------+--+--+--------+------+-----+-----+   P payload
 *
 * head ^ expected is below TERN_HEAD_PLAIN exactly when lap, source and handler
 * number are good and the message needs no special care: one comparison.
 */
#ifndef TERN_RING_H
#define TERN_RING_H

TERN_BEGIN_

#define TERN_LAP_SHIFT 36
#define TERN_SRC_SHIFT 20
#define TERN_HEAD_CONTROL (UINT64_C(1) << 19)
#define TERN_HEAD_PAYLOAD (UINT64_C(1) << 18)
#define TERN_HEAD_SECOND (TERN_HEAD_CONTROL | 2 << TERN_ID_SHIFT) /* a message's second line */
#define TERN_HEAD_PLAIN (UINT64_C(1) << 18) /* heads below this are plain messages */
#define TERN_ID_SHIFT 8
#define TERN_HEAD_PIECE (UINT64_C(1) << 4)
#define TERN_HEAD_WORDS 15      /* a mask */
#define TERN_HANDLER_SLOTS 1024 /* user handlers, then Tern's own */
#define TERN_LEN_BITS 16        /* of the payload descriptor; the rest is its distance, signed */
#define TERN_PREFETCH 8         /* lines */

#define TERN_LIKELY(x) __builtin_expect(!!(x), 1)
#define TERN_UNLIKELY(x) __builtin_expect(!!(x), 0)

struct tern_msg {
	TERN_ATOMIC_(uint64_t) head;
	uint64_t word[6];
	uint64_t payload; /* signed distance in bytes << TERN_LEN_BITS | length */
};

enum {
	TERN_LINE = 64,
	TERN_PIECE = 16,
	TERN_LINE_WORDS = 6,
	TERN_CARRY_MAX = 512 /* bytes of a payload that lies behind its message */
};

struct ring_growth;

enum { TERN_LANE_LAYERS = 16 }; /* bytes of a lane that are layers' */

/* The sending end of a ring. The first line is all that a send touches. */
struct tern_lane {
	char *tail;    /* the next line to write */
	char *limit;   /* lines below this may be written; 0 sends all to the slow path */
	uint64_t head; /* lap and source, ready for the header */
	TERN_ATOMIC_(uint8_t) * heed; /* owned by the receiver: 0 when it must be knocked for */
	char *piece; /* the next piece of the open line; 64-byte aligned when none is */
	char *end;   /* what limit is when no line is open: two lines are kept back */
	TERN_ATOMIC_(uint64_t) * freed; /* leaves that the receiver has given back */
	uint16_t ahead;   /* bytes, to the line that a send fetches; see lane_enter() */
	uint16_t entered; /* when this leaf was */
	uint16_t leaf_lines;
	uint16_t peer;
	uint64_t leaf; /* leaves entered so far, beginning with 0 */
	char *base;
	struct tern_inlet *gate;          /* of a reply lane: the inlet whose requests it answers */
	uint64_t carries;                 /* whether it takes short payloads */
	uint64_t pieces;                  /* messages that are more, or fewer, than lines so far */
	const struct ring_growth *growth; /* of a ring that begins small; else NULL */
	uint64_t layers[TERN_LANE_LAYERS / 8];
};

/* The receiving end of a ring. */
struct tern_inlet {
	char *cursor;             /* the next message */
	uint64_t expect;          /* its lap and source */
	struct tern_inlet *next;  /* in the poll set of inlets that are polled */
	uint64_t accept;          /* TERN_HEAD_PLAIN, or 0 while every message needs care */
	struct tern_lane *answer; /* where replies go; for replies, a lane that refuses */
	char *base;
	TERN_ATOMIC_(uint64_t) * freed;
	/* How sends look at it; see core/quick.c. */
	uint16_t rest;  /* looks that pass it by from now on */
	uint16_t pace;  /* it is looked at each so many looks */
	uint16_t found; /* messages, at half the pace; 0: the pace was not doubled last */
	uint8_t kind;   /* TERN_KIND_REQUEST, TERN_KIND_REPLY or TERN_KIND_BELL */
	uint8_t hot;    /* in the poll set */
	uint64_t leaf;
	uint32_t leaf_lines;
	uint32_t peer;
	char *seen;       /* where the cursor stood at the last look for silent peers */
	uint64_t handled; /* messages */
	uint64_t due;     /* what `handled` is when all that lay here at a barrier has been */
	/* Where the ring goes on when it grows; NULL if it does not. */
	char *larger;
	TERN_ATOMIC_(uint64_t) * larger_freed;
	uint64_t larger_lines; /* of a leaf there */
};

enum tern_kind { TERN_KIND_BELL, TERN_KIND_REQUEST, TERN_KIND_REPLY };

TERN_ASSERT_(sizeof(struct tern_msg) == TERN_LINE, "a message is one line");
TERN_ASSERT_(offsetof(struct tern_lane, end) < 64, "a send touches one line of its lane");
TERN_ASSERT_(sizeof(struct tern_lane) % TERN_LINE == 0, "lanes do not share lines");
TERN_ASSERT_(sizeof(struct tern_inlet) == 128, "inlets do not share lines");

/*
 * The six words of a send, as parameters: by value, since an array would be spilled on the fast
 * path.
 */
#define TERN_SIX_ uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4, uint64_t w5
#define TERN_SIX_VALUES_ w0, w1, w2, w3, w4, w5
#define TERN_ALL_ TERN_SIX_, uint64_t w6, uint64_t w7
#define TERN_ALL_VALUES_ TERN_SIX_VALUES_, w6, w7

TERN_INLINE_ uint32_t tern_msg_src(const tern_msg *m)
{
	return (uint32_t)(atomic_load_explicit(&m->head, memory_order_relaxed) >> TERN_SRC_SHIFT) &
	       0xffff;
}

TERN_INLINE_ unsigned tern_msg_count(const tern_msg *m)
{
	return (unsigned)atomic_load_explicit(&m->head, memory_order_relaxed) & TERN_HEAD_WORDS;
}

TERN_INLINE_ uint64_t tern_msg_word(const tern_msg *m, unsigned i)
{
	/* Behind the sixth word lie the payload's descriptor and the second line's header. */
	const uint64_t *word = (const uint64_t *)(const void *)m + 1;
	return word[i < TERN_LINE_WORDS ? i : i + 2];
}

TERN_INLINE_ double tern_msg_double(const tern_msg *m, unsigned i)
{
	return tern_double_word_(tern_msg_word(m, i));
}

TERN_INLINE_ unsigned tern_msg_handler(const tern_msg *m)
{
	return (unsigned)(atomic_load_explicit(&m->head, memory_order_relaxed) >> TERN_ID_SHIFT) &
	       (TERN_HANDLER_SLOTS - 1);
}

TERN_INLINE_ const void *tern_msg_data(const tern_msg *m, size_t *len)
{
	int has = (atomic_load_explicit(&m->head, memory_order_relaxed) & TERN_HEAD_PAYLOAD) != 0;
	if (len)
		*len = has ? m->payload & ((UINT64_C(1) << TERN_LEN_BITS) - 1) : 0;
	return has ? (const char *)m + ((int64_t)m->payload >> TERN_LEN_BITS) : NULL;
}

static inline void tern_prefetch_write_(const void *p)
{
#if defined(__x86_64__)
	/* __builtin_prefetch(p, 1) is a read prefetch on generic x86-64 and does not help. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/*
 * Writes one message at `p`. ring.R1, release; acquired in inlet_drain(): the words are
 * visible before the header. `n` is a constant in every caller that matters.
 */
static inline void tern_line_write_(char *p, uint64_t head, unsigned n, TERN_SIX_)
{
	tern_msg *m = (tern_msg *)(void *)p;
	if (n > 0)
		m->word[0] = w0;
	if (n > 1)
		m->word[1] = w1;
	if (n > 2)
		m->word[2] = w2;
	if (n > 3)
		m->word[3] = w3;
	if (n > 4)
		m->word[4] = w4;
	if (n > 5)
		m->word[5] = w5;
	atomic_store_explicit(&m->head, head, memory_order_release);
}

/* Thread sanitizer does not see what inline assembly orders. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TERN_WATCHED_ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TERN_WATCHED_ 1
#endif

/*
 * Whether the receiver must be knocked for, asked after the message is written.
 * The load may pass the store: whoever clears the byte issues a membarrier
 * before the last look at the ring (sleep_arm() and peers_demote()), which puts
 * the two back in order, so that a send needs only to keep the compiler's hands off.
 */
static inline int tern_unheeded_(const struct tern_lane *lane)
{
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(TERN_WATCHED_)
	/* Compilers load and test where the machine compares. */
	int clear;
	const char *heed = (const char *)(const void *)lane->heed;
	__asm__ volatile("cmpb $0, %1" : "=@cce"(clear) : "m"(*heed) : "memory");
	return clear;
#else
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(lane->heed, memory_order_relaxed) == 0;
#endif
}

int tern_lane_share_(struct tern_lane *lane, uint64_t bits, uint64_t word); /* opens a line */

/* Writes a message where the lane has room for it in the common case; 0 if this is not it. */
static inline int tern_lane_write_(struct tern_lane *lane, unsigned id, unsigned n, TERN_SIX_)
{
	if (n < 2) {
		char *p = lane->piece;
		if (((uintptr_t)p & (TERN_LINE - 1)) == 0)
			return tern_lane_share_(lane, id << TERN_ID_SHIFT | n, w0);
		uint64_t head = lane->head | TERN_HEAD_PIECE | id << TERN_ID_SHIFT |
				n; /* cost: base setup */
		tern_line_write_(p, head, n, TERN_SIX_VALUES_);
		lane->piece = p + TERN_PIECE; /* cost: order setup */
	} else {
		char *p = lane->tail;                /* cost: base setup */
		if (TERN_UNLIKELY(p >= lane->limit)) /* cost: flow status */
			return 0;
		uint64_t head = lane->head | id << TERN_ID_SHIFT | n; /* cost: base setup */
		tern_line_write_(p, head, n, TERN_SIX_VALUES_);
		tern_prefetch_write_(p + lane->ahead);
		lane->tail = p + TERN_LINE; /* cost: order setup */
	}
	return 1;
}

/* The words that a first line at `p` has no room for, and a header that says what they are. */
static inline void tern_second_write_(const struct tern_lane *lane, char *p, unsigned n,
				      const uint64_t *words)
{
	tern_msg *m = (tern_msg *)(void *)(p + TERN_LINE);
	m->word[0] = words[6];
	if (n > 7)
		m->word[1] = words[7];
	atomic_store_explicit(&m->head, lane->head | TERN_HEAD_SECOND,
			      memory_order_relaxed); /* the first line's is released behind it */
}

/* Writes a message of 7 or 8 words where the lane has room in the common case, or returns 0. */
static inline int tern_lane_double_(struct tern_lane *lane, unsigned id, unsigned n,
				    const uint64_t *w)
{
	char *p = lane->tail;
	uintptr_t second = (uintptr_t)p + TERN_LINE;
	if (TERN_UNLIKELY(second >= (uintptr_t)lane->limit)) /* cost: flow status */
		return 0;
	tern_second_write_(lane, p, n, w);
	lane->pieces--; /* two lines, and one message */
	tern_line_write_(p, lane->head | TERN_HEAD_CONTROL | id << TERN_ID_SHIFT | n,
			 TERN_LINE_WORDS, w[0], w[1], w[2], w[3], w[4], w[5]);
	tern_prefetch_write_(p + lane->ahead);
	tern_prefetch_write_(p + lane->ahead + TERN_LINE);
	lane->tail = p + 2 * TERN_LINE; /* cost: order setup */
	return 1;
}

/*
 * Writes a message with its payload in the lines behind it, where the lane takes such and has room
 * in the common case; 0 if this is not it. In a stream it fetches the lines of a message about four
 * later, else its own.
 */
static inline int tern_lane_carry_(struct tern_lane *lane, uint64_t bits, unsigned n,
				   const void *data, size_t len, TERN_SIX_)
{
	size_t bytes = (len + 2 * TERN_LINE - 1) & ~(size_t)(TERN_LINE - 1);
	char *line = lane->tail;
	if (TERN_UNLIKELY(len > TERN_CARRY_MAX || !lane->carries || line + bytes > lane->limit))
		return 0;
	const char *fetch = line + ((lane->ahead * bytes / (2 * TERN_LINE)) &
				    ~(size_t)(TERN_LINE - 1)); /* cost: base setup */
	for (size_t i = 0; i < bytes; i += TERN_LINE)
		tern_prefetch_write_(fetch + i);
	if (len)
		memcpy(line + TERN_LINE, data, len); /* cost: base write */
	((tern_msg *)(void *)line)->payload = (uint64_t)TERN_LINE << TERN_LEN_BITS | len;
	lane->pieces -= bytes / TERN_LINE - 1;
	tern_line_write_(line, lane->head | TERN_HEAD_PAYLOAD | bits, n, TERN_SIX_VALUES_);
	lane->tail = line + bytes; /* cost: order setup */
	return 1;
}

TERN_END_

#endif
