/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of packets. In full each has a number; it is kept until it is acknowledged, each by
 * itself or a group at once, and sent again when that takes too long, by any poll of the sender's
 * endpoint. One that comes early waits in its place until its turn comes. Plain, a packet is a
 * message.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "protocols/sequence/sequence.h"

enum { WINDOW = TERN_STREAM_WINDOW };

struct piece {
	uint64_t word[TERN_STREAM_WORDS];
	uint8_t n;
	bool there, asks;
};

/* What comes from a rank. */
struct stream_in {
	uint64_t expected; /* number */
	uint64_t kept;     /* packets in `early` */
	tern_stream_packet *fn;
	void *arg;
	uint32_t src;
	unsigned id;
	struct piece early[WINDOW];
};

struct tern_stream {
	tern *t;
	struct tern_lane *lane;
	uint64_t shape;       /* of a packet without words that asks, if each of them does */
	uint64_t next, acked; /* numbers under way: [acked, next) */
	uint64_t end;         /* numbers below it may be put; 0 if the common case is not to be */
	unsigned left;        /* packets until one asks for an acknowledgement, */
	unsigned period;      /* then so many again: the group, or no end where each of them asks */
	unsigned group;
	struct tern_stream *next_stream;
	struct sequence *q;
	uint32_t dst;
	unsigned id;
	bool open; /* else it is here for its numbers, from which the next one goes on */
	bool plain;
	uint64_t tried;           /* what `acked` was at the last look: patience begins anew */
	struct patience patience; /* of the first */
	struct piece kept[WINDOW];
};

/*
 * How a packet is described in a word: the stream, how many words there are, whether an answer is
 * wanted.
 */
enum { SHAPE_ASKS = 1 << 8, SHAPE_COUNT_SHIFT = 16 };
_Static_assert((TERN_SEQUENCES_MAX & (TERN_SEQUENCES_MAX - 1)) == 0, "a mask reads a number");

static uint64_t shape_of(const struct tern_stream *s, unsigned n, bool asks)
{
	return s->id | (uint64_t)n << SHAPE_COUNT_SHIFT | (asks ? SHAPE_ASKS : 0);
}

static inline unsigned shape_id(uint64_t shape)
{
	return shape % TERN_SEQUENCES_MAX;
}

/* More than TERN_STREAM_WORDS if it is none. */
static inline uint64_t shape_words(uint64_t shape)
{
	return shape >> SHAPE_COUNT_SHIFT;
}

/* -- The receiver ------------------------------------------------------------------------------ */

/* cost: fault write */
static inline int ack_reply(tern *t, const tern_msg *m, const struct stream_in *in)
{
	return layer_answer(t, m, STREAM_ACK, tern_msg_arg(m, 1), in->expected);
}

/* cost: fault write */
static inline enum layer_answered ack_write(tern *t, const tern_msg *m, uint64_t shape,
					    uint64_t expected)
{
	return layer_answer_write(t, m, STREAM_ACK, shape, expected);
}

/* Passes a packet of `words` up. */
/* cost: base call */
static inline void packet_pass(tern *t, const struct stream_in *in, uint64_t n,
			       const uint64_t *words)
{
	in->fn(t, in->src, in->id, (unsigned)n, words, in->arg);
}

/* Those whose turn has come; whether one of them asks for an acknowledgement. */
/* cost: order control */
static inline bool early_pass(tern *t, struct stream_in *in)
{
	struct piece *p;
	bool asks = false;
	while (in->kept && (p = &in->early[in->expected % WINDOW])->there) {
		p->there = false;
		in->kept--;
		in->expected++;
		asks |= p->asks;
		packet_pass(t, in, p->n, p->word);
	}
	return asks;
}

