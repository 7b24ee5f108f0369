/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block of known size. In full: ask whether there is room, send packets with their offsets, ask
 * whether all have come, send those again that have not. Plain: a head, which is accepted or
 * refused while the data is already on its way, and the data, whose last packet ends it.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "protocols/sequence/sequence.h"

enum {
	PACKET = TERN_PAYLOAD_MAX,
	/* Packets sent at once where nobody counts them: fewer than a receiver has blocks. */
	BURST = 8,
};

static uint64_t packets_of(size_t len)
{
	return len / PACKET + (len % PACKET != 0); /* a peer's length may be as large as there is */
}

/* -- The receiver ------------------------------------------------------------------------------ */

static struct inbound *incoming_from(struct sequence *q, uint32_t rank)
{
	if (!q->in)
		q->in = memory_new(q->e->t->size, sizeof *q->in);
	return q->in ? &q->in[rank] : NULL;
}

static void incoming_drop(struct inbound *in)
{
	memory_free(in->came);
	in->came = NULL;
	in->data = NULL;
}

/* cost: buffer setup */
static int incoming_begin(struct sequence *q, uint32_t from, uint64_t number, unsigned id,
			  size_t len, bool full)
{
	struct inbound *in = incoming_from(q, from);
	struct kind *k = id < TERN_SEQUENCES_MAX ? &q->kind[id] : NULL;
	if (!in)
		return -EAGAIN;
	if (number <= in->finished || (number == in->number && !in->refused))
		return 0; /* it is asked again because the answer was lost */
	if (!k || !k->accept)
		return -ENXIO;
	incoming_drop(in);
	in->number = number;
	in->refused = true;
	in->came = full ? memory_new(packets_of(len) / 64 + 1, sizeof *in->came) : NULL;
	in->data = full && !in->came ? NULL : k->accept(q->e->t, from, id, len, k->arg);
	in->len = len;
	in->got = 0;
	in->id = id;
	in->refused = !in->data;
	return in->data ? 0 : -EAGAIN;
}

/* The block is there: it is the program's. */
/* cost: buffer control */
static void incoming_end(struct sequence *q, struct inbound *in, uint32_t from)
{
	const struct kind *k = &q->kind[in->id];
	char *data = in->data;
	in->finished = in->number;
	incoming_drop(in);
	k->end(q->e->t, from, in->id, data, in->len, k->arg);
}

static struct inbound *incoming_of(struct sequence *q, const tern_msg *m)
{
	struct inbound *in = incoming_from(q, tern_msg_src(m));
	return in && in->number == tern_msg_arg(m, 0) && in->data ? in : NULL;
}

/* A block was announced, in full or plain: takes it or refuses it, and says which. */
/* cost: buffer control */
static inline void sequence_announced(tern *t, const tern_msg *m, bool full)
{
	struct sequence *q = sequence_of(t);
	int rc = incoming_begin(q, tern_msg_src(m), tern_msg_arg(m, 0),
				(unsigned)tern_msg_arg(m, 1), (size_t)tern_msg_arg(m, 2), full);
	struct inbound *in = q->in ? &q->in[tern_msg_src(m)] : NULL;
	if (!rc && in->data && !in->len)
		incoming_end(q, in, tern_msg_src(m));
	const uint64_t words[] = { tern_msg_arg(m, 0), (uint64_t)-rc };
	layer_reply(q->e, SEQUENCE_VERDICT, NULL, 0, 2, words);
}

/* cost: buffer control */
static void on_sequence_ask(tern *t, const tern_msg *m)
{
	sequence_announced(t, m, true);
}

/* A packet at its offset, unless it has come before. */
/* cost: order control */
static void on_sequence_packet(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	struct inbound *in = incoming_of(q, m);
	uint64_t offset = tern_msg_arg(m, 1), i = offset / PACKET;
	size_t len;
	const void *data = tern_msg_data(m, &len);
	if (!in || !in->came || offset % PACKET || offset > in->len ||
	    len != (in->len - offset < PACKET ? in->len - offset : PACKET) ||
	    in->came[i / 64] >> i % 64 & 1)
		return;
	memcpy(in->data + offset, data, len); /* cost: base read */
	in->came[i / 64] |= UINT64_C(1) << i % 64;
	in->got += len;
	if (in->got == in->len)
		incoming_end(q, in, tern_msg_src(m));
}

