/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of layers that must be as quick as tern_request(): inline, written into the ring and
 * taken out of it where they lie.
 */
#ifndef TERN_CORE_DIRECT_H
#define TERN_CORE_DIRECT_H

#include "core/layer.h"
#include "endpoint/count.h"

/*
 * A request of six words, or of `n`, a constant, of Tern's own: inline where tern_request() is, for
 * those that must be as quick.
 */
static inline __attribute__((always_inline)) int layer_write(struct endpoint *e, uint32_t dst,
							     unsigned id, unsigned n, TERN_SIX_)
{
	tern *t = e->t;
	struct tern_lane *lane = &t->lane[dst];
	if (TERN_UNLIKELY(!t->reach ||
			  !tern_lane_write_(lane, TERN_HANDLER_MAX + id, n, TERN_SIX_VALUES_))) {
		const uint64_t words[] = { TERN_SIX_VALUES_ };
		return layer_request(e, dst, id, NULL, 0, n, words);
	}
	if (TERN_UNLIKELY(tern_unheeded_(lane))) /* cost: base status */
		tern_knock_(t, lane);
	tern_look_(t);
	return 0;
}

static inline int layer_words(struct endpoint *e, uint32_t dst, unsigned id, TERN_SIX_)
{
	return layer_write(e, dst, id, 6, TERN_SIX_VALUES_);
}

/*
 * The same in two parts, where the caller writes the words by itself: the line that the next
 * message goes into, if this is the common case; and its header, `bits` of which are the handler's
 * and the number of words. The caller has seen `reach`.
 */
static inline bool layer_line(const struct tern_lane *lane, tern_msg **m)
{
	char *p = lane->tail;
	*m = (tern_msg *)(void *)p;
	return TERN_LIKELY(p < lane->limit); /* cost: flow status */
}

static inline void layer_line_send(struct tern_lane *lane, tern_msg *m, uint64_t bits)
{
	/* ring.R1, release; acquired in inlet_drain(). */
	atomic_store_explicit(&m->head, lane->head | bits, memory_order_release);
	tern_prefetch_write_((char *)m + lane->ahead);
	lane->tail = (char *)(m + 1); /* cost: order setup */
}

/* The bits of the header of a message of `n` words to a handler of Tern's own. */
static inline uint64_t layer_bits(unsigned id, unsigned n)
{
	return (uint64_t)(TERN_HANDLER_MAX + id) << TERN_ID_SHIFT | n;
}

/*
 * A reply that the program waits for can be taken where it lies, without a poll and without its
 * handler, if a program that polls asks, and messages are neither traced nor counted one by one.
 * Only what is next in the inlet is, so their order stays. The inlet is open if something was sent
 * to that rank.
 */
static inline bool layer_may_take(const tern *t)
{
	return TERN_LIKELY(t->reach && !t->own->stats);
}

/* Whether the message at the cursor is there and has this header: what is expected ^ the bits. */
static inline bool layer_is(const tern_msg *m, uint64_t head)
{
	/* ring.R1, acquire; released in tern_line_write_(): the words follow the header. */
	return TERN_LIKELY(atomic_load_explicit(&m->head, memory_order_acquire) == head);
}

/* Goes on behind the `n` messages that were taken; their words stay until a poll. */
static inline void layer_pass(struct endpoint *e, struct tern_inlet *in, uint64_t n)
{
	in->cursor += n * TERN_LINE;
	poll_note(e, in, n); /* cost: statistics control */
}

/* Passes the end of a leaf, if that is there instead. */
static inline bool layer_advance(struct tern_inlet *in)
{
	uint64_t head = atomic_load_explicit(&inlet_at(in)->head, memory_order_relaxed);
	return inlet_control(in, head ^ in->expect);
}

/* tern_look_(), for calls that end with it: true if this one looks, by tern_look_around_(). */
static inline bool layer_looks(tern *t)
{
	return --t->looks == 0;
}

/*
 * What follows a message that was written, or several at once: a receiver that does not look is
 * knocked for, and the look is taken that each of these calls owes. 0.
 */
int layer_sent_knock(tern *t, struct tern_lane *lane);
int layer_sent_look(tern *t);

static inline int layer_sent(tern *t, struct tern_lane *lane)
{
	if (TERN_UNLIKELY(tern_unheeded_(lane)))
		return layer_sent_knock(t, lane);
	return TERN_UNLIKELY(layer_looks(t)) ? layer_sent_look(t) : 0;
}

/*
 * A reply of two words of Tern's own to the request whose handler runs and has not replied yet,
 * likewise. What the inline part leaves to do is apart, for handlers that end with it.
 */
enum layer_answered { ANSWER_WRITTEN, ANSWER_KNOCK, ANSWER_RARE };

static inline enum layer_answered layer_answer_write(tern *t, unsigned id, uint64_t w0, uint64_t w1)
{
	struct tern_lane *lane = t->answer;
	if (TERN_UNLIKELY(!tern_lane_write_(lane, TERN_HANDLER_MAX + id, 2, w0, w1, 0, 0, 0, 0)))
		return ANSWER_RARE;
	t->current = tern_answered_(t);
	return TERN_UNLIKELY(tern_unheeded_(lane)) ? ANSWER_KNOCK : ANSWER_WRITTEN;
}

int layer_answer_rest(tern *t, enum layer_answered what, unsigned id, uint64_t w0, uint64_t w1);

static inline int layer_answer(tern *t, unsigned id, uint64_t w0, uint64_t w1)
{
	struct tern_lane *lane = t->answer; /* gcc makes more of layer_answer_write() here */
	if (TERN_UNLIKELY(!tern_lane_write_(lane, TERN_HANDLER_MAX + id, 2, w0, w1, 0, 0, 0, 0)))
		return layer_answer_rest(t, ANSWER_RARE, id, w0, w1);
	t->current = tern_answered_(t);
	if (TERN_UNLIKELY(tern_unheeded_(lane)))
		return layer_answer_rest(t, ANSWER_KNOCK, id, w0, w1);
	return 0;
}

#endif