/* Keeps a packet that is early; true: it is late, and its acknowledgement was lost. */
/* cost: order control */
static inline bool early_keep(struct stream_in *in, const tern_msg *m)
{
	uint64_t number = tern_msg_arg(m, 0);
	struct piece *p = &in->early[number % WINDOW];
	if (number < in->expected)
		return true;
	if (number - in->expected >= WINDOW || p->there)
		return false;
	memcpy(p->word, m->word + 2, sizeof p->word);
	p->n = (uint8_t)shape_words(tern_msg_arg(m, 1));
	p->there = true;
	p->asks = tern_msg_arg(m, 1) & SHAPE_ASKS;
	in->kept++;
	return false;
}

/* A packet that is early or late, or for which early ones wait. */
/* cost: order control */
static __attribute__((noinline)) void packet_order(tern *t, const tern_msg *m, struct stream_in *in)
{
	uint64_t shape = tern_msg_arg(m, 1);
	bool wanted;
	if (tern_msg_arg(m, 0) == in->expected) {
		in->expected++;
		packet_pass(t, in, shape_words(shape), m->word + 2);
		wanted = early_pass(t, in);
	} else {
		wanted = early_keep(in, m);
	}
	if (tern_msg_arg(m, 1) & SHAPE_ASKS || wanted) /* cost: fault status */
		ack_reply(t, m, in);
}

/* A packet whose acknowledgement is not yet out, or not yet heeded. */
static __attribute__((noinline)) void
packet_rest(tern *t, const tern_msg *m, const struct stream_in *in, enum layer_answered what)
{
	layer_answer_rest(t, what, STREAM_ACK, tern_msg_arg(m, 1), in->expected);
	packet_pass(t, in, shape_words(tern_msg_arg(m, 1)), m->word + 2);
}

/* The stream that a packet is of, if somebody has registered for it, and it is one. */
/* cost: base read */
static inline struct stream_in *packet_stream(tern *t, const tern_msg *m, uint64_t shape)
{
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	struct stream_in *in = sequence_of(t)->stream[shape_id(shape)].in;
	/* It has four words or six. */
	if (TERN_UNLIKELY(!in || !(head & 4) || shape_words(shape) > TERN_STREAM_WORDS))
		return NULL;
	return &in[head >> TERN_SRC_SHIFT & 0xffff];
}

/*
 * The acknowledgement of a packet comes before its function, which then nothing follows: it can
 * neither send nor fail, and runs before anything else that the sender sends later.
 */
/* cost: base read */
static void on_stream_packet(tern *t, const tern_msg *m)
{
	uint64_t number = tern_msg_arg(m, 0); /* cost: order read */
	uint64_t shape = tern_msg_arg(m, 1);
	struct stream_in *in = packet_stream(t, m, shape);
	if (TERN_UNLIKELY(!in))
		return;
	if (TERN_UNLIKELY(number != in->expected || in->kept)) { /* cost: order status */
		packet_order(t, m, in);                          /* cost: order status */
		return;                                          /* cost: order status */
	}
	in->expected = number + 1; /* cost: order write */
	if (shape & SHAPE_ASKS) {  /* cost: fault status */
		enum layer_answered what = ack_write(t, m, shape, number + 1);
		if (TERN_UNLIKELY(what != ANSWER_WRITTEN)) {
			packet_rest(t, m, in, what);
			return;
		}
	}
	packet_pass(t, in, shape_words(shape), m->word + 2);
}

/* cost: fault control */
static void on_stream_ask(tern *t, const tern_msg *m)
{
	const struct stream_kind *k = &sequence_of(t)->stream[shape_id(tern_msg_arg(m, 1))];
	if (k->in)
		ack_reply(t, m, &k->in[tern_msg_src(m)]);
}

/* cost: base read */
static void on_stream_plain(tern *t, const tern_msg *m)
{
	uint64_t shape = tern_msg_arg(m, 1);
	const struct stream_in *in = packet_stream(t, m, shape);
	if (in)
		packet_pass(t, in, shape_words(shape), m->word + 2);
}

/* -- The sender -------------------------------------------------------------------------------- */

