/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of packets. In full each has a number; it is kept until it is acknowledged, each by
 * itself or a group at once, and sent again when that takes too long, by any poll of the sender's
 * endpoint. One that comes early waits in its place until it is the next. Plain, a packet is a
 * message.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "sequence/stream.h"

static inline struct tern_stream *stream_to(const struct sequence *q, uint32_t dst, unsigned id)
{
	return q->stream_out[id] ? q->stream_out[id][dst] : NULL;
}

/* A stream has its first packet under way: polls see to it, and find out when it has none. */
static void stream_begins(struct sequence *q)
{
	layer_work(q->e, LAYER_SEQUENCE, true);
}

void on_stream_ack(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	uint64_t key = tern_msg_word(m, 0);
	struct tern_stream *s = stream_to(q, tern_msg_src(m), key_id(key));
	uint64_t more = s ? key - s->acked : 0;
	if (!s || more % KEY_STEP || more - 1 >= s->next - s->acked)
		return; /* not of this stream, or nothing new */
	s->acked = key;
	s->end = key + KEY_WINDOW;
}

static __attribute__((noinline)) bool settle_more(struct tern_stream *s);

/*
 * Takes the acknowledgements that lie first among the replies, as answer_take() in finite.c does;
 * whether nothing is under way any more.
 */
static inline __attribute__((always_inline)) bool stream_settle(struct tern_stream *s)
{
	tern *t = s->t;
	struct tern_inlet *in = s->replies;
	uint64_t acked = s->acked, most = s->next - acked, got = 0;
	if (TERN_UNLIKELY(!most)) /* and perhaps nothing ever was: no ring is there yet */
		return true;
	if (TERN_UNLIKELY(!layer_may_take(t)))
		return false;
	const tern_msg *first = inlet_at(in), *m = first;
	for (uint64_t head = in->expect ^ layer_bits(STREAM_ACK, 2); layer_is(m, head); m++) {
		uint64_t more = m->word[0] - acked;
		if (TERN_UNLIKELY(more % KEY_STEP)) /* of another stream: a poll finds out */
			break;
		if (more <= most) /* else it is an old one */
			got = more > got ? more : got;
	}
	layer_pass(t->own, in, (uint64_t)(m - first));
	s->acked = acked + got;
	s->end = acked + got + KEY_WINDOW;
	return TERN_LIKELY(got == most) || settle_more(s);
}

/* Where a leaf of the ring ends, they go on behind it. */
static bool settle_more(struct tern_stream *s)
{
	while (layer_advance(s->replies))
		if (stream_settle(s))
			return true;
	return false;
}

static int piece_send(struct tern_stream *s, uint64_t key, bool asks)
{
	const struct piece *p = piece_at(s->kept, key);
	const uint64_t *w = p->word;
	uint64_t shape = p->n | (asks ? SHAPE_ASKS : 0); /* cost: order write */
	return layer_words(s->q->e, s->dst, STREAM_PACKET, key, shape, w[0], w[1], w[2], w[3]);
}

/*
 * Sends again what is not acknowledged, as far as the ring has room: a layer's turn must not wait.
 * The last packet asks for an acknowledgement.
 */
static unsigned stream_again(struct tern_stream *s)
{
	unsigned sent = 0;
	for (uint64_t key = s->acked; key < s->next && lane_ready(s->lane); key += KEY_STEP)
		sent += piece_send(s, key, key + KEY_STEP == s->next) == 0;
	return sent;
}

static bool stream_waits(const struct tern_stream *s)
{
	return s->next != s->acked && !s->q->e->site.peer[s->dst].lost;
}

/* Whether it is time to send again. */
static bool stream_late(struct tern_stream *s)
{
	if (s->tried != s->acked) {
		s->tried = s->acked;
		s->patience = (struct patience){ 0 };
	}
	bool begun = s->patience.due;
	return patience_over(s->q->e, &s->patience) && begun;
}

/* A send of a turn polls, too, and that poll must not begin another turn. */
unsigned stream_progress(void *state)
{
	struct sequence *q = state;
	unsigned sent = 0;
	if (q->resending)
		return 0;
	q->resending = true;
	for (struct tern_stream *s = q->streams; s; s = s->next_stream)
		if (stream_waits(s) && stream_late(s))
			sent += stream_again(s);
	bool waits = false;
	for (const struct tern_stream *s = q->streams; s && !waits; s = s->next_stream)
		waits = stream_waits(s);
	q->resending = false;
	layer_work(q->e, LAYER_SEQUENCE, waits);
	return sent;
}

struct stream_room {
	struct tern_stream *s;
	uint64_t most;
};

