/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of packets. In full each has a number; it is kept until it is acknowledged, each by
 * itself or a group at once, and sent again when that takes too long, by any poll of the sender's
 * endpoint. One that comes early waits in its place until its turn comes. Plain, a packet is a
 * message.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "protocols/sequence/sequence.h"

enum { WINDOW = TERN_STREAM_WINDOW };

struct piece {
	uint64_t word[TERN_STREAM_WORDS];
	uint8_t n;
	bool there;
};

/* What comes from a rank. */
struct stream_in {
	uint64_t expected; /* number */
	struct piece early[WINDOW];
};

struct tern_stream {
	struct tern_stream *next_stream;
	struct sequence *q;
	uint32_t dst;
	unsigned id, group;
	bool open; /* else it is here for its numbers, from which the next one goes on */
	bool plain;
	uint64_t next, acked;     /* numbers under way: [acked, next) */
	struct patience patience; /* of the first */
	struct piece kept[WINDOW];
};

/*
 * How a packet is described in a word: the stream, how many words there are, whether an answer is
 * wanted.
 */
enum { SHAPE_COUNT_SHIFT = 8, SHAPE_ASKS = 1 << 16 };

static uint64_t shape_of(const struct tern_stream *s, unsigned n, bool asks)
{
	return s->id | (uint64_t)n << SHAPE_COUNT_SHIFT | (asks ? SHAPE_ASKS : 0);
}

/*
 * The stream that a shape names, if somebody has registered for it; *n: its words, at most `most`.
 */
static struct stream_kind *shape_read(struct sequence *q, uint64_t shape, unsigned *id, unsigned *n)
{
	*id = shape & 0xff;
	*n = shape >> SHAPE_COUNT_SHIFT & 0xff;
	if (*id >= TERN_SEQUENCES_MAX || *n > TERN_STREAM_WORDS || !q->stream[*id].fn)
		return NULL;
	return &q->stream[*id];
}

/* -- The receiver ------------------------------------------------------------------------------ */

/* cost: fault write */
static void ack_reply(struct sequence *q, unsigned id, const struct stream_in *in)
{
	const uint64_t words[] = { id, in->expected };
	layer_reply(q->e, STREAM_ACK, NULL, 0, 2, words);
}

/* Those whose turn has come. */
/* cost: order control */
static void early_pass(struct sequence *q, struct stream_kind *k, unsigned id, uint32_t from)
{
	struct stream_in *in = &k->in[from];
	struct piece *p;
	while ((p = &in->early[in->expected % WINDOW])->there) {
		p->there = false;
		in->expected++;
		k->fn(q->e->t, from, id, p->n, p->word, k->arg);
	}
}

/* cost: order control */
static void early_keep(struct stream_in *in, uint64_t number, const uint64_t *words, unsigned n)
{
	struct piece *p = &in->early[number % WINDOW];
	memcpy(p->word, words, n * sizeof *words);
	p->n = (uint8_t)n;
	p->there = true;
}

/* cost: order status */
static void on_stream_packet(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	uint64_t number = tern_msg_arg(m, 0), shape = tern_msg_arg(m, 1);
	uint32_t from = tern_msg_src(m);
	unsigned id, n;
	struct stream_kind *k = shape_read(q, shape, &id, &n);
	if (!k || tern_msg_words(m) != TERN_LINE_WORDS)
		return;
	struct stream_in *in = &k->in[from];
	bool late = number < in->expected;
	if (number == in->expected) {
		in->expected++;
		k->fn(t, from, id, n, m->word + 2, k->arg); /* cost: base call */
		early_pass(q, k, id, from);
	} else if (!late && number - in->expected < WINDOW) {
		early_keep(in, number, m->word + 2, n);
	}
	if (late || shape & SHAPE_ASKS) /* cost: fault status */
		ack_reply(q, id, in);
}

/* cost: fault control */
static void on_stream_ask(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	unsigned id, n;
	struct stream_kind *k = shape_read(q, tern_msg_arg(m, 0), &id, &n);
	if (k)
		ack_reply(q, id, &k->in[tern_msg_src(m)]);
}

/* cost: base read */
static void on_stream_plain(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	unsigned id, n;
	struct stream_kind *k = shape_read(q, tern_msg_arg(m, 1), &id, &n);
	if (k && tern_msg_words(m) == TERN_LINE_WORDS)
		k->fn(t, tern_msg_src(m), id, n, m->word + 2, k->arg);
}

/* -- The sender -------------------------------------------------------------------------------- */

static struct tern_stream *stream_to(const struct sequence *q, uint32_t dst, unsigned id)
{
	struct tern_stream *s = q->streams;
	while (s && (s->dst != dst || s->id != id))
		s = s->next_stream;
	return s;
}

/* cost: fault control */
static void on_stream_ack(tern *t, const tern_msg *m)
{
	struct tern_stream *s =
		stream_to(sequence_of(t), tern_msg_src(m), (unsigned)tern_msg_arg(m, 0));
	uint64_t expected = tern_msg_arg(m, 1);
	if (!s || expected - s->acked > s->next - s->acked)
		return; /* an old one */
	if (expected != s->acked)
		s->patience = (struct patience){ 0 };
	s->acked = expected;
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

/* A send of a turn polls, too, and that poll must not begin another turn. */
/* cost: fault control */
unsigned stream_progress(struct sequence *q)
{
	unsigned sent = 0;
	bool waits = false;
	if (q->resending)
		return 0;
	q->resending = true;
	for (struct tern_stream *s = q->streams; s; s = s->next_stream) {
		bool begun = s->patience.due;
		if (stream_waits(s) && patience_over(q->e, &s->patience) && begun)
			sent += stream_again(s);
		waits |= stream_waits(s);
	}
	q->resending = false;
	layer_work(q->e, LAYER_SEQUENCE, waits);
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
	memcpy(w, words, n * sizeof *words);
	return layer_words(s->q->e, s->dst, STREAM_PLAIN, 0, shape_of(s, n, false), w[0], w[1],
			   w[2], w[3]);
}

int tern_stream_put(tern_stream *s, unsigned n, const uint64_t *words)
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
	struct piece *p = &s->kept[s->next % WINDOW]; /* cost: fault write */
	memcpy(p->word, words, n * sizeof *words);    /* cost: fault write */
	p->n = (uint8_t)n;
	rc = piece_send(s, s->next, (s->next + 1) % s->group == 0);
	s->next += rc == 0;
	layer_work(e, LAYER_SEQUENCE, true); /* cost: fault control */
	return rc;
}

static int stream_flush(struct tern_stream *s)
{
	if (s->plain || s->next == s->acked)
		return 0;
	const uint64_t words[] = { shape_of(s, 0, true) };
	int rc = s->next % s->group ? layer_request(s->q->e, s->dst, STREAM_ASK, NULL, 0, 1, words)
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
	s->plain = tern_way_get(t, dst, way) == TERN_WAY_PLAIN;
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
	if (k->fn)
		return error_set(-EEXIST, "stream %u has been registered already", id);
	k->in = memory_new(t->size, sizeof *k->in);
	if (!k->in)
		return error_set(-ENOMEM, "registering stream %u: no memory", id);
	k->fn = fn;
	k->arg = arg;
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