static inline struct tern_stream *stream_to(const struct sequence *q, uint32_t dst, unsigned id)
{
	struct tern_stream *s = q->streams;
	while (s && (s->dst != dst || s->id != id))
		s = s->next_stream;
	return s;
}

/* Nothing of a stream is under way any more: polls have nothing to do for it. */
/* cost: fault control */
static void stream_rests(struct sequence *q)
{
	if (q->waiting && --q->waiting == 0)
		layer_work(q->e, LAYER_SEQUENCE, false);
}

/* A stream has its first packet under way: polls see to it. */
/* cost: fault control */
static void stream_begins(struct sequence *q)
{
	q->waiting++;
	layer_work(q->e, LAYER_SEQUENCE, true);
}

/* cost: fault control */
static void on_stream_ack(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	struct tern_stream *s = stream_to(q, tern_msg_src(m), shape_id(tern_msg_arg(m, 0)));
	uint64_t expected = tern_msg_arg(m, 1);
	if (!s || expected - s->acked - 1 >= s->next - s->acked)
		return; /* an old one */
	s->acked = expected;
	s->end = expected + WINDOW;
	if (expected == s->next)
		stream_rests(q);
}

/* cost: base write */
static int piece_send(struct tern_stream *s, uint64_t number, bool asks)
{
	const struct piece *p = &s->kept[number % WINDOW];
	const uint64_t *w = p->word;
	uint64_t shape = shape_of(s, p->n, asks); /* cost: order write */
	return layer_words(s->q->e, s->dst, STREAM_PACKET, number, shape, w[0], w[1], w[2], w[3]);
}

/*
 * Sends again what is not acknowledged, as far as the ring has room: a layer's turn must not wait.
 * The last packet asks for an acknowledgement.
 */
/* cost: fault control */
static unsigned stream_again(struct tern_stream *s)
{
	unsigned sent = 0;
	for (uint64_t i = s->acked; i < s->next && lane_ready(&s->q->e->t->lane[s->dst]); i++)
		sent += piece_send(s, i, i + 1 == s->next) == 0;
	return sent;
}

/* cost: fault status */
static bool stream_waits(const struct tern_stream *s)
{
	return s->next != s->acked && !s->q->e->site.peer[s->dst].lost;
}

/* Whether it is time to send again. */
/* cost: fault status */
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
/* cost: fault control */
unsigned stream_progress(struct sequence *q)
{
	unsigned sent = 0;
	if (q->resending)
		return 0;
	q->resending = true;
	for (struct tern_stream *s = q->streams; s; s = s->next_stream)
		if (stream_waits(s) && stream_late(s))
			sent += stream_again(s);
	q->waiting = 0;
	for (struct tern_stream *s = q->streams; s; s = s->next_stream)
		q->waiting += stream_waits(s);
	q->resending = false;
	layer_work(q->e, LAYER_SEQUENCE, q->waiting);
	return sent;
}

struct stream_room {
	const struct tern_stream *s;
	uint64_t most;
};

static bool stream_has_room(struct endpoint *e, void *arg)
{
	const struct stream_room *r = arg;
	(void)e;
	return r->s->next - r->s->acked <= r->most;
}

/* Until at most `most` are under way. */
/* cost: fault status */
static int stream_wait(struct tern_stream *s, uint64_t most)
{
	struct stream_room room = { s, most };
	struct wait w = { .bounded = true,
			  .call = "tern_stream_put",
			  .way = "to",
			  .whom = s->dst + 1,
			  .lack = "no acknowledgement",
			  .rule = "a stream that has to wait",
			  .stop = wait_unreachable };
	return wait_until(s->q->e, stream_has_room, &room, &w);
}

static int plain_put(struct tern_stream *s, unsigned n, const uint64_t *words)
{
	uint64_t w[TERN_STREAM_WORDS] = { 0 };
	if (n)
		memcpy(w, words, n * sizeof *words);
	return layer_words(s->q->e, s->dst, STREAM_PLAIN, 0, shape_of(s, n, false), w[0], w[1],
			   w[2], w[3]);
}

