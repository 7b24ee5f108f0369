/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inline path: the head of an endpoint, and the sends. Programs include <tern/tern.h>, never
 * this file.
 *
 * What lies here and in ring.h is the part of Tern's layout that is compiled into programs: the
 * line, the head of a lane, the head of an endpoint. TERN_LAYOUT is its version; an endpoint opens
 * only for a program compiled with the same one. With TERN_NO_INLINE defined, a program calls the
 * library instead.
 */
#ifndef TERN_FAST_H
#define TERN_FAST_H

#include <tern/ring.h>

TERN_BEGIN_

#define TERN_LAYOUT 7u

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

TERN_ASSERT_(offsetof(struct tern, known) == 64, "a send touches one line of the endpoint's head");
TERN_ASSERT_(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "futexes are the low half of a word");

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
void tern_knock_(tern *t, struct tern_lane *lane); /* tells a receiver that does not look */
void tern_look_around_(tern *t);                   /* serves what has arrived, and sets `looks` */

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

/*
 * Every send owes a look at one inlet of the poll set. The looks of several sends are taken
 * together, by one of them; see docs/design.md, Who looks at what.
 */
static inline void tern_look_(tern *t)
{
	if (TERN_UNLIKELY(--t->looks == 0))
		tern_look_around_(t);
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

/* What `current` is when the request has been answered. */
static inline const tern_msg *tern_answered_(const tern *t)
{
	return (const tern_msg *)(const void *)t;
}

/*
 * Whether this is not a send to a rank that can be reached now, for a handler that it knows. Spelt
 * out where a message is one line, compilers make an instruction less of it.
 */
static inline int tern_unsendable_(const tern *t, uint32_t dst, unsigned id)
{
	return dst >= t->reach || id >= TERN_HANDLER_MAX || !t->known[id];
}

/* The same of an answer to the request in hand. */
static inline int tern_unanswerable_(const tern *t, const tern_msg *m, unsigned id)
{
	return m != t->current || id >= TERN_HANDLER_MAX || !t->known[id];
}

/* What a request owes when it has been written. */
static inline int tern_requested_(tern *t, struct tern_lane *lane)
{
	if (TERN_UNLIKELY(tern_unheeded_(lane))) /* cost: base status */
		tern_knock_(t, lane);
	tern_look_(t);
	return 0;
}

/* And a reply: `current` becomes an address that no message has. */
static inline int tern_replied_(tern *t, struct tern_lane *lane)
{
	t->current = tern_answered_(t);
	if (TERN_UNLIKELY(tern_unheeded_(lane))) /* cost: base status */
		tern_knock_(t, lane);
	return 0;
}

/* The sends, inline; with TERN_NO_INLINE the words go to the library in an array. */
static inline int tern_request_inline_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_SIX_)
{
	struct tern_lane *lane = &t->lane[dst];
	if (TERN_UNLIKELY(dst >= t->reach || n > TERN_LINE_WORDS || id >= TERN_HANDLER_MAX ||
			  !t->known[id] || !tern_lane_write_(lane, id, n, TERN_SIX_VALUES_)))
		return tern_request_rare_(t, dst, id, n, TERN_SIX_VALUES_);
	return tern_requested_(t, lane);
}

static inline int tern_reply_inline_(tern *t, unsigned n, const tern_msg *m, unsigned id, TERN_SIX_)
{
	struct tern_lane *lane = t->answer;
	if (TERN_UNLIKELY(m != t->current || n > TERN_LINE_WORDS || id >= TERN_HANDLER_MAX ||
			  !t->known[id] || !tern_lane_write_(lane, id, n, TERN_SIX_VALUES_)))
		return tern_reply_rare_(t, m, id, n, TERN_SIX_VALUES_);
	return tern_replied_(t, lane);
}

