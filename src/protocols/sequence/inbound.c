/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks that come: taken or refused when they are announced, put together from packets in any
 * order, and handed to the program once. finite.c sends them.
 */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "protocols/sequence/sequence.h"

static tern_handler on_sequence_line2, on_sequence_line4;

/* Lines are let in from the first block on: they find its memory without a question. */
static __attribute__((noinline)) bool incoming_make(struct sequence *q)
{
	q->in = memory_new(q->e->t->size, sizeof *q->in);
	if (!q->in)
		return false;
	layer_on(q->e, SEQUENCE_LINE2, on_sequence_line2);
	layer_on(q->e, SEQUENCE_LINE4, on_sequence_line4);
	return true;
}

static inline struct inbound *incoming_from(struct sequence *q, uint32_t rank)
{
	return q->in || incoming_make(q) ? &q->in[rank] : NULL;
}

/* All lines take the long way from here on. */
static inline void lines_rare(struct inbound *in)
{
	in->line[0] = in->line[1] = 0;
}

/* Lines of its length may come whole and in order. */
static inline void lines_expect(struct inbound *in)
{
	in->line[in->shift == SHIFT_LINE4] = in->number;
}

static void incoming_drop(struct inbound *in)
{
	if (in->came != &in->few)
		memory_free(in->came);
	in->came = NULL;
	in->data = NULL;
	lines_rare(in);
}

/* Memory for what has come of a block; false: there is none. */
/* cost: buffer setup */
static inline bool incoming_map(struct inbound *in, size_t len, unsigned shift)
{
	in->shift = shift;
	in->packets = packets_of(len, shift);
	in->stop = len >> shift;
	in->next = 0;
	in->few = 0;
	in->early = 0;
	in->came = in->packets <= CAME_FEW ? &in->few
					   : memory_new(in->packets / 64 + 1, sizeof *in->came);
	return in->came;
}

static inline bool shift_known(uint64_t shift)
{
	return shift == SHIFT_PAYLOAD || shift == SHIFT_LINE4 || shift == SHIFT_LINE2;
}

/* `shift` is 0 for a plain block. */
/* cost: buffer setup */
static inline int incoming_begin(struct sequence *q, struct inbound *in, uint32_t from,
				 uint64_t number, uint64_t id, size_t len, unsigned shift)
{
	const struct kind *k = &q->kind[id % TERN_SEQUENCES_MAX];
	if (!in)
		return -EAGAIN;
	if (number <= in->finished || (number == in->number && !in->refused))
		return 0; /* it is asked again because the answer was lost */
	if (id >= TERN_SEQUENCES_MAX || !k->accept)
		return -ENXIO;
	if (in->came)
		incoming_drop(in);
	lines_rare(in);
	in->number = number;
	in->refused = true;
	in->data = NULL;
	in->stop = 0;
	if (!shift || incoming_map(in, len, shift))
		in->data = k->accept(q->e->t, from, (unsigned)id, len, k->arg);
	in->len = len;
	in->got = 0;
	in->id = (unsigned)id;
	in->at = in->data;
	in->refused = !in->data;
	if (in->data && shift < SHIFT_PAYLOAD && in->stop)
		lines_expect(in);
	return in->data ? 0 : -EAGAIN;
}

/* The block is there: it is the program's. */
/* cost: buffer control */
static inline void incoming_end(struct sequence *q, struct inbound *in, uint32_t from)
{
	const struct kind *k = &q->kind[in->id];
	char *data = in->data;
	in->finished = in->number;
	incoming_drop(in);
	k->end(q->e->t, from, in->id, data, in->len, k->arg);
}

/* The same, acknowledged to the packet that has completed it. */
/* cost: fault write */
static inline void incoming_done(tern *t, const tern_msg *m, struct inbound *in)
{
	incoming_end(sequence_of(t), in, tern_msg_src(m));
	layer_answer(t, m, SEQUENCE_DONE, in->number, 0);
}

static struct inbound *incoming_of(struct sequence *q, const tern_msg *m)
{
	struct inbound *in = incoming_from(q, tern_msg_src(m));
	return in && in->number == tern_msg_arg(m, 0) && in->data ? in : NULL;
}

/* A block was announced, in full or plain: takes it or refuses it, and says which. */
/* cost: buffer control */
static inline void sequence_announced(tern *t, const tern_msg *m, unsigned shift)
{
	struct sequence *q = sequence_of(t);
	uint32_t from = tern_msg_src(m);
	struct inbound *in = incoming_from(q, from);
	size_t len = (size_t)tern_msg_arg(m, 2);
	int rc = incoming_begin(q, in, from, tern_msg_arg(m, 0), tern_msg_arg(m, 1), len, shift);
	/* An old question about a block without bytes may come while another one does. */
	if (TERN_UNLIKELY(!len && !rc && in->data && in->number == tern_msg_arg(m, 0)))
		incoming_end(q, in, from);
	layer_answer(t, m, SEQUENCE_VERDICT, tern_msg_arg(m, 0), (uint64_t)-rc);
}