/* The packets that are missing, from the first one on. */
/* cost: fault control */
static uint64_t missing_of(const struct inbound *in, uint64_t *missing)
{
	uint64_t first = 0, n = packets_of(in->len);
	memset(missing, 0, MISSING_WORDS * sizeof *missing);
	while (first < n && in->came[first / 64] >> first % 64 & 1)
		first++;
	for (uint64_t i = 0; i < MISSING_BITS && first + i < n; i++)
		if (!(in->came[(first + i) / 64] >> (first + i) % 64 & 1))
			missing[i / 64] |= UINT64_C(1) << i % 64;
	return first;
}

/* cost: fault control */
static void on_sequence_end(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	struct inbound *in = incoming_from(q, tern_msg_src(m));
	uint64_t words[3 + MISSING_WORDS] = { tern_msg_arg(m, 0), EAGAIN };
	if (in && tern_msg_arg(m, 0) <= in->finished)
		words[1] = 0;
	else if (incoming_of(q, m) && in->came)
		words[2] = missing_of(in, words + 3);
	else
		words[1] = EPROTO; /* it was never asked for */
	layer_reply(q->e, SEQUENCE_MISSING, NULL, 0, 3 + MISSING_WORDS, words);
}

/* cost: buffer control */
static void on_sequence_head(tern *t, const tern_msg *m)
{
	sequence_announced(t, m, false);
}

/* cost: base read */
static void on_sequence_piece(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	struct inbound *in = incoming_of(q, m);
	size_t len;
	const void *data = tern_msg_data(m, &len);
	if (!in || len > in->len - in->got)
		return; /* of a block that was refused */
	memcpy(in->data + in->got, data, len);
	in->got += len;
	if (in->got == in->len)
		incoming_end(q, in, tern_msg_src(m));
}

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
	return layer_words(s->q->e, s->dst, handler, s->out->number, s->id, s->len, 0, 0, 0);
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

static int question(const struct shipment *s, unsigned handler)
{
	struct question q = { .s = s, .handler = handler };
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

/* cost: base write */
int shipment_packet(const struct shipment *s, uint64_t i)
{
	uint64_t offset = i * PACKET; /* cost: order write */
	size_t len = s->len - offset < PACKET ? s->len - offset : PACKET;
	const uint64_t words[] = { s->out->number, offset };
	return layer_request(s->q->e, s->dst, SEQUENCE_PACKET, s->data + offset, len, 2, words);
}

/* Those that are missing, as many as may be sent at once. */
/* cost: fault control */
static int missing_send(const struct shipment *s, unsigned burst)
{
	int rc = 0;
	uint64_t n = packets_of(s->len);
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
	uint64_t n = packets_of(s->len), begin = room || n < BURST ? n : BURST;
	int rc;
	for (unsigned tries = 0; (rc = question(s, SEQUENCE_ASK)) == -EAGAIN; tries++) {
		rc = pause_for(s, tries);
		if (rc)
			return rc;
	}
	for (uint64_t i = 0; !rc && i < begin; i++)
		rc = shipment_packet(s, i);
	while (!rc && (rc = question(s, SEQUENCE_END)) == -EAGAIN)
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
	struct shipment s = { .q = sequence_of(t), .dst = dst, .id = id, .data = data, .len = len };
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
	layer_on(e, SEQUENCE_ASK, on_sequence_ask);
	layer_on(e, SEQUENCE_VERDICT, on_sequence_verdict);
	layer_on(e, SEQUENCE_PACKET, on_sequence_packet);
	layer_on(e, SEQUENCE_END, on_sequence_end);
	layer_on(e, SEQUENCE_MISSING, on_sequence_missing);
	layer_on(e, SEQUENCE_HEAD, on_sequence_head);
	layer_on(e, SEQUENCE_PIECE, on_sequence_piece);
}

void finite_close(struct sequence *q)
{
	for (uint32_t r = 0; q->in && r < q->e->t->size; r++)
		incoming_drop(&q->in[r]);
	memory_free(q->in);
	memory_free(q->out);
}

/* cost: base control */