/* What is not the common case: the stream is full or plain, or this is not a program that polls. */
static __attribute__((noinline)) int put_rare(struct tern_stream *s, unsigned n,
					      const uint64_t *words)
{
	struct endpoint *e = s->q->e;
	INSIDE struct scope scope = scope_open(e->t);
	int rc = rules_program(e, "tern_stream_put()");
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
	struct piece *p = &s->kept[s->next % WINDOW];
	if (n)
		memcpy(p->word, words, n * sizeof *words);
	p->n = (uint8_t)n;
	bool last = s->left == 1;
	if (s->acked == s->next++) /* before the send, which may serve its acknowledgement */
		stream_begins(s->q);
	rc = piece_send(s, s->next - 1, last || s->group == 1);
	if (rc && --s->next == s->acked)
		stream_rests(s->q);
	if (!rc)
		s->left = last ? s->period : s->left - 1;
	return rc;
}

static __attribute__((noinline)) int put_knock(tern *t, struct tern_lane *lane)
{
	tern_knock(t, lane);
	tern_look(t);
	return 0;
}

static __attribute__((noinline)) int put_look(tern *t)
{
	tern_look_around(t);
	return 0;
}

/* cost: fault write */
static inline void piece_fill(struct piece *p, unsigned n, uint64_t w0, uint64_t w1, uint64_t w2,
			      uint64_t w3)
{
	p->word[0] = w0;
	p->word[1] = w1;
	if (n > 2) {
		p->word[2] = w2;
		p->word[3] = w3;
	}
	p->n = (uint8_t)n;
}

/*
 * The common case, where a program that polls puts `n` words, a constant, into a stream with room,
 * and the ring has room. The copy is what is sent again if need be.
 */
/* cost: base write */
static inline __attribute__((always_inline)) int put_quick(tern_stream *s, unsigned n,
							   const uint64_t *words)
{
	tern *t = s->t;
	struct tern_lane *lane = s->lane;
	uint64_t number = s->next;                        /* cost: order write */
	if (TERN_UNLIKELY(!t->reach || number >= s->end)) /* cost: base status */
		return put_rare(s, n, words);
	uint64_t shape = s->shape | n << SHAPE_COUNT_SHIFT;
	if (TERN_UNLIKELY(--s->left == 0)) { /* cost: fault status */
		shape |= SHAPE_ASKS;
		s->left = s->period;
	}
	uint64_t w0 = words[0], w1 = words[1], w2 = n > 2 ? words[2] : 0, w3 = n > 2 ? words[3] : 0;
	piece_fill(&s->kept[number % WINDOW], n, w0, w1, w2, w3); /* cost: fault write */
	if (TERN_UNLIKELY(!tern_lane_write(lane, TERN_HANDLER_MAX + STREAM_PACKET, n + 2, number,
					   shape, w0, w1, w2, w3))) {
		s->left = s->left == s->period ? 1 : s->left + 1;
		return put_rare(s, n, words);
	}
	s->next = number + 1;                  /* cost: order write */
	if (TERN_UNLIKELY(number == s->acked)) /* cost: fault status */
		stream_begins(s->q);           /* cost: fault status */
	if (TERN_UNLIKELY(tern_unheeded(lane)))
		return put_knock(t, lane);
	return TERN_UNLIKELY(layer_looks(t)) ? put_look(t) : 0;
}

static __attribute__((noinline)) int put_more(tern_stream *s, unsigned n, const uint64_t *words)
{
	return n == 4 ? put_quick(s, 4, words) : put_rare(s, n, words);
}

/* cost: base control */
int tern_stream_put(tern_stream *s, unsigned n, const uint64_t *words)
{
	return TERN_LIKELY(n == 2) ? put_quick(s, 2, words) : put_more(s, n, words);
}