/* With 7 or 8 words. */
static inline int tern_request_double_inline_(tern *t, unsigned n, uint32_t dst, unsigned id,
					      const uint64_t *words)
{
	struct tern_lane *lane = &t->lane[dst];
	if (TERN_UNLIKELY(tern_unsendable_(t, dst, id) || n > TERN_WORDS_MAX ||
			  !tern_lane_double_(lane, id, n, words)))
		return tern_request_array(t, dst, id, n, words);
	return tern_requested_(t, lane);
}

static inline int tern_reply_double_inline_(tern *t, unsigned n, const tern_msg *m, unsigned id,
					    const uint64_t *words)
{
	struct tern_lane *lane = t->answer;
	if (TERN_UNLIKELY(tern_unanswerable_(t, m, id) || n > TERN_WORDS_MAX ||
			  !tern_lane_double_(lane, id, n, words)))
		return tern_reply_array(t, m, id, n, words);
	return tern_replied_(t, lane);
}

/* With a payload, which goes behind its message. */
static inline int tern_request_carry_inline_(tern *t, uint32_t dst, unsigned id, const void *data,
					     unsigned n, size_t len, TERN_SIX_)
{
	struct tern_lane *lane = &t->lane[dst];
	uint64_t bits = id << TERN_ID_SHIFT | n;
	if (TERN_UNLIKELY(tern_unsendable_(t, dst, id) || (!data && len) ||
			  !tern_lane_carry_(lane, bits, n, data, len, TERN_SIX_VALUES_)))
		return tern_request_payload_(t, dst, id, data, n, len, TERN_SIX_VALUES_);
	return tern_requested_(t, lane);
}

static inline int tern_reply_carry_inline_(tern *t, const tern_msg *m, unsigned id,
					   const void *data, unsigned n, size_t len, TERN_SIX_)
{
	struct tern_lane *lane = t->answer;
	uint64_t bits = id << TERN_ID_SHIFT | n;
	if (TERN_UNLIKELY(tern_unanswerable_(t, m, id) || (!data && len) ||
			  !tern_lane_carry_(lane, bits, n, data, len, TERN_SIX_VALUES_)))
		return tern_reply_payload_(t, m, id, data, n, len, TERN_SIX_VALUES_);
	return tern_replied_(t, lane);
}

#ifdef TERN_NO_INLINE
#define tern_request_double_(t, n, dst, id, words) tern_request_array(t, dst, id, n, words)
#define tern_reply_double_(t, n, m, id, words) tern_reply_array(t, m, id, n, words)
#define tern_request_carry_ tern_request_payload_
#define tern_reply_carry_ tern_reply_payload_
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
#define tern_request_double_ tern_request_double_inline_
#define tern_reply_double_ tern_reply_double_inline_
#define tern_request_carry_ tern_request_carry_inline_
#define tern_reply_carry_ tern_reply_carry_inline_
#define tern_hold tern_hold_inline_ /* they are functions of the library, too */
#define tern_release tern_release_inline_
#endif

static inline int tern_reply_to_words_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_ALL_)
{
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_reply_to_array(t, dst, id, n, words);
}

/*
 * Any number of words: more than a line has go by array. `n` is a constant in what the macros
 * expand to, so one of the two is left.
 */
static inline int tern_request_any_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_request_words_(t, n, dst, id, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_request_double_(t, n, dst, id, words);
}

static inline int tern_reply_any_(tern *t, unsigned n, const tern_msg *m, unsigned id, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_reply_words_(t, n, m, id, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_reply_double_(t, n, m, id, words);
}

static inline int tern_request_data_any_(tern *t, uint32_t dst, unsigned id, const void *data,
					 unsigned n, size_t len, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_request_carry_(t, dst, id, data, n, len, TERN_SIX_VALUES_);
	const uint64_t words[] = { TERN_ALL_VALUES_ };
	return tern_request_data_array(t, dst, id, data, len, n, words);
}

static inline int tern_reply_data_any_(tern *t, const tern_msg *m, unsigned id, const void *data,
				       unsigned n, size_t len, TERN_ALL_)
{
	if (n <= TERN_LINE_WORDS)
		return tern_reply_carry_(t, m, id, data, n, len, TERN_SIX_VALUES_);
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
