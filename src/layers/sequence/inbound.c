/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks that come: taken or refused when they are announced, put together from packets in any
 * order, and handed to the program once. finite.c sends them.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "core/direct.h"
#include "sequence/sequence.h"

_Static_assert(sizeof(struct inbound) == 128 && sizeof(struct kind) == 32, "found by shifts");

static inline unsigned shape_id(uint64_t shape)
{
	return shape % TERN_SEQUENCES_MAX;
}

static inline uint64_t shape_shift(uint64_t shape)
{
	return shape >> BLOCK_SHIFT;
}

static inline uint64_t number_of(const tern_msg *m)
{
	return tern_msg_word(m, 0) & ~(uint64_t)BLOCK_INDEX;
}

static inline unsigned inbound_shift(const struct inbound *in)
{
	return shape_shift(in->shape) & SHIFT_MASK;
}

static inline uint64_t inbound_packets(const struct inbound *in)
{
	return packets_of(in->len, inbound_shift(in));
}

/* -- Lines that come whole and in order ------------------------------------------------------ */

static inline unsigned line_kind(unsigned shift)
{
	return shift == SHIFT_LINE4;
}

/* All lines take the long way from here on. */
static inline void lines_settle(struct inbound *in)
{
	uint64_t key = in->key[0] | in->key[1];
	if (key)
		in->next = key & BLOCK_INDEX;
	in->key[0] = in->key[1] = 0;
}

/* The next line is whole, and none has come early. */
static inline void lines_expect(struct inbound *in, unsigned shift)
{
	in->at = in->data + (in->next << shift);
	in->key[line_kind(shift)] = in->number + in->next;
	in->last = in->number + (in->len >> shift);
}

/* -- Beginning and end ----------------------------------------------------------------------- */

/* No block is under way. */
static inline void incoming_drop(struct inbound *in)
{
	in->key[0] = in->key[1] = 0;
	in->data = NULL;
	if (TERN_LIKELY(!in->came))
		return;
	if (in->came != &in->few)
		memory_free(in->came);
	in->came = NULL;
	in->early = 0;
}

/* Notes a block that is new, and asks for memory for it. */
static inline void incoming_begin(tern *t, struct inbound *in, const struct kind *k, uint32_t from,
				  uint64_t number, size_t len, uint64_t shape)
{
	in->number = number;
	in->len = len;
	in->shape = shape;
	in->data = k->accept(t, from, shape_id(shape), len, k->arg);
}

/* The block is there: it is the program's. */
static inline void incoming_end(tern *t, const tern_msg *m, struct inbound *in)
{
	unsigned id = shape_id(in->shape);
	const struct kind *k = &sequence_of(t)->kind[id];
	char *data = in->data;
	in->finished = in->number;
	incoming_drop(in);
	k->end(t, tern_msg_src(m), id, data, in->len, k->arg);
}

/* The same, acknowledged to the packet that has completed it unless the block is plain. */
static inline void incoming_done(tern *t, const tern_msg *m, struct inbound *in)
{
	incoming_end(t, m, in);
	if (!(shape_shift(in->shape) & SHIFT_PLAIN))
		layer_answer(t, SEQUENCE_DONE, in->number, 0);
}

/* Of the rank that has sent a message, if that is of the block that is under way. */
static struct inbound *incoming_of(tern *t, const tern_msg *m)
{
	struct inbound *in = &sequence_of(t)->in[tern_msg_src(m)];
	return in->number == number_of(m) && in->data ? in : NULL;
}

/* Whether blocks of that shape can be; `lines`: they come in lines. */
static inline bool shape_good(uint64_t shape, size_t len, bool *lines)
{
	uint64_t shift = shape_shift(shape);
	*lines = shift == SHIFT_LINE4 || shift == SHIFT_LINE2;
	return *lines ? len >> shift < BLOCK_INDEX
		      : shift == SHIFT_PAYLOAD || shift == (SHIFT_PAYLOAD | SHIFT_PLAIN);
}

/* Takes a block or refuses it, whatever came before it; 0 or a code. */
static int incoming_announced(tern *t, const tern_msg *m, bool lines)
{
	struct sequence *q = sequence_of(t);
	uint64_t shape = tern_msg_word(m, 2), number = number_of(m);
	const struct kind *k = &q->kind[shape_id(shape)];
	struct inbound *in = &q->in[tern_msg_src(m)];
	if (number <= in->finished || (number == in->number && in->data))
		return 0; /* it is asked again because the answer was lost */
	if (!k->accept)
		return -ENXIO;
	if (tern_msg_word(m, 1) > PTRDIFF_MAX)
		return -EAGAIN; /* no memory has that length */
	incoming_drop(in);
	in->next = 0;
	incoming_begin(t, in, k, tern_msg_src(m), number, (size_t)tern_msg_word(m, 1), shape);
	if (!in->data)
		return -EAGAIN;
	if (!in->len)
		incoming_end(t, m, in);
	else if (lines && in->len >> inbound_shift(in))
		lines_expect(in, inbound_shift(in));
	return 0;
}

