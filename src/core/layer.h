/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands on the core: a layer has state in every endpoint, handlers of its
 * own numbers, and work that the endpoint's polls carry on. An endpoint gets the table of them
 * when it is opened; adding one is a folder and a line in src/open/open.c.
 */
#ifndef TERN_CORE_LAYER_H
#define TERN_CORE_LAYER_H

#include <errno.h>
#include <tern/op.h>

#include "core/scope.h"
#include "endpoint/count.h"

struct layer {
	/* Before the endpoint's first message: handlers are registered here. */
	int (*open)(struct endpoint *e, void **state);
	void (*close)(void *state);
	/*
	 * Called by polls while the layer has work (layer_work): a bounded turn. What was done, or
	 * 1 if a later poll will do something whatever happens; 0 lets a wait rest.
	 */
	unsigned (*progress)(void *state);
	/*
	 * `rank` has left, and what it had sent has been handled: nothing comes from it any more.
	 * Called once for each, in a poll, but neither in a handler, nor under a hold, nor in a
	 * layer's progress.
	 */
	void (*lost)(void *state, uint32_t rank);
	/*
	 * Whether something of the handle waits for whoever comes, so that the death of any rank
	 * may mean that it never ends; may be NULL.
	 */
	bool (*needs_anyone)(const void *state, const tern_op *op);
	/*
	 * Whether something is under way, other than messages, that may still run code of the
	 * program's here: tern_team_quiet() asks. What the layer has as work need not be told; may
	 * be NULL.
	 */
	bool (*busy)(const void *state);
	/*
	 * 0, or why the endpoint cannot be closed, and then it stays open; may wait; may be NULL.
	 */
	int (*closing)(void *state);
	/*
	 * The endpoint is about to leave: finishes what others count on, within the grace time; may
	 * be NULL.
	 */
	void (*leave)(void *state);
	/*
	 * In a forked child: refuses what the layer would do without asking the core; may be NULL.
	 */
	void (*disown)(void *state);
	/* Answers the posted item whose handler runs; of the layer that has those; else NULL. */
	int (*reply)(void *state, const struct parcel *p);
	/*
	 * Before a barrier: sends what the program has handed over to be sent, so that the barrier
	 * covers it; may wait; may be NULL.
	 */
	int (*flush)(void *state);
	/* Writes what is under way to `fd`, for a job that is stuck; may be NULL. */
	void (*report)(const void *state, int fd);
	/*
	 * Of what has a handle: sets the bits of the ranks that it waits for, and returns in words
	 * what it is, or NULL if there is none; may be NULL.
	 */
	const char *(*awaits)(void *state, uint64_t *set);
};

enum layer_index {
	LAYER_MEM,
	LAYER_MSG,
	LAYER_TYPED,
	LAYER_CHAN,
	LAYER_ASYNC,
	LAYER_SPAWN,
	LAYER_SEQUENCE,
	LAYER_COLL,
	LAYER_POST,
	LAYERS,
	/* Bits of the endpoint's work that are no layer's: lost.c has some, a barrier is begun. */
	LAYERS_DRAINING = LAYERS,
	LAYERS_BARRIER,
};

/* Tells polls whether the layer wants to be called. */
static inline void layer_work(struct endpoint *e, enum layer_index layer, bool has)
{
	if (has)
		e->work |= 1u << layer;
	else
		e->work &= ~(1u << layer);
}

int layers_open(struct endpoint *e);
void layers_close(struct endpoint *e);
unsigned layers_progress(struct endpoint *e);
bool layers_need_anyone(const struct endpoint *e, const tern_op *op);
bool layers_busy(const struct endpoint *e, uint32_t but); /* `but`: whose work does not count */
int layers_flush(struct endpoint *e);
int layers_closing(struct endpoint *e);
void layers_leave(struct endpoint *e);
void layers_disown(struct endpoint *e);
void layers_report(const struct endpoint *e, int fd);
const char *layers_await(const struct endpoint *e, uint64_t *set);

/* Whether `rank` has left, and the layers have been told: what it had sent is handled. */
static inline bool layer_lost(const struct endpoint *e, uint32_t rank)
{
	return e->site.peer[rank].lost && !e->site.peer[rank].draining;
}

/* Whether memory of `rank` is mapped here to be written; not under TERN_GRANT. */
static inline bool layer_maps(const struct endpoint *e, uint32_t rank)
{
	return e->site.peer[rank].net->provides & PROVIDES_SHARED;
}

/*
 * The error that a word of a message stands for, as a code: layers send it with either sign. A word
 * that no good peer sends is -EBADMSG.
 */
static inline int layer_error(uint64_t word)
{
	uint64_t size = word > INT64_MAX ? -word : word;
	return size < 4096 ? -(int)size : -EBADMSG;
}

/* Registers a handler of Tern's own: `id` counts from 0, apart from the program's. */
void layer_on_named(struct endpoint *e, unsigned id, tern_handler *fn, const char *name);
#define layer_on(e, id, fn) layer_on_named(e, id, fn, #fn)