/* cost: buffer control */
static void on_sequence_ask(tern *t, const tern_msg *m)
{
	uint64_t shift = tern_msg_arg(m, 3);
	if (tern_msg_words(m) > 3 && shift_known(shift))
		sequence_announced(t, m, (unsigned)shift);
}

/* cost: order status */
static inline bool packet_came(const struct inbound *in, uint64_t i)
{
	return i < in->next || in->came[i / 64] >> i % 64 & 1;
}

/* A packet in its place, unless it has come before; true: it completes the block. */
/* cost: order control */
static bool packet_take(struct inbound *in, uint64_t i, const void *data, size_t len)
{
	if (i >= in->packets || packet_came(in, i))
		return false;
	size_t offset = (size_t)i << in->shift, left = in->len - offset;
	if (len != (left < (size_t)1 << in->shift ? left : (size_t)1 << in->shift))
		return false;
	memcpy(in->data + offset, data, len); /* cost: base read */
	in->came[i / 64] |= UINT64_C(1) << i % 64;
	in->early++;
	for (; in->early && in->came[in->next / 64] >> in->next % 64 & 1; in->next++)
		in->early--;
	in->at = in->data + (in->next << in->shift);
	return in->next == in->packets;
}

/* cost: order control */
static void on_sequence_packet(tern *t, const tern_msg *m)
{
	struct inbound *in = incoming_of(sequence_of(t), m);
	size_t len;
	const void *data = tern_msg_data(m, &len);
	if (in && in->came && packet_take(in, tern_msg_arg(m, 1), data, len))
		incoming_done(t, m, in);
}

/* A line that is not the next whole one. */
static __attribute__((noinline)) void line_rare(tern *t, const tern_msg *m, unsigned shift)
{
	struct inbound *in = incoming_of(sequence_of(t), m);
	uint64_t i = tern_msg_arg(m, 1);
	if (!in || !in->came || in->shift != shift || i >= in->packets)
		return;
	size_t left = in->len - ((size_t)i << shift), most = (size_t)1 << shift;
	if (packet_take(in, i, m->word + 2, left < most ? left : most))
		incoming_done(t, m, in);
	else /* as long as some are early, all come this way; and so does one that is not whole */
	{
		lines_rare(in);
		if (!in->early && in->next < in->stop)
			lines_expect(in);
	}
}

/* The last of the whole lines has come. */
static __attribute__((noinline)) void line_last(tern *t, const tern_msg *m, struct inbound *in)
{
	if (in->next == in->packets)
		incoming_done(t, m, in);
	else
		lines_rare(in); /* the last is not whole */
}

/* A line of a constant length: the common case is that it is the next one. */
/* cost: base read */
static inline __attribute__((always_inline)) void line_take(tern *t, const tern_msg *m,
							    unsigned shift)
{
	struct inbound *in = sequence_of(t)->in + tern_msg_src(m);
	uint64_t number = tern_msg_arg(m, 0);
	uint64_t i = tern_msg_arg(m, 1); /* cost: order read */
	/* No block has the number 0, which stands for none in `line`. */
	if (TERN_UNLIKELY(!number || number != in->line[shift == SHIFT_LINE4] || i != in->next)) {
		line_rare(t, m, shift); /* cost: order control */
		return;
	}
	char *at = in->at;
	memcpy(at, m->word + 2, (size_t)1 << shift);
	in->at = at + (1 << shift);
	in->next = i + 1;                     /* cost: order write */
	if (TERN_UNLIKELY(i + 1 == in->stop)) /* cost: order status */
		line_last(t, m, in);          /* cost: fault control */
}

static void on_sequence_line2(tern *t, const tern_msg *m)
{
	line_take(t, m, SHIFT_LINE2);
}

static void on_sequence_line4(tern *t, const tern_msg *m)
{
	line_take(t, m, SHIFT_LINE4);
}

/* The packets that are missing, from the first one on. */
/* cost: fault control */
static uint64_t missing_of(const struct inbound *in, uint64_t *missing)
{
	memset(missing, 0, MISSING_WORDS * sizeof *missing);
	for (uint64_t i = 0; i < MISSING_BITS && in->next + i < in->packets; i++)
		if (!packet_came(in, in->next + i))
			missing[i / 64] |= UINT64_C(1) << i % 64;
	return in->next;
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
	sequence_announced(t, m, 0);
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

void inbound_register(struct endpoint *e)
{
	layer_on(e, SEQUENCE_ASK, on_sequence_ask);
	layer_on(e, SEQUENCE_PACKET, on_sequence_packet);
	layer_on(e, SEQUENCE_END, on_sequence_end);
	layer_on(e, SEQUENCE_HEAD, on_sequence_head);
	layer_on(e, SEQUENCE_PIECE, on_sequence_piece);
}

void inbound_close(struct sequence *q)
{
	for (uint32_t r = 0; q->in && r < q->e->t->size; r++)
		incoming_drop(&q->in[r]);
	memory_free(q->in);
}

/* cost: base control */