/* A block was announced, in full or plain: takes it or refuses it, and says which. */
static __attribute__((noinline)) void on_sequence_head(tern *t, const tern_msg *m)
{
	bool lines;
	if (tern_msg_count(m) < 3 || !shape_good(tern_msg_word(m, 2), tern_msg_word(m, 1), &lines))
		return;
	int rc = incoming_announced(t, m, lines);
	layer_answer(t, SEQUENCE_VERDICT, tern_msg_word(m, 0), (uint64_t)-rc);
}

static __attribute__((noinline)) void ask_refuse(tern *t, struct inbound *in)
{
	incoming_drop(in);
	layer_answer(t, SEQUENCE_VERDICT, in->number, EAGAIN);
}

/* The common case: a block in lines from a rank that has none under way. */
void on_sequence_ask(tern *t, const tern_msg *m)
{
	struct sequence *q = sequence_of(t);
	uint64_t shape = tern_msg_word(m, 2), len = tern_msg_word(m, 1), number = number_of(m);
	const struct kind *k = &q->kind[shape_id(shape)];
	struct inbound *in = k->accept ? q->in + tern_msg_src(m) : NULL;
	uint64_t shift = shape_shift(shape), kind = shift - SHIFT_LINE2;
	/* At least one line of either length is whole. */
	if (TERN_UNLIKELY(!in || in->data || number <= in->number || kind > 1 ||
			  len - 32 > BLOCK_INDEX)) {
		on_sequence_head(t, m);
		return;
	}
	in->key[kind] = number;
	in->last = number + (len >> shift);
	incoming_begin(t, in, k, tern_msg_src(m), number, len, shape);
	in->at = in->data;
	if (TERN_UNLIKELY(!in->data)) {
		ask_refuse(t, in);
		return;
	}
	layer_answer(t, SEQUENCE_VERDICT, in->number, 0);
}

/* -- Packets --------------------------------------------------------------------------------- */

static inline bool packet_came(const struct inbound *in, uint64_t i)
{
	return i < in->next || (in->came && in->came[i / 64] >> i % 64 & 1);
}

/* Memory for what comes early; without, such packets are as good as lost. */
static bool early_begin(struct inbound *in)
{
	uint64_t packets = inbound_packets(in);
	in->few = 0;
	in->came = packets <= CAME_FEW ? &in->few : memory_new(packets / 64 + 1, sizeof *in->came);
	return in->came;
}

static void packet_early(struct inbound *in, uint64_t i)
{
	in->came[i / 64] |= UINT64_C(1) << i % 64;
	in->early++;
	for (; in->early && in->came[in->next / 64] >> in->next % 64 & 1; in->next++)
		in->early--;
}

/* A packet in its place, unless it has come before; true: it completes the block. */
static bool packet_take(struct inbound *in, uint64_t i, const void *data, size_t len)
{
	uint64_t packets = inbound_packets(in);
	unsigned shift = inbound_shift(in);
	if (i >= packets || packet_came(in, i))
		return false;
	size_t offset = (size_t)i << shift, left = in->len - offset;
	if (len != (left < (size_t)1 << shift ? left : (size_t)1 << shift))
		return false;
	if (i != in->next && !in->came && !early_begin(in))
		return false;
	memcpy(in->data + offset, data, len); /* cost: base read */
	if (in->came)
		packet_early(in, i);
	else
		in->next++;
	return in->next == packets;
}

void on_sequence_packet(tern *t, const tern_msg *m)
{
	struct inbound *in = incoming_of(t, m);
	size_t len;
	const void *data = tern_msg_data(m, &len);
	if (in && inbound_shift(in) == SHIFT_PAYLOAD &&
	    packet_take(in, tern_msg_word(m, 1), data, len))
		incoming_done(t, m, in);
}