/*
 * The handler `id`, of the first layer, may run on a thread of the library while the program
 * computes (endpoint.serves): it touches memory that others may touch at any time, replies, and
 * does nothing else. It sends no request, because lanes for those are written by the program
 * without a scope; it sets no work, for the same reason; it opens no scope.
 */
static inline void layer_serve(struct endpoint *e, unsigned id)
{
	e->servable |= 1u << id;
}

/* The same for messages of which `may` is true; others stay where they lie. One handler at most. */
static inline void layer_serve_if(struct endpoint *e, unsigned id,
				  bool (*may)(tern *t, const tern_msg *m))
{
	layer_serve(e, id);
	e->serve_asks = id;
	e->serve_may = may;
}

/*
 * A request or a reply of Tern's own, under the rules of tern_request_data() and
 * tern_reply_data(); without a payload if `data` is NULL.
 */
int layer_request(struct endpoint *e, uint32_t dst, unsigned id, const void *data, size_t len,
		  unsigned n, const uint64_t *words);
int layer_reply(struct endpoint *e, unsigned id, const void *data, size_t len, unsigned n,
		const uint64_t *words); /* to the request whose handler runs */

/*
 * A message of the reply class to `dst`, in the program, or in a handler that has replied to that
 * rank. -EAGAIN without a sentence: there is no room now.
 */
int layer_reply_more(struct endpoint *e, uint32_t dst, unsigned id, const void *data, size_t len,
		     unsigned n, const uint64_t *words);

/* Tells a handle that one operation has ended. */
void op_end(struct endpoint *e, tern_op *op, int error);
/*
 * Takes back an operation that did not start; `before` were pending when it was tried. If these
 * have ended meanwhile, it is now that nothing is pending.
 */
void op_withdraw(struct endpoint *e, tern_op *op, uint32_t before);
/* Defers `done`, once however often it is asked for. */
void op_done(struct endpoint *e, tern_op *op);
/* Whether a handle has nobody to tell: an operation that is complete on return leaves it alone. */
static inline bool op_silent(const tern_op *op)
{
	return op && !((uintptr_t)op->flag | (uintptr_t)op->done);
}
/* Tells a handle of an operation that was never pending. */
static inline void op_over(struct endpoint *e, tern_op *op)
{
	if (op_silent(op))
		return;
	op->pending++;
	op_end(e, op, 0);
}
/*
 * Ends a call that starts operations: blocking, with a handle of its own, if it was given none. A
 * call that blocks asks rules_wait() before it starts anything that does not end at once.
 */
int op_finish(tern *t, tern_op *op, tern_op *own, int rc);

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
			  !tern_lane_write(lane, TERN_HANDLER_MAX + id, n, TERN_SIX_VALUES_))) {
		const uint64_t words[] = { TERN_SIX_VALUES_ };
		return layer_request(e, dst, id, NULL, 0, n, words);
	}
	if (TERN_UNLIKELY(tern_unheeded(lane))) /* cost: base status */
		tern_knock(t, lane);
	tern_look(t);
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
	tern_prefetch_write((char *)m + lane->ahead);
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
	/* ring.R1, acquire; released in tern_line_write(): the words follow the header. */
	return TERN_LIKELY(atomic_load_explicit(&m->head, memory_order_acquire) == head);
}

/* Goes on behind the `n` messages that were taken; their words stay until a poll. */
static inline void layer_pass(struct endpoint *e, struct tern_inlet *in, uint64_t n)
{
	in->cursor += n * TERN_LINE;
	poll_note(e, in, n); /* cost: statistics control */
}

/* Passes the end of a leaf, if that is there instead. */
static inline bool layer_turn(struct tern_inlet *in)
{
	uint64_t head = atomic_load_explicit(&inlet_at(in)->head, memory_order_relaxed);
	return inlet_control(in, head ^ in->expect);
}

/* tern_look(), for calls that end with it: true if this one looks, by tern_look_around(). */
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
	if (TERN_UNLIKELY(tern_unheeded(lane)))
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
	if (TERN_UNLIKELY(!tern_lane_write(lane, TERN_HANDLER_MAX + id, 2, w0, w1, 0, 0, 0, 0)))
		return ANSWER_RARE;
	t->current = tern_answered(t);
	return TERN_UNLIKELY(tern_unheeded(lane)) ? ANSWER_KNOCK : ANSWER_WRITTEN;
}

int layer_answer_rest(tern *t, enum layer_answered what, unsigned id, uint64_t w0, uint64_t w1);

static inline int layer_answer(tern *t, unsigned id, uint64_t w0, uint64_t w1)
{
	struct tern_lane *lane = t->answer;
	if (TERN_UNLIKELY(!tern_lane_write(lane, TERN_HANDLER_MAX + id, 2, w0, w1, 0, 0, 0, 0)))
		return layer_answer_rest(t, ANSWER_RARE, id, w0, w1);
	t->current = tern_answered(t);
	if (TERN_UNLIKELY(tern_unheeded(lane)))
		return layer_answer_rest(t, ANSWER_KNOCK, id, w0, w1);
	return 0;
}

#endif
