/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of streams that come. One that comes early waits in its place until it is the next;
 * stream.c sends them, and sends those again that are not acknowledged.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "sequence/stream.h"

/* What comes from a rank. */
struct stream_in {
	uint64_t expected; /* the key of the next one */
	uint64_t early;    /* packets behind that one that have come, a bit each */
	tern_stream_packet *fn;
	void *arg;
	struct piece *window; /* of those; NULL until one has come */
	uint64_t places;      /* in it, which are one fewer than a window has */
	uint32_t src;
	unsigned id;
	uint64_t unused_; /* so that a shift finds it */
};
_Static_assert(sizeof(struct stream_in) == 64 && WINDOW <= 64, "one bit for each of a window");

static inline int ack_reply(tern *t, const struct stream_in *in)
{
	return layer_answer(t, STREAM_ACK, in->expected, 0);
}

/* Passes a packet of `words` up. */
static inline void packet_pass(tern *t, const struct stream_in *in, uint64_t n,
			       const uint64_t *words)
{
	in->fn(t, in->src, in->id, (unsigned)n, words, in->arg);
}

/* The stream that a packet is of, if somebody has registered for it. */
static inline struct stream_in *packet_stream(tern *t, const tern_msg *m)
{
	struct stream_in *in = sequence_of(t)->stream_in[key_id(tern_msg_word(m, 0))];
	return TERN_LIKELY(in != NULL) ? in + tern_msg_src(m) : NULL;
}

/*
 * Keeps a packet that is the `place`-th behind the next one; false: there is no such place, or it
 * has come before.
 */
static inline bool early_keep(struct stream_in *in, uint64_t place, unsigned n, bool asks,
			      uint64_t key, const uint64_t *words)
{
	uint64_t early = in->early;
	if (TERN_UNLIKELY(place >= in->places || early >> place & 1))
		return false;
	struct piece *p = piece_at(in->window, key);
	in->early = early | UINT64_C(1) << place;
	p->n = (uint8_t)n;
	p->asks = asks;
	memcpy(p->word, words, n * sizeof *words);
	return true;
}

/*
 * Passes up the next packet, and the early ones behind it. They are acknowledged
 * together, if one of them asks.
 */
static inline __attribute__((always_inline)) void
packet_run(tern *t, struct stream_in *in, unsigned n, bool asks, const uint64_t *words)
{
	uint64_t early = in->early, key = in->expected;
	unsigned run = (unsigned)__builtin_ctzll(~early); /* 63 at most: none is as far behind */
	in->early = early >> run >> 1;
	in->expected = key + KEY_STEP + (uint64_t)run * KEY_STEP;
	packet_pass(t, in, n, words);
	while ((key += KEY_STEP) != in->expected) {
		const struct piece *p = piece_at(in->window, key);
		asks |= p->asks;
		packet_pass(t, in, p->n, p->word);
	}
	if (asks)
		ack_reply(t, in); /* cost: fault write */
}

static __attribute__((noinline)) void run_two(tern *t, const tern_msg *m, struct stream_in *in)
{
	packet_run(t, in, 2, false, m->word + 1);
}

static __attribute__((noinline)) void run_two_asks(tern *t, const tern_msg *m, struct stream_in *in)
{
	packet_run(t, in, 2, true, m->word + 1);
}

/* A packet of any kind. */
static __attribute__((noinline)) void packet_any(tern *t, const tern_msg *m, struct stream_in *in,
						 unsigned n, bool asks, const uint64_t *words)
{
	uint64_t key = tern_msg_word(m, 0), ahead = key - in->expected;
	if (!ahead) {
		packet_run(t, in, n, asks, words);
		return;
	}
	bool late = ahead > INT64_MAX; /* its acknowledgement was lost */
	if (!in->window)               /* without memory early packets are as good as lost */
		in->window = memory_new(WINDOW, sizeof *in->window);
	in->places = in->window ? WINDOW - 1 : 0;
	early_keep(in, ahead / KEY_STEP - 1, n, asks, key, words);
	if (asks || late)
		ack_reply(t, in);
}

/* A packet whose acknowledgement is not yet out, or not yet heeded. */
static __attribute__((noinline)) void packet_rest(tern *t, const tern_msg *m,
						  const struct stream_in *in,
						  enum layer_answered what, unsigned n)
{
	layer_answer_rest(t, what, STREAM_ACK, in->expected, 0);
	packet_pass(t, in, n, m->word + 1);
}

