/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inline path. Programs include <tern/tern.h>, never this file.
 *
 * What lies here is the part of Tern's layout that is compiled into programs:
 * the line, the head of a lane, the head of an endpoint. TERN_LAYOUT is its
 * version; an endpoint opens only for a program compiled with the same one.
 * With TERN_NO_INLINE defined, a program calls the library instead.
 *
 * A message is one 64-byte line in a ring with one producer and one consumer:
 * a header, six words, and a payload descriptor. Messages of 0 or 1 word are
 * 16-byte pieces, four to a line. A message of 7 or 8 words has a second line behind
 * the first, with those words; the library writes and reads it. A short payload may lie in the
 * lines behind its message. The header is written last and carries a lap number, so whatever an
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
#ifndef TERN_FAST_H
#define TERN_FAST_H

TERN_BEGIN_

#define TERN_LAYOUT 7u

#define TERN_LAP_SHIFT 36
#define TERN_SRC_SHIFT 20
#define TERN_HEAD_CONTROL (UINT64_C(1) << 19)
#define TERN_HEAD_PAYLOAD (UINT64_C(1) << 18)
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

enum { TERN_LINE = 64, TERN_PIECE = 16, TERN_LINE_WORDS = 6 };

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

/* The head of an endpoint. */
#ifdef __cplusplus /* which has no flexible arrays, unless compilers let it */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif
struct tern {
	uint32_t reach; /* ranks that may be sent to from here and now: size, or 0 */
	uint32_t rank;
	uint32_t looks; /* sends until one looks at what has arrived, that one included */
	uint32_t unused_;
	const tern_msg *current;  /* the request being handled and not yet answered */
	struct tern_lane *answer; /* the lane for its answer; else one that refuses */
	struct endpoint *own;     /* the library's part */
	uint32_t size;
	TERN_ATOMIC_(uint32_t) alert; /* 0 unless holding and releasing need the library's care */
	TERN_ATOMIC_(uint64_t) *
		guard;     /* holds in force, and calls that the program is inside of */
	const void *heaps; /* those that can be written from here, one entry a rank */
	uint8_t known[TERN_HANDLER_SLOTS]; /* 1 where a handler is registered */
	tern_handler *handler[TERN_HANDLER_SLOTS];
	struct tern_lane lane[]; /* request lanes: one a rank, then one a worker */
};
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

TERN_ASSERT_(sizeof(struct tern_msg) == TERN_LINE, "a message is one line");
TERN_ASSERT_(offsetof(struct tern_lane, end) < 64, "a send touches one line of its lane");
TERN_ASSERT_(sizeof(struct tern_lane) % TERN_LINE == 0, "lanes do not share lines");
TERN_ASSERT_(offsetof(struct tern, known) == 64, "a send touches one line of the endpoint's head");
TERN_ASSERT_(sizeof(struct tern_inlet) == 128, "inlets do not share lines");
TERN_ASSERT_(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "futexes are the low half of a word");

/*
 * The six words of a send, as parameters: by value, since an array would be spilled on the fast
 * path.
 */
#define TERN_SIX_ uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4, uint64_t w5
#define TERN_SIX_VALUES_ w0, w1, w2, w3, w4, w5
#define TERN_ALL_ TERN_SIX_, uint64_t w6, uint64_t w7
#define TERN_ALL_VALUES_ TERN_SIX_VALUES_, w6, w7

/* Counting and padding argument lists; see tern_request. */
#define TERN_COUNT_(...) TERN_COUNTED_(__VA_ARGS__, TERN_COUNTS_, 0)
#define TERN_COUNT1_(...) TERN_COUNTED_(0, __VA_ARGS__, TERN_COUNTS_, 0)
#define TERN_COUNTS_ 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0
#define TERN_COUNTED_(...) TERN_COUNTED2_(__VA_ARGS__)
#define TERN_COUNTED2_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, count, ...) \
	TERN_WORDS_(count)
/* The last eight are words. */
#define TERN_TEN_(a, ...) a, TERN_NINE_(__VA_ARGS__)
#define TERN_NINE_(a, b, c, d, e, f, g, h, i, ...)                                    \
	a, TERN_WORD_(b), TERN_WORD_(c), TERN_WORD_(d), TERN_WORD_(e), TERN_WORD_(f), \
		TERN_WORD_(g), TERN_WORD_(h), TERN_WORD_(i)

