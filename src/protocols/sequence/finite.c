/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block of known size. In full: ask whether there is room, send packets with their places; the
 * one that completes the block is acknowledged. If that does not come, ask whether all have come,
 * and send those again that have not. A short block goes in lines, without payloads. Plain: a head,
 * which is accepted or refused while the data is already on its way, and the data, whose last
 * packet ends it.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "protocols/sequence/sequence.h"

enum {
	PACKET = TERN_PAYLOAD_MAX,
	LINES_MOST = 128, /* bytes: as lines they cost less than one payload */
	/* Packets sent at once where nobody counts them: fewer than a receiver has blocks. */
	BURST = 8,
};

/* -- The sender -------------------------------------------------------------------------------- */

/* The block that an answer is for, if it is still wanted. */
static struct outbound *outbound_of(struct sequence *q, const tern_msg *m)
{
	struct outbound *out = q->out ? &q->out[tern_msg_src(m)] : NULL;
	return out && out->busy && out->number == tern_msg_arg(m, 0) ? out : NULL;
}

/* cost: buffer control */
static void on_sequence_verdict(tern *t, const tern_msg *m)
{
	struct outbound *out = outbound_of(sequence_of(t), m);
	if (!out || out->question == SEQUENCE_END)
		return;
	out->answered = true;
	out->verdict = layer_error(tern_msg_arg(m, 1));
}

/* cost: fault control */
static void on_sequence_done(tern *t, const tern_msg *m)
{
	struct outbound *out = outbound_of(sequence_of(t), m);
	if (!out || out->question != SEQUENCE_END)
		return;
	out->verdict = 0;
	out->answered = true;
}

/* cost: fault control */
static void on_sequence_missing(tern *t, const tern_msg *m)
{
	struct outbound *out = outbound_of(sequence_of(t), m);
	if (!out || out->question != SEQUENCE_END)
		return;
	out->answered = true;
	out->verdict = layer_error(tern_msg_arg(m, 1));
	out->first = tern_msg_arg(m, 2);
	for (unsigned i = 0; i < MISSING_WORDS; i++)
		out->missing[i] = tern_msg_arg(m, 3 + i);
}

/* Waits for as long as the receiver can still answer. */
static int shipment_wait(const struct shipment *s, bool (*over)(struct endpoint *e, void *arg),
			 void *arg, const char *lack)
{
	struct wait w = { .bounded = true,
			  .call = "tern_sequence_send",
			  .way = "to",
			  .whom = s->dst + 1,
			  .lack = lack,
			  .rule = "tern_sequence_send()",
			  .stop = wait_unreachable };
	return wait_until(s->q->e, over, arg, &w);
}

static bool shipment_answered(struct endpoint *e, void *out)
{
	(void)e;
	return ((struct outbound *)out)->answered;
}

/* cost: base control */
int shipment_ask(const struct shipment *s, unsigned handler)
{
	s->out->question = handler;
	s->out->answered = false;
	return layer_words(s->q->e, s->dst, handler, s->out->number, s->id, s->len, s->shift, 0, 0);
}

struct question {
	const struct shipment *s;
	unsigned handler;
	struct patience patience;
	int rc;
};

/* Asks again and again, and is over when there is an answer. */
static bool question_over(struct endpoint *e, void *arg)
{
	struct question *q = arg;
	if (!q->s->out->answered && patience_over(e, &q->patience))
		q->rc = shipment_ask(q->s, q->handler);
	return q->rc || q->s->out->answered;
}

/* `later`: the answer may come without the question. */
static int question(const struct shipment *s, unsigned handler, bool later)
{
	struct question q = { .s = s, .handler = handler };
	if (later)
		patience_over(s->q->e, &q.patience);
	else
		s->out->answered = false;
	int rc = shipment_wait(s, question_over, &q, "no answer");
	rc = rc ? rc : q.rc;
	return rc ? rc : s->out->verdict;
}

static bool pause_over(struct endpoint *e, void *until)
{
	return e->world->now() >= *(uint64_t *)until;
}

/* After a refusal. */
static int pause_for(const struct shipment *s, unsigned tries)
{
	uint64_t until = s->q->e->world->now() + (UINT64_C(20000) << (tries < 8 ? tries : 8));
	return shipment_wait(s, pause_over, &until, "the receiver accepts nothing");
}

static int nobody(const struct shipment *s)
{
	return error_set(
		-ENXIO,
		"a sequence of kind %u was sent to rank %u, which has registered nothing for it: "
		"it calls "
		"tern_sequence_on() first",
		s->id, s->dst);
}