static bool stream_has_room(struct endpoint *e, void *arg)
{
	const struct stream_room *r = arg;
	(void)e;
	return stream_settle(r->s) || r->s->next - r->s->acked <= r->most * KEY_STEP;
}

/* Until at most `most` are under way. */
static int stream_wait(struct tern_stream *s, uint64_t most)
{
	struct stream_room room = { s, most };
	struct wait w = { .bounded = true,
			  .call = "tern_stream_put",
			  .way = "to",
			  .whom = s->dst + 1,
			  .lack = "no acknowledgement",
			  .rule = "a stream that has to wait",
			  .takes = s->replies,
			  .stop = wait_unreachable };
	return wait_until(s->q->e, stream_has_room, &room, &w);
}

static int plain_put(struct tern_stream *s, unsigned n, const uint64_t *words)
{
	uint64_t w[TERN_STREAM_WORDS] = { 0 };
	if (n)
		memcpy(w, words, n * sizeof *words);
	return layer_words(s->q->e, s->dst, STREAM_PLAIN, s->id, n, w[0], w[1], w[2], w[3]);
}

static int stream_check(const struct tern_stream *s, const char *call)
{
	int rc = rules_program(s->q->e, call);
	return rc || s->open ? rc
			     : error_set(-EINVAL, "%s was given a stream that is closed", call);
}

/* What is not the common case: the stream is full or plain, or this is not a program that polls. */
static __attribute__((noinline)) int put_rare(struct tern_stream *s, unsigned n,
					      const uint64_t *words)
{
	INSIDE struct scope scope = scope_open(s->q->e->t);
	int rc = stream_check(s, "tern_stream_put()");
	if (rc)
		return rc;
	if (n > TERN_STREAM_WORDS)
		return error_set(
			-EMSGSIZE,
			"tern_stream_put() was given %u words; a packet of a stream has %d", n,
			TERN_STREAM_WORDS);
	if (s->plain)
		return plain_put(s, n, words);
	rc = stream_wait(s, WINDOW - 1);
	if (rc)
		return rc;
	struct piece *p = piece_at(s->kept, s->next);
	if (n)
		memcpy(p->word, words, n * sizeof *words);
	p->n = (uint8_t)n;
	bool last = s->left == 1;
	bool first = s->acked == s->next;
	s->next += KEY_STEP; /* before the send, which may serve its acknowledgement */
	if (first)
		stream_begins(s->q);
	rc = piece_send(s, s->next - KEY_STEP, last || s->group == 1);
	if (rc)
		s->next -= KEY_STEP;
	else
		s->left = last ? s->period : s->left - 1;
	return rc;
}

/*
 * The common case, where a program that polls puts `n` words, a constant, into a stream with room,
 * and the ring has room. The copy is what is sent again if need be.
 */
static inline __attribute__((always_inline)) int put_quick(tern_stream *s, unsigned n,
							   const uint64_t *words)
{
	struct tern_lane *lane = s->lane;
	uint64_t key = s->next; /* cost: order write */
	tern *t = s->t;
	tern_msg *m;
	if (TERN_UNLIKELY(!t->reach || key >= s->end || /* cost: base status */
			  !layer_line(lane, &m)))       /* cost: base status */
		return put_rare(s, n, words);
	uint64_t bits = s->bits + (n == 2 ? 0 : BITS_FOUR - BITS_TWO);
	if (TERN_UNLIKELY(--s->left == 0)) {          /* cost: fault status */
		bits += s->group > 1 ? BITS_ASKS : 0; /* else all of them ask */
		s->left = s->period;
	}
	struct words w;
	memcpy(&w, words, n * sizeof *words);
	struct piece *p = &s->kept[key / KEY_STEP % WINDOW]; /* cost: fault write */
	memcpy(p->word, &w, n * sizeof *words);              /* cost: fault write */
	p->n = (uint8_t)n;                                   /* cost: fault write */
	m->word[0] = key;                                    /* cost: order write */
	memcpy(m->word + 1, &w, n * sizeof *words);
	layer_line_send(lane, m, bits);
	s->next = key + KEY_STEP;           /* cost: order write */
	if (TERN_UNLIKELY(key == s->acked)) /* cost: fault status */
		stream_begins(s->q);        /* cost: fault status */
	return layer_sent(t, lane);
}

static __attribute__((noinline)) int put_more(tern_stream *s, unsigned n, const uint64_t *words)
{
	return n == 4 ? put_quick(s, 4, words) : put_rare(s, n, words);
}