int tern_open_layout_(tern **t, const tern_options *o, unsigned layout);
int tern_open_local_layout_(uint32_t n, tern **t, unsigned layout);

TERN_INLINE_ int tern_open(tern **t, const tern_options *o)
{
	return tern_open_layout_(t, o, TERN_LAYOUT);
}

TERN_INLINE_ int tern_open_local(uint32_t n, tern **t)
{
	return tern_open_local_layout_(n, t, TERN_LAYOUT);
}

int tern_request_payload_(tern *t, uint32_t dst, unsigned id, const void *data, unsigned n,
			  size_t len, TERN_SIX_);
int tern_reply_payload_(tern *t, const tern_msg *m, unsigned id, const void *data, unsigned n,
			size_t len, TERN_SIX_);
int tern_commit_words_(tern *t, void *claimed, unsigned n, unsigned id, TERN_SIX_);
int tern_reply_commit_words_(tern *t, const tern_msg *m, void *claimed, unsigned n, unsigned id,
			     TERN_SIX_);

/* What the inline path leaves to the library: everything that is not the common case. */
int tern_request_rare_(tern *t, uint32_t dst, unsigned id, unsigned n, TERN_SIX_);
int tern_reply_rare_(tern *t, const tern_msg *m, unsigned id, unsigned n, TERN_SIX_);
int tern_lane_share_(struct tern_lane *lane, uint64_t bits,
		     uint64_t word);               /* the first piece of a line */
void tern_knock_(tern *t, struct tern_lane *lane); /* tells a receiver that does not look */
void tern_look_around_(tern *t);                   /* serves what has arrived, and sets `looks` */

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

