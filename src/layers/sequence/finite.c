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
#include "core/direct.h"
#include "core/wait.h"
#include "sequence/sequence.h"

/* Packets sent at once where nobody counts them: fewer than a receiver has blocks. */
enum { BURST = BURST_BYTES / PACKET };

/* -- The sender -------------------------------------------------------------------------------- */

/* The block that an answer is for, if it is still wanted, and the question is that or the other. */
static struct outbound *outbound_answer(tern *t, const tern_msg *m, bool end)
{
	struct outbound *out = &sequence_of(t)->out[tern_msg_src(m)];
	if (!out->busy || out->number != tern_msg_word(m, 0) ||
	    (out->question == SEQUENCE_END) != end)
		return NULL;
	out->answered = 1;
	out->verdict = layer_error(tern_msg_word(m, 1));
	return out;
}

void on_sequence_verdict(tern *t, const tern_msg *m)
{
	outbound_answer(t, m, false);
}

void on_sequence_missing(tern *t, const tern_msg *m)
{
	struct outbound *out = outbound_answer(t, m, true);
	if (!out)
		return;
	out->first = tern_msg_word(m, 2);
	for (unsigned i = 0; i < MISSING_WORDS; i++)
		out->missing[i] = tern_msg_word(m, 3 + i);
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
			  .takes = s->replies,
			  .stop = wait_unreachable };
	return wait_until(s->q->e, over, arg, &w);
}

static bool shipment_answered(struct endpoint *e, void *out)
{
	(void)e;
	return ((struct outbound *)out)->answered;
}

struct shipment shipment_of(struct sequence *q, uint32_t dst, unsigned id, const void *data,
			    size_t len, unsigned shift)
{
	struct endpoint *e = q->e;
	return (struct shipment){
		.t = e->t,
		.lane = &e->t->lane[dst],
		.replies = &e->site.peer[dst].replies,
		.number = q->out[dst].number,
		.len = len,
		.shape = id | (uint64_t)shift << BLOCK_SHIFT,
		.data = data,
		.lines = shift == SHIFT_PAYLOAD ? 0 : len >> shift,
		.shift = shift,
		.id = id,
		.dst = dst,
		.out = &q->out[dst],
		.q = q,
	};
}

void shipment_number(struct shipment *s)
{
	s->number = s->out->number += BLOCK_STEP;
}

int shipment_say(const struct shipment *s, unsigned handler)
{
	const uint64_t words[] = { s->number, s->len, s->shape };
	s->out->question = handler;
	s->out->answered = 0;
	return layer_request(s->t->own, s->dst, handler, NULL, 0, 3, words);
}

int shipment_ask(const struct shipment *s)
{
	tern *t = s->t;
	struct tern_lane *lane = s->lane;
	tern_msg *m;
	if (TERN_UNLIKELY(!t->reach || !layer_line(lane, &m)))
		return shipment_say(s, SEQUENCE_ASK);
	s->out->question = SEQUENCE_ASK;
	s->out->answered = 0;
	m->word[0] = s->number;
	m->word[1] = s->len;
	m->word[2] = s->shape;
	layer_line_send(lane, m, layer_bits(SEQUENCE_ASK, 3));
	return layer_sent(t, lane);
}

static __attribute__((noinline)) int answer_code(const tern_msg *m)
{
	return layer_error(m->word[1]);
}

/* Where a leaf of the ring ends, the answer may lie behind it. */
static bool answer_behind(const struct shipment *s)
{
	return layer_may_take(s->t) && layer_advance(s->replies);
}

static __attribute__((noinline)) int verdict_behind(const struct shipment *s)
{
	return answer_behind(s) ? shipment_verdict(s) : ANSWER_NONE;
}

static __attribute__((noinline)) int done_behind(const struct shipment *s)
{
	return answer_behind(s) ? shipment_done(s) : ANSWER_NONE;
}

/*
 * The answer is taken where it lies. A poll would find it by the circle of inlets and call a
 * handler that has to find the block: for one message that is waited for by name, thrice as much.
 */
static inline __attribute__((always_inline)) int
answer_take(const struct shipment *s, unsigned handler, int (*behind)(const struct shipment *s))
{
	tern *t = s->t;
	struct tern_inlet *in = s->replies;
	const tern_msg *m = inlet_at(in);
	if (TERN_UNLIKELY(!layer_is(m, in->expect ^ layer_bits(handler, 2)) || !layer_may_take(t)))
		return behind(s);
	layer_pass(t->own, in, 1);
	if (TERN_UNLIKELY(m->word[0] != s->number))
		return ANSWER_NONE; /* to a question that was asked twice */
	return TERN_UNLIKELY(m->word[1]) ? answer_code(m) : 0;
}

int shipment_verdict(const struct shipment *s)
{
	return answer_take(s, SEQUENCE_VERDICT, verdict_behind);
}

int shipment_done(const struct shipment *s)
{
	return answer_take(s, SEQUENCE_DONE, done_behind);
}

struct question {
	const struct shipment *s;
	unsigned asked; /* the handler */
	struct patience patience;
	int rc;
};