int tern_stream_put(tern_stream *s, unsigned n, const uint64_t *words)
{
	return TERN_LIKELY(n == 2) ? put_quick(s, 2, words) : put_more(s, n, words);
}

static int stream_flush(struct tern_stream *s)
{
	if (s->plain || s->next == s->acked)
		return 0;
	int rc = s->group > 1 && s->left != s->group
			 ? layer_write(s->q->e, s->dst, STREAM_ASK, 2, s->id, 0, 0, 0, 0, 0)
			 : 0;
	return rc ? rc : stream_wait(s, 0);
}

static __attribute__((noinline)) int flush_rare(struct tern_stream *s)
{
	INSIDE struct scope scope = scope_open(s->q->e->t);
	int rc = stream_check(s, "tern_stream_flush()");
	return rc ? rc : stream_flush(s);
}

int tern_stream_flush(tern_stream *s)
{
	const tern *t = s->t;
	return TERN_LIKELY(t->reach && !t->own->owner.scoped && stream_settle(s)) ? 0
										  : flush_rare(s);
}

int tern_stream_close(tern_stream *s)
{
	if (!s)
		return error_set(-EINVAL, "tern_stream_close() was given a stream that is NULL");
	INSIDE struct scope scope = scope_open(s->q->e->t);
	int rc = stream_check(s, "tern_stream_close()");
	if (rc)
		return rc;
	rc = stream_flush(s);
	s->open = false;
	s->t = misuse_endpoint.t; /* puts shall come to the library */
	return rc;
}

static int open_check(tern *t, uint32_t dst, unsigned id, unsigned group)
{
	int rc = rules_program(t->own, "tern_stream_open()");
	if (!rc)
		rc = rules_destination(t->own, dst);
	if (!rc)
		rc = rules_number("tern_stream_open(): stream", id, TERN_SEQUENCES_MAX);
	if (!rc && group > WINDOW / 2)
		rc = error_set(
			-EINVAL,
			"tern_stream_open() was given groups of %u; at most %d packets are one",
			group, WINDOW / 2);
	const struct tern_stream *s = rc ? NULL : stream_to(sequence_of(t), dst, id);
	if (s && s->open)
		rc = error_set(-EEXIST, "stream %u to rank %u is open already", id, dst);
	return rc;
}

static struct tern_stream *stream_new(struct sequence *q, uint32_t dst, unsigned id)
{
	struct tern_stream **all = q->stream_out[id];
	struct endpoint *e = q->e;
	if (!all)
		all = q->stream_out[id] = memory_new(e->t->size, sizeof(struct tern_stream *));
	struct tern_stream *s = all ? memory_new(1, sizeof *s) : NULL;
	if (!s)
		return NULL;
	s->lane = &e->t->lane[dst];
	s->replies = &e->site.peer[dst].replies;
	s->q = q;
	s->dst = dst;
	s->id = id;
	s->next = s->acked = id;
	s->next_stream = q->streams;
	return all[dst] = q->streams = s;
}

int tern_stream_open(tern *t, uint32_t dst, unsigned id, enum tern_way way, unsigned group,
		     tern_stream **out)
{
	INSIDE struct scope scope = scope_given(t);
	struct sequence *q = sequence_of(t);
	int rc = rules_rank(t->own, "tern_stream_open()");
	if (!rc)
		rc = open_check(t, dst, id, group);
	if (!rc && way > TERN_WAY_PLAIN)
		rc = way_refuse(way, "tern_stream_open()");
	if (rc)
		return rc;
	struct tern_stream *s = stream_to(q, dst, id);
	if (!s)
		s = stream_new(q, dst, id);
	if (!s)
		return error_set(-ENOMEM, "opening stream %u to rank %u: no memory", id, dst);
	s->open = true;
	s->t = t;
	s->group = group ? group : 1;
	s->left = s->period = s->group > 1 ? s->group : UINT_MAX;
	s->bits = s->group > 1 ? BITS_TWO : BITS_TWO + BITS_ASKS;
	s->plain = sequence_way(t, dst, way) == TERN_WAY_PLAIN;
	s->end = s->plain ? 0 : s->acked + KEY_WINDOW;
	*out = s;
	return 0;
}

void stream_close_all(struct sequence *q)
{
	for (struct tern_stream *s = q->streams, *next; s; s = next) {
		next = s->next_stream;
		*s = (struct tern_stream){ .t = misuse_endpoint.t,
					   .q = (struct sequence *)&misuse_state };
		memory_bury(s, true);
	}
	for (unsigned id = 0; id < TERN_SEQUENCES_MAX; id++)
		memory_free(q->stream_out[id]);
}