TERN_INLINE_ void tern_signal(tern *t, tern_flag *flag, uint64_t n)
{
	(void)t; /* flag is this endpoint's: handlers and waits run one after another */
	/*
	 * Release: a program that computes may look at the flag while another thread runs its
	 * handlers.
	 */
	atomic_store_explicit(flag, atomic_load_explicit(flag, memory_order_relaxed) + n,
			      memory_order_release);
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

/*
 * Every send owes a look at one inlet of the poll set. The looks of several sends are taken
 * together, by one of them; see docs/design.md, Who looks at what.
 */
static inline void tern_look_(tern *t)
{
	if (TERN_UNLIKELY(--t->looks == 0))
		tern_look_around_(t);
}

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

#define TERN_GUARD_HOLD \
	(INT64_C(1) << 16) /* bits 0 to 15 count calls, 16 to 31 holds, the rest entries */

/*
 * Adds to the guard, which this thread alone writes; guard.R5, release; acquired in guard_busy().
 * Compilers make three instructions of this where the machine has one. Whoever looks at the alert
 * next does so after the addition as far as this thread can tell; see docs/design.md, Delivery, for
 * the others.
 */
static inline void tern_guard_add_(tern *t, int64_t n)
{
#if defined(__x86_64__) && !defined(TERN_WATCHED_)
	__asm__ volatile("addq %1, %0" : "+m"(*t->guard) : "er"(n) : "memory", "cc");
#else
	atomic_store_explicit(t->guard,
			      atomic_load_explicit(t->guard, memory_order_relaxed) + (uint64_t)n,
			      memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/*
 * alert.R6, acquire; released in alert_drop(): whoever finds no alert sees what was handled before.
 */
static inline uint32_t tern_alerted_(const tern *t)
{
	return atomic_load_explicit(&t->alert, memory_order_acquire);
}

/*
 * Whether there is one; the machine compares and branches, where compilers would load, test and
 * branch.
 */
static inline int tern_alert_(const tern *t)
{
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(TERN_WATCHED_)
	int raised;
	__asm__ volatile("cmpl $0, %1" : "=@ccne"(raised) : "m"(t->alert) : "memory");
	return raised;
#else
	return tern_alerted_(t) != 0;
#endif
}

void tern_hold_rare_(tern *t);    /* after the guard says that a hold begins */
void tern_release_rare_(tern *t); /* after it says that one is over */

static inline void tern_hold_inline_(tern *t)
{
	tern_guard_add_(t, TERN_GUARD_HOLD);
	if (TERN_UNLIKELY(tern_alert_(t)))
		tern_hold_rare_(t);
}

static inline void tern_release_inline_(tern *t)
{
	tern_guard_add_(t, -TERN_GUARD_HOLD);
	if (TERN_UNLIKELY(tern_alert_(t)))
		tern_release_rare_(t);
}

/* What `current` is when the request has been answered: an address that no message has. */
static inline const tern_msg *tern_answered_(const tern *t)
{
	return (const tern_msg *)(const void *)t;
}

/* The two sends, inline; with TERN_NO_INLINE the words go to the library in an array. */
static inline int tern_request_inline_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_SIX_)
{
	struct tern_lane *lane = &t->lane[dst];
	if (TERN_UNLIKELY(dst >= t->reach || n > TERN_LINE_WORDS || id >= TERN_HANDLER_MAX ||
			  !t->known[id] || !tern_lane_write_(lane, id, n, TERN_SIX_VALUES_)))
		return tern_request_rare_(t, dst, id, n, TERN_SIX_VALUES_);
	if (TERN_UNLIKELY(tern_unheeded_(lane))) /* cost: base status */
		tern_knock_(t, lane);
	tern_look_(t);
	return 0;
}

static inline int tern_reply_inline_(tern *t, unsigned n, const tern_msg *m, unsigned id, TERN_SIX_)
{
	struct tern_lane *lane = t->answer;
	if (TERN_UNLIKELY(m != t->current || n > TERN_LINE_WORDS || id >= TERN_HANDLER_MAX ||
			  !t->known[id] || !tern_lane_write_(lane, id, n, TERN_SIX_VALUES_)))
		return tern_reply_rare_(t, m, id, n, TERN_SIX_VALUES_);
	t->current = tern_answered_(t);
	if (TERN_UNLIKELY(tern_unheeded_(lane))) /* cost: base status */
		tern_knock_(t, lane);
	return 0;
}

#ifdef TERN_NO_INLINE
static inline int tern_request_words_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_SIX_)
{
	const uint64_t words[] = { TERN_SIX_VALUES_ };
	return tern_request_array(t, dst, id, n, words);
}

static inline int tern_reply_words_(tern *t, unsigned n, const tern_msg *m, unsigned id, TERN_SIX_)
{
	const uint64_t words[] = { TERN_SIX_VALUES_ };
	return tern_reply_array(t, m, id, n, words);
}
#else
#define tern_request_words_ tern_request_inline_
#define tern_reply_words_ tern_reply_inline_
#define tern_hold tern_hold_inline_ /* they are functions of the library, too */
#define tern_release tern_release_inline_
#endif

static inline int tern_reply_to_words_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_ALL_)
{
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_reply_to_array(t, dst, id, n, words);
}

/*
 * Any number of words: more than a line has go by array, out of line. `n` is a constant in what
 * the macros expand to, so one of the two is left.
 */
static inline int tern_request_any_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_request_words_(t, n, dst, id, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_request_array(t, dst, id, n, words);
}

static inline int tern_reply_any_(tern *t, unsigned n, const tern_msg *m, unsigned id, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_reply_words_(t, n, m, id, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_reply_array(t, m, id, n, words);
}

static inline int tern_request_data_any_(tern *t, uint32_t dst, unsigned id, const void *data,
					 unsigned n, size_t len, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_request_payload_(t, dst, id, data, n, len, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_request_data_array(t, dst, id, data, len, n, words);
}

static inline int tern_reply_data_any_(tern *t, const tern_msg *m, unsigned id, const void *data,
				       unsigned n, size_t len, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_reply_payload_(t, m, id, data, n, len, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_reply_data_array(t, m, id, data, len, n, words);
}

static inline int tern_commit_any_(tern *t, void *claimed, unsigned n, unsigned id, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_commit_words_(t, claimed, n, id, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_commit_array(t, claimed, id, n, words);
}

static inline int tern_reply_commit_any_(tern *t, const tern_msg *m, void *claimed, unsigned n,
					 unsigned id, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_reply_commit_words_(t, m, claimed, n, id, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_reply_commit_array(t, m, claimed, id, n, words);
}

TERN_END_

#endif