/* A line, the last of which may be shorter. */
static int line_any(const struct shipment *s, uint64_t i)
{
	uint64_t w[4] = { 0 };
	size_t at = (size_t)i << s->shift, left = s->len - at, most = (size_t)1 << s->shift;
	memcpy(w, s->data + at, left < most ? left : most);
	if (s->shift == SHIFT_LINE4)
		return layer_words(s->q->e, s->dst, SEQUENCE_LINE4, s->out->number, i, w[0], w[1],
				   w[2], w[3]);
	return layer_write(s->q->e, s->dst, SEQUENCE_LINE2, 4, s->out->number, i, w[0], w[1], 0, 0);
}

/* cost: base write */
int shipment_packet(const struct shipment *s, uint64_t i)
{
	if (s->shift != SHIFT_PAYLOAD)
		return line_any(s, i);
	size_t offset = (size_t)i * PACKET; /* cost: order write */
	size_t len = s->len - offset < PACKET ? s->len - offset : PACKET;
	const uint64_t words[] = { s->out->number, i };
	return layer_request(s->q->e, s->dst, SEQUENCE_PACKET, s->data + offset, len, 2, words);
}

/*
 * Whole lines of a constant length, from the i-th up to the n-th, as long as the ring has room;
 * returns the next one. This is layer_write() with what does not change kept out of the loop.
 */
/* cost: base write */
static inline __attribute__((always_inline)) uint64_t
lines_send(const struct shipment *s, uint64_t i, uint64_t n, unsigned shift)
{
	tern *t = s->q->e->t;
	struct tern_lane *lane = &t->lane[s->dst];
	const char *from = s->data + (i << shift);
	uint64_t number = s->out->number;
	unsigned id = TERN_HANDLER_MAX + (shift == SHIFT_LINE4 ? SEQUENCE_LINE4 : SEQUENCE_LINE2);
	for (n = t->reach ? n : 0; i < n; i++) { /* cost: order control */
		uint64_t w[4];
		memcpy(w, from, (size_t)1 << shift);
		if (TERN_UNLIKELY(!tern_lane_write(lane, id, shift == SHIFT_LINE4 ? 6 : 4, number,
						   i, w[0], w[1], w[2], w[3])))
			break;
		from += 1 << shift;
		if (TERN_UNLIKELY(tern_unheeded(lane)))
			tern_knock(t, lane);
		tern_look(t);
	}
	return i;
}

/* cost: base write */
int shipment_packets(const struct shipment *s, uint64_t n)
{
	uint64_t whole = s->len >> s->shift, i = 0;
	int rc = 0;
	whole = n < whole ? n : whole;
	s->out->question = SEQUENCE_END;
	s->out->answered = false;
	while (!rc && i < n) {
		if (s->shift == SHIFT_LINE4)
			i = lines_send(s, i, whole, SHIFT_LINE4);
		else if (s->shift == SHIFT_LINE2)
			i = lines_send(s, i, whole, SHIFT_LINE2);
		if (i < n) /* without room, not whole, or no line */
			rc = shipment_packet(s, i++);
	}
	return rc;
}

/* Those that are missing, as many as may be sent at once. */
/* cost: fault control */
static int missing_send(const struct shipment *s, unsigned burst)
{
	int rc = 0;
	uint64_t n = packets_of(s->len, s->shift);
	for (uint64_t i = 0; !rc && burst && i < MISSING_BITS && s->out->first + i < n; i++)
		if (s->out->missing[i / 64] >> i % 64 & 1) {
			rc = shipment_packet(s, s->out->first + i);
			burst--;
		}
	return rc;
}

static int send_full(const struct shipment *s)
{
	bool room = sequence_provided(s->q->e, s->dst) & PROVIDES_ROOM;
	unsigned burst = room ? MISSING_BITS : BURST;
	uint64_t n = packets_of(s->len, s->shift), begin = room || n < BURST ? n : BURST;
	int rc;
	for (unsigned tries = 0; (rc = question(s, SEQUENCE_ASK, false)) == -EAGAIN; tries++) {
		rc = pause_for(s, tries);
		if (rc)
			return rc;
	}
	if (!rc && !n)
		return 0; /* what was asked for was all of it */
	if (!rc)
		rc = shipment_packets(s, begin);
	/* All is on its way: the acknowledgement comes by itself. */
	for (bool all = begin == n; !rc && (rc = question(s, SEQUENCE_END, all)) == -EAGAIN;
	     all = false)
		rc = missing_send(s, burst);
	return rc == -ENXIO ? nobody(s) : rc;
}