/* A line that is not the next whole one. */
static __attribute__((noinline)) void line_rare(tern *t, const tern_msg *m, unsigned shift)
{
	struct inbound *in = incoming_of(t, m);
	uint64_t i = tern_msg_word(m, 0) & BLOCK_INDEX;
	if (!in || inbound_shift(in) != shift || i >= inbound_packets(in))
		return;
	lines_settle(in);
	size_t left = in->len - ((size_t)i << shift), most = (size_t)1 << shift;
	if (packet_take(in, i, m->word + 1, left < most ? left : most))
		incoming_done(t, m, in);
	/* As long as some are early, all come this way; and so does one that is not whole. */
	else if (!in->early && in->next < in->len >> shift)
		lines_expect(in, shift);
}

/* The last of the whole lines has come, behind some that were early, or the last is not whole. */
static __attribute__((noinline)) void line_rest(tern *t, const tern_msg *m, struct inbound *in,
						unsigned shift)
{
	lines_settle(in);
	if (in->next == packets_of(in->len, shift))
		incoming_done(t, m, in);
}

/* The last of the whole lines has come, and the block with it; or else the rest is rare. */
static inline __attribute__((always_inline)) void line_last(tern *t, const tern_msg *m,
							    struct inbound *in, unsigned shift)
{
	unsigned id = shape_id(in->shape);
	const struct kind *k = &sequence_of(t)->kind[id]; /* cost: buffer control */
	if (TERN_UNLIKELY(in->came || in->len & ((1u << shift) - 1))) {
		line_rest(t, m, in, shift);
		return;
	}
	in->key[line_kind(shift)] = 0;
	in->finished = in->number;
	char *data = in->data;
	in->data = NULL;
	k->end(t, tern_msg_src(m), id, data, in->len, k->arg); /* cost: buffer control */
	layer_answer(t, SEQUENCE_DONE, in->number, 0);         /* cost: fault write */
}

static __attribute__((noinline)) void line2_last(tern *t, const tern_msg *m, struct inbound *in)
{
	line_last(t, m, in, SHIFT_LINE2);
}

static __attribute__((noinline)) void line4_last(tern *t, const tern_msg *m, struct inbound *in)
{
	line_last(t, m, in, SHIFT_LINE4);
}

/* A line of a constant length: the common case is that it is the next one. */
static inline __attribute__((always_inline)) void
line_take(tern *t, const tern_msg *m, unsigned shift,
	  void (*last)(tern *t, const tern_msg *m, struct inbound *in))
{
	struct inbound *in = sequence_of(t)->in + tern_msg_src(m);
	uint64_t key = tern_msg_word(m, 0); /* cost: order read */
	/* No block has the number 0, which stands for none in `key`. */
	if (TERN_UNLIKELY(!key || key != in->key[line_kind(shift)])) {
		line_rare(t, m, shift); /* cost: order control */
		return;
	}
	char *at = in->at;
	memcpy(at, m->word + 1, (size_t)1 << shift);
	in->at = at + (1 << shift);
	in->key[line_kind(shift)] = key + 1;    /* cost: order write */
	if (TERN_UNLIKELY(key + 1 == in->last)) /* cost: order status */
		last(t, m, in);                 /* cost: fault control */
}

void on_sequence_line2(tern *t, const tern_msg *m)
{
	line_take(t, m, SHIFT_LINE2, line2_last);
}

void on_sequence_line4(tern *t, const tern_msg *m)
{
	line_take(t, m, SHIFT_LINE4, line4_last);
}

/* The packets that are missing, from the first one on. */
static uint64_t missing_of(struct inbound *in, uint64_t *missing)
{
	uint64_t packets = inbound_packets(in);
	lines_settle(in);
	memset(missing, 0, MISSING_WORDS * sizeof *missing);
	for (uint64_t i = 0; i < MISSING_BITS && in->next + i < packets; i++)
		if (!packet_came(in, in->next + i))
			missing[i / 64] |= UINT64_C(1) << i % 64;
	return in->next;
}

void on_sequence_end(tern *t, const tern_msg *m)
{
	struct inbound *in = &sequence_of(t)->in[tern_msg_src(m)];
	uint64_t words[3 + MISSING_WORDS] = { tern_msg_word(m, 0), EAGAIN };
	if (number_of(m) <= in->finished)
		words[1] = 0;
	else if (incoming_of(t, m))
		words[2] = missing_of(in, words + 3);
	else
		words[1] = EPROTO; /* it was never asked for */
	layer_reply(t->own, SEQUENCE_MISSING, NULL, 0, 3 + MISSING_WORDS, words);
}

void inbound_close(struct sequence *q)
{
	for (uint32_t r = 0; r < q->e->t->size; r++)
		incoming_drop(&q->in[r]);
}