/* Asks again and again, and is over when there is an answer. */
static bool question_over(struct endpoint *e, void *arg)
{
	struct question *q = arg;
	struct outbound *out = q->s->out;
	int verdict = out->answered              ? ANSWER_NONE
		      : q->asked == SEQUENCE_END ? shipment_done(q->s)
						 : shipment_verdict(q->s);
	if (verdict != ANSWER_NONE) {
		out->answered = 1;
		out->verdict = verdict;
	} else if (!out->answered && patience_over(e, &q->patience)) {
		q->rc = shipment_say(q->s, q->asked);
	}
	return q->rc || out->answered;
}

/* `later`: the answer may come without the question. */
static int question(const struct shipment *s, unsigned asked, bool later)
{
	struct question q = { .s = s, .asked = asked };
	patience_over(s->q->e, &q.patience);
	int rc = later ? 0 : asked == SEQUENCE_ASK ? shipment_ask(s) : shipment_say(s, asked);
	if (!rc)
		rc = shipment_wait(s, question_over, &q, "no answer");
	rc = rc ? rc : q.rc;
	return rc ? rc : s->out->verdict;
}

static bool pause_over(struct endpoint *e, void *until)
{
	return e->world->now() >= *(uint64_t *)until;
}

/* A line, the last of which may be shorter. */
static int line_any(const struct shipment *s, uint64_t i)
{
	uint64_t w[4] = { 0 };
	size_t at = (size_t)i << s->shift, left = s->len - at, most = (size_t)1 << s->shift;
	memcpy(w, s->data + at, left < most ? left : most);
	if (s->shift == SHIFT_LINE4)
		return layer_write(s->q->e, s->dst, SEQUENCE_LINE4, 5, s->number + i, w[0], w[1],
				   w[2], w[3], 0);
	return layer_write(s->q->e, s->dst, SEQUENCE_LINE2, 3, s->number + i, w[0], w[1], 0, 0, 0);
}

int shipment_packet(const struct shipment *s, uint64_t i)
{
	if (s->shift != SHIFT_PAYLOAD)
		return line_any(s, i);
	size_t offset = (size_t)i * PACKET; /* cost: order write */
	size_t len = s->len - offset < PACKET ? s->len - offset : PACKET;
	const uint64_t words[] = { s->number, i };
	return layer_request(s->q->e, s->dst, SEQUENCE_PACKET, s->data + offset, len, 2, words);
}

/* Whole lines of a constant length, from the i-th on, into the ring up to `stop`. */
static inline __attribute__((always_inline)) void lines_send(const struct shipment *s, uint64_t i,
							     uintptr_t stop, unsigned shift)
{
	struct tern_lane *lane = s->lane;
	unsigned id = shift == SHIFT_LINE4 ? SEQUENCE_LINE4 : SEQUENCE_LINE2;
	uint64_t head = lane->head | layer_bits(id, shift == SHIFT_LINE4 ? 5 : 3);
	uint64_t key = s->number + i; /* cost: order write */
	size_t ahead = lane->ahead;
	const char *from = s->data + (i << shift);
	char *p = lane->tail;
	do {
		tern_msg *m = (tern_msg *)(void *)p;
		m->word[0] = key; /* cost: order write */
		memcpy(m->word + 1, from, (size_t)1 << shift);
		/* ring.R1, release; acquired in inlet_drain(). */
		atomic_store_explicit(&m->head, head, memory_order_release);
		tern_prefetch_write_(p + ahead);
		p += TERN_LINE;
		from += 1 << shift;
		key++;                  /* cost: order write */
	} while ((uintptr_t)p != stop); /* cost: flow status */
	lane->tail = p;
}

/* As many whole lines from the i-th on, up to the n-th, as the ring has room for; how many. */
static uint64_t lines_some(const struct shipment *s, uint64_t i, uint64_t n)
{
	uintptr_t tail = (uintptr_t)s->lane->tail, limit = (uintptr_t)s->lane->limit;
	uint64_t room = tail < limit ? (limit - tail + TERN_LINE - 1) / TERN_LINE : 0;
	n = n < s->lines ? n : s->lines;
	if (!s->t->reach || i >= n || !room)
		return 0;
	n = n - i < room ? n - i : room;
	if (s->shift == SHIFT_LINE2)
		lines_send(s, i, tail + n * TERN_LINE, SHIFT_LINE2);
	else
		lines_send(s, i, tail + n * TERN_LINE, SHIFT_LINE4);
	return n;
}

/* Without room, not whole, or no lines: as many lines as there can be, and one by itself. */
static __attribute__((noinline)) int packets_rare(const struct shipment *s, uint64_t n)
{
	int rc = 0;
	for (uint64_t i = 0; !rc && i < n;) {
		i += lines_some(s, i, n);
		rc = i < n ? shipment_packet(s, i++) : layer_sent(s->t, s->lane);
	}
	return rc;
}

/*
 * The receiver sees each line as soon as its header is there, and is knocked for when all are. They
 * are one send as far as looks go: whoever has sent a block waits next.
 */