static int stream_flush(struct tern_stream *s)
{
	if (s->plain || s->next == s->acked)
		return 0;
	uint64_t shape = shape_of(s, 0, true);
	int rc = s->group > 1 && s->left != s->group
			 ? layer_words(s->q->e, s->dst, STREAM_ASK, 0, shape, 0, 0, 0, 0)
			 : 0;
	return rc ? rc : stream_wait(s, 0);
}

int tern_stream_flush(tern_stream *s)
{
	struct endpoint *e = s->q->e;
	INSIDE struct scope scope = scope_open(e->t);
	int rc = rules_program(e, "tern_stream_flush()");
	return rc ? rc : stream_flush(s);
}

int tern_stream_close(tern_stream *s)
{
	struct endpoint *e = s->q->e;
	INSIDE struct scope scope = scope_open(e->t);
	int rc = rules_program(e, "tern_stream_close()");
	if (rc)
		return rc;
	rc = stream_flush(s);
	s->open = false;
	return rc;
}

static int id_check(unsigned id, const char *call)
{
	if (id < TERN_SEQUENCES_MAX)
		return 0;
	return error_set(-ERANGE, "%s was given stream %u; there are %d", call, id,
			 TERN_SEQUENCES_MAX);
}

static int open_check(tern *t, uint32_t dst, unsigned id, unsigned group)
{
	int rc = rules_program(t->own, "tern_stream_open()");
	if (!rc)
		rc = rules_destination(t->own, dst);
	if (!rc)
		rc = id_check(id, "tern_stream_open()");
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
	struct tern_stream *s = memory_new(1, sizeof *s);
	if (!s)
		return NULL;
	s->t = q->e->t;
	s->lane = &q->e->t->lane[dst];
	s->q = q;
	s->dst = dst;
	s->id = id;
	s->next_stream = q->streams;
	return q->streams = s;
}

int tern_stream_open(tern *t, uint32_t dst, unsigned id, enum tern_way way, unsigned group,
		     tern_stream **out)
{
	INSIDE struct scope scope = scope_open(t);
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
	s->group = group ? group : 1;
	s->left = s->period = s->group > 1 ? s->group : UINT_MAX;
	s->shape = s->group > 1 ? id : id | SHAPE_ASKS;
	s->plain = tern_way_get(t, dst, way) == TERN_WAY_PLAIN;
	s->end = s->plain ? 0 : s->acked + WINDOW;
	*out = s;
	return 0;
}

int tern_stream_on(tern *t, unsigned id, tern_stream_packet *fn, void *arg)
{
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	int rc = id_check(id, "tern_stream_on()");
	if (rc)
		return rc;
	struct stream_kind *k = &sequence_of(t)->stream[id];
	if (!fn)
		return error_set(-EINVAL, "tern_stream_on() was given no function");
	if (k->in)
		return error_set(-EEXIST, "stream %u has been registered already", id);
	k->in = memory_new(t->size, sizeof *k->in);
	if (!k->in)
		return error_set(-ENOMEM, "registering stream %u: no memory", id);
	for (uint32_t r = 0; r < t->size; r++) {
		k->in[r].fn = fn;
		k->in[r].arg = arg;
		k->in[r].src = r;
		k->in[r].id = id;
	}
	return 0;
}

void stream_register(struct endpoint *e)
{
	layer_on(e, STREAM_PACKET, on_stream_packet);
	layer_on(e, STREAM_ASK, on_stream_ask);
	layer_on(e, STREAM_ACK, on_stream_ack);
	layer_on(e, STREAM_PLAIN, on_stream_plain);
}

void stream_close_all(struct sequence *q)
{
	for (struct tern_stream *s = q->streams, *next; s; s = next) {
		next = s->next_stream;
		memory_free(s);
	}
	for (unsigned id = 0; id < TERN_SEQUENCES_MAX; id++)
		memory_free(q->stream[id].in);
}

/* cost: base control */