/* cost: base write */
int shipment_piece(const struct shipment *s, size_t at)
{
	size_t len = s->len - at < PACKET ? s->len - at : PACKET;
	return layer_request(s->q->e, s->dst, SEQUENCE_PIECE, s->data + at, len, 1,
			     &s->out->number);
}

/* The head and the data behind it; the verdict comes the other way meanwhile. */
static int plain_try(const struct shipment *s)
{
	int rc = shipment_ask(s, SEQUENCE_HEAD);
	for (size_t at = 0; !rc && at < s->len && !(s->out->answered && s->out->verdict);
	     at += PACKET)
		rc = shipment_piece(s, at);
	if (!rc)
		rc = shipment_wait(s, shipment_answered, s->out, "no verdict");
	return rc ? rc : s->out->verdict;
}

static int send_plain(const struct shipment *s)
{
	int rc;
	for (unsigned tries = 0; (rc = plain_try(s)) == -EAGAIN; tries++) {
		rc = pause_for(s, tries);
		if (rc)
			return rc;
		s->out->number++; /* what is left of this one is dropped where it arrives */
	}
	return rc == -ENXIO ? nobody(s) : rc;
}

static bool shipment_may_begin(struct endpoint *e, void *out)
{
	(void)e;
	return !((struct outbound *)out)->busy;
}

/* One at a time to each rank, also of light threads. */
static int shipment_begin(struct shipment *s)
{
	struct sequence *q = s->q;
	if (!q->out)
		q->out = memory_new(q->e->t->size, sizeof *q->out);
	if (!q->out)
		return error_set(-ENOMEM, "sending a sequence to rank %u: no memory", s->dst);
	s->out = &q->out[s->dst];
	int rc = shipment_wait(s, shipment_may_begin, s->out, "another sequence is under way");
	if (rc)
		return rc;
	s->out->busy = true;
	s->out->number++;
	return 0;
}

int tern_sequence_send(tern *t, uint32_t dst, unsigned id, const void *data, size_t len,
		       enum tern_way way)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	struct shipment s = { .q = sequence_of(t),
			      .dst = dst,
			      .id = id,
			      .data = data,
			      .len = len,
			      .shift = len <= LINES_MOST ? SHIFT_LINE4 : SHIFT_PAYLOAD };
	int rc = rules_rank(e, "tern_sequence_send()");
	if (!rc)
		rc = rules_program(e, "tern_sequence_send()");
	if (!rc)
		rc = rules_wait(e, "tern_sequence_send()");
	if (!rc)
		rc = rules_destination(e, dst);
	if (!rc && id >= TERN_SEQUENCES_MAX)
		rc = error_set(-ERANGE, "tern_sequence_send() was given kind %u; there are %d", id,
			       TERN_SEQUENCES_MAX);
	if (!rc && way > TERN_WAY_PLAIN)
		rc = way_refuse(way, "tern_sequence_send()");
	if (!rc)
		rc = shipment_begin(&s);
	if (rc)
		return rc;
	rc = tern_way_get(t, dst, way) == TERN_WAY_PLAIN ? send_plain(&s) : send_full(&s);
	s.out->busy = false;
	return rc;
}

int tern_sequence_on(tern *t, unsigned id, tern_sequence_accept *accept, tern_sequence_end *end,
		     void *arg)
{
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	if (id >= TERN_SEQUENCES_MAX)
		return error_set(-ERANGE, "tern_sequence_on() was given kind %u; there are %d", id,
				 TERN_SEQUENCES_MAX);
	if (!accept || !end)
		return error_set(-EINVAL, "tern_sequence_on() was given no function to %s with",
				 accept ? "end" : "accept");
	struct kind *k = &sequence_of(t)->kind[id];
	if (k->accept)
		return error_set(-EEXIST, "sequences of kind %u have been registered already", id);
	*k = (struct kind){ accept, end, arg };
	return 0;
}

void finite_register(struct endpoint *e)
{
	layer_on(e, SEQUENCE_VERDICT, on_sequence_verdict);
	layer_on(e, SEQUENCE_DONE, on_sequence_done);
	layer_on(e, SEQUENCE_MISSING, on_sequence_missing);
}

void finite_close(struct sequence *q)
{
	memory_free(q->out);
}

/* cost: base control */