int shipment_packets(const struct shipment *s, uint64_t n)
{
	tern *t = s->t;
	struct tern_lane *lane = s->lane;
	uintptr_t stop = (uintptr_t)lane->tail + n * TERN_LINE;
	s->out->question = SEQUENCE_END;
	s->out->answered = 0;
	if (TERN_UNLIKELY(!t->reach || n > s->lines || stop > (uintptr_t)lane->limit))
		return packets_rare(s, n);
	if (s->shift == SHIFT_LINE2)
		lines_send(s, 0, stop, SHIFT_LINE2);
	else
		lines_send(s, 0, stop, SHIFT_LINE4);
	return layer_sent(t, lane);
}

/* Those that are missing, as many as may be sent at once. */
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

void shipment_plain(struct shipment *s)
{
	s->shift = SHIFT_PAYLOAD;
	s->shape = s->id | (uint64_t)(SHIFT_PAYLOAD | SHIFT_PLAIN) << BLOCK_SHIFT;
}

/* The head and the data behind it; the verdict comes the other way meanwhile. */
static int plain_try(const struct shipment *s)
{
	uint64_t n = packets_of(s->len, s->shift);
	int rc = shipment_say(s, SEQUENCE_ASK);
	for (uint64_t i = 0; !rc && i < n && !(s->out->answered && s->out->verdict); i++)
		rc = shipment_packet(s, i);
	if (!rc)
		rc = shipment_wait(s, shipment_answered, s->out, "no verdict");
	return rc ? rc : s->out->verdict;
}

/* Tries until the receiver accepts the block, or gives up on it; then why, in words. */
static int accepted(struct shipment *s, bool plain)
{
	int rc;
	for (unsigned tries = 0;
	     (rc = plain ? plain_try(s) : question(s, SEQUENCE_ASK, false)) == -EAGAIN; tries++) {
		uint64_t until =
			s->q->e->world->now() + (UINT64_C(20000) << (tries < 8 ? tries : 8));
		rc = shipment_wait(s, pause_over, &until, "the receiver accepts nothing");
		if (rc)
			return rc;
		if (plain) /* what is left of this one is dropped where it arrives */
			shipment_number(s);
	}
	if (rc != -ENXIO)
		return rc;
	return error_set(
		-ENXIO,
		"a sequence of kind %u was sent to rank %u, which has registered nothing for it: "
		"it calls "
		"tern_sequence_on() first",
		s->id, s->dst);
}

static int send_full(struct shipment *s)
{
	bool room = sequence_provided(s->q->e, s->dst) & PROVIDES_ROOM;
	unsigned burst = room ? MISSING_BITS : BURST;
	uint64_t n = packets_of(s->len, s->shift), begin = room || n < BURST ? n : BURST;
	int rc = accepted(s, false);
	if (rc || !n)
		return rc; /* without packets, what was asked for was all of it */
	rc = shipment_packets(s, begin);
	/* All is on its way: the acknowledgement comes by itself. */
	for (bool all = begin == n; !rc && (rc = question(s, SEQUENCE_END, all)) == -EAGAIN;
	     all = false)
		rc = missing_send(s, burst);
	return rc;
}

static bool shipment_may_begin(struct endpoint *e, void *out)
{
	(void)e;
	return !((struct outbound *)out)->busy;
}

/* One at a time to each rank, also of light threads. */
static int shipment_begin(struct sequence *q, uint32_t dst, unsigned id, const void *data,
			  size_t len, struct shipment *s)
{
	*s = shipment_of(q, dst, id, data, len, len <= LINES_MOST ? SHIFT_LINE4 : SHIFT_PAYLOAD);
	int rc = shipment_wait(s, shipment_may_begin, s->out, "another sequence is under way");
	if (rc)
		return rc;
	s->out->busy = true;
	shipment_number(s);
	return 0;
}

int tern_sequence_send(tern *t, uint32_t dst, unsigned id, const void *data, size_t len,
		       enum tern_way way)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	struct shipment s;
	int rc = rules_rank_waits(e, "tern_sequence_send()");
	if (!rc)
		rc = rules_destination(e, dst);
	if (!rc)
		rc = rules_number("tern_sequence_send(): kind", id, TERN_SEQUENCES_MAX);
	if (!rc && way > TERN_WAY_PLAIN)
		rc = way_refuse(way, "tern_sequence_send()");
	if (!rc)
		rc = shipment_begin(sequence_of(t), dst, id, data, len, &s);
	if (rc)
		return rc;
	if (sequence_way(t, dst, way) == TERN_WAY_PLAIN) {
		shipment_plain(&s);
		rc = accepted(&s, true);
	} else {
		rc = send_full(&s);
	}
	s.out->busy = false;
	return rc;
}

int tern_sequence_on(tern *t, unsigned id, tern_sequence_accept *accept, tern_sequence_end *end,
		     void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = rules_function(t->own, "tern_sequence_on(): kind", id, TERN_SEQUENCES_MAX,
				accept && end);
	if (rc)
		return rc;
	struct kind *k = &sequence_of(t)->kind[id];
	if (k->accept)
		return error_set(-EEXIST, "sequences of kind %u have been registered already", id);
	*k = (struct kind){ .accept = accept, .end = end, .arg = arg };
	return 0;
}