/*
 * A packet of `n` words, and whether it asks, both constants. The acknowledgement comes before its
 * function, which then nothing follows: it can neither send nor fail, and runs before anything else
 * that the sender sends later.
 */
static inline __attribute__((always_inline)) void
packet_take(tern *t, const tern_msg *m, unsigned n, bool asks,
	    void (*run)(tern *t, const tern_msg *m, struct stream_in *in))
{
	uint64_t key = tern_msg_word(m, 0); /* cost: order read */
	struct stream_in *in = packet_stream(t, m);
	if (TERN_UNLIKELY(!in))
		return;
	uint64_t ahead = key - in->expected; /* cost: order status */
	if (ahead) {                         /* cost: order status */
		if (TERN_UNLIKELY(!early_keep(in, ahead / KEY_STEP - 1, n, asks,
					      key, /* cost: order status */
					      m->word + 1))) {
			packet_any(t, m, in, n, asks, m->word + 1);
			return;
		}
		if (asks)
			ack_reply(t, in); /* cost: fault write */
		return;
	}
	if (in->early) {       /* cost: order status */
		run(t, m, in); /* cost: order control */
		return;
	}
	in->expected = key + KEY_STEP; /* cost: order write */
	if (asks) {
		enum layer_answered what = layer_answer_write(t, STREAM_ACK, key + KEY_STEP,
							      0); /* cost: fault write */
		if (TERN_UNLIKELY(what != ANSWER_WRITTEN)) {      /* cost: fault status */
			packet_rest(t, m, in, what, n);
			return;
		}
	}
	packet_pass(t, in, n, m->word + 1);
}

void on_stream_two(tern *t, const tern_msg *m)
{
	packet_take(t, m, 2, false, run_two);
}

void on_stream_two_asks(tern *t, const tern_msg *m)
{
	packet_take(t, m, 2, true, run_two_asks);
}

static __attribute__((noinline)) void run_four(tern *t, const tern_msg *m, struct stream_in *in)
{
	packet_run(t, in, 4, false, m->word + 1);
}

static __attribute__((noinline)) void run_four_asks(tern *t, const tern_msg *m,
						    struct stream_in *in)
{
	packet_run(t, in, 4, true, m->word + 1);
}

void on_stream_four(tern *t, const tern_msg *m)
{
	packet_take(t, m, 4, false, run_four);
}

void on_stream_four_asks(tern *t, const tern_msg *m)
{
	packet_take(t, m, 4, true, run_four_asks);
}

void on_stream_packet(tern *t, const tern_msg *m)
{
	struct stream_in *in = packet_stream(t, m);
	uint64_t shape = tern_msg_word(m, 1), n = shape & SHAPE_WORDS;
	if (in && tern_msg_count(m) == 2 + TERN_STREAM_WORDS && n <= TERN_STREAM_WORDS)
		packet_any(t, m, in, (unsigned)n, shape & SHAPE_ASKS, m->word + 2);
}

void on_stream_ask(tern *t, const tern_msg *m)
{
	const struct stream_in *in = packet_stream(t, m);
	if (in)
		ack_reply(t, in);
}

void on_stream_plain(tern *t, const tern_msg *m)
{
	const struct stream_in *in = packet_stream(t, m);
	uint64_t n = tern_msg_word(m, 1);
	if (in && tern_msg_count(m) == 2 + TERN_STREAM_WORDS && n <= TERN_STREAM_WORDS)
		packet_pass(t, in, n, m->word + 2);
}

int tern_stream_on(tern *t, unsigned id, tern_stream_packet *fn, void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_function(t->own, "tern_stream_on(): stream", id, TERN_SEQUENCES_MAX, fn);
	if (rc)
		return rc;
	struct sequence *q = sequence_of(t);
	if (q->stream_in[id])
		return error_set(-EEXIST, "stream %u has been registered already", id);
	struct stream_in *in = memory_new(t->size, sizeof *in);
	if (!in)
		return error_set(-ENOMEM, "registering stream %u: no memory", id);
	for (uint32_t r = 0; r < t->size; r++)
		in[r] = (struct stream_in){
			.expected = id, .fn = fn, .arg = arg, .src = r, .id = id
		};
	q->stream_in[id] = in;
	return 0;
}

void stream_in_close(struct sequence *q)
{
	for (unsigned id = 0; id < TERN_SEQUENCES_MAX; id++) {
		for (uint32_t r = 0; q->stream_in[id] && r < q->e->t->size; r++)
			memory_free(q->stream_in[id][r].window);
		memory_free(q->stream_in[id]);
	}
}
