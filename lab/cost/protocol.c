/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocols of the study (src/layers/sequence) in steps, as Karamcheti and Chien define
 * them. Both ends are in one process, so a call that waits cannot be counted whole: the bench takes
 * its steps one after another, and each step says what a message is for that belongs to it.
 *
 * Shared memory keeps order. The lines of each two packets of a stream are therefore exchanged in
 * the ring before the destination polls: it sees every second packet too early, as over a network
 * that reorders, and no instruction of either side is different.
 */
#include <errno.h>
#include <string.h>

#include "lab/cost/counter.h"
#include "lab/cost/operation.h"

enum { KIND = 1, BYTES_MOST = 4096, ROUND = TERN_STREAM_WINDOW / 2 };

static _Alignas(64) char from[BYTES_MOST], into[BYTES_MOST];

static void *block_accept(tern *t, uint32_t rank, unsigned id, size_t len, void *arg)
{
	(void)t, (void)rank, (void)id, (void)len, (void)arg;
	return into;
}

static void block_end(tern *t, uint32_t rank, unsigned id, void *data, size_t len, void *arg)
{
	(void)t, (void)rank, (void)id, (void)data, (void)len, (void)arg;
}

static void stream_take(tern *t, uint32_t rank, unsigned id, unsigned n, const uint64_t *words,
			void *arg)
{
	(void)t, (void)rank, (void)id, (void)words, (void)n, (void)arg;
}

void bench_poll(tern *t, uint32_t n)
{
	int left = (int)n;
	COST_MARK();
	do {
		left -= tern_poll(t); /* cost: base call */
	} while (left > 0);           /* cost: program */
	COST_MARK();
}

/* -- The finite sequence --------------------------------------------------------------------- */

static unsigned block_shift(const struct bench *b)
{
	size_t packet = b->bytes / b->op->packets;
	return packet == 16 ? SHIFT_LINE2 : packet == 32 ? SHIFT_LINE4 : SHIFT_PAYLOAD;
}

void setup_block(struct bench *b)
{
	struct sequence *q = sequence_of(b->t[COST_SOURCE]);
	q->out[COST_DESTINATION].busy = true;
	b->shipment = shipment_of(q, COST_DESTINATION, KIND, from, b->bytes, block_shift(b));
	b->rc = tern_sequence_on(b->t[COST_DESTINATION], KIND, block_accept, block_end, NULL);
}

/* The sender takes an answer that it waits for, as the condition of its wait does. */
static void answer_take(struct bench *b, enum cost_feature feature,
			int (*take)(const struct shipment *s))
{
	const struct shipment *s = &b->shipment;
	bench_step(b, COST_SOURCE, feature);
	COST_MARK();
	int rc = take(s);
	COST_MARK();
	if (rc && !b->rc)
		b->rc = -EPROTO; /* another step than was counted */
}

/* Figure 3: ask, take, agree; the packets; the acknowledgement. */
void block_steps(struct bench *b)
{
	struct shipment *s = &b->shipment;
	tern *destination = b->t[COST_DESTINATION];
	uint32_t packets = b->op->packets;
	shipment_number(s);
	bench_step(b, COST_SOURCE, COST_BUFFER);
	COST_MARK();
	shipment_ask(s);
	COST_MARK();
	bench_step(b, COST_DESTINATION, COST_BUFFER);
	bench_poll(destination, 1);
	answer_take(b, COST_BUFFER, shipment_verdict);
	bench_step(b, COST_SOURCE, COST_BASE);
	COST_MARK();
	shipment_packets(s, packets);
	COST_MARK();
	bench_step(b, COST_DESTINATION, COST_BASE);
	bench_poll(destination, packets);
	answer_take(b, COST_FAULT, shipment_done);
}

/* -- The indefinite sequence ----------------------------------------------------------------- */

static void setup_stream(struct bench *b, unsigned group)
{
	b->rc = tern_stream_on(b->t[COST_DESTINATION], KIND, stream_take, NULL);
	if (!b->rc)
		b->rc = tern_stream_open(b->t[COST_SOURCE], COST_DESTINATION, KIND, TERN_WAY_FULL,
					 group, &b->stream);
}

void setup_ordered(struct bench *b)
{
	setup_stream(b, 1);
}

void setup_grouped(struct bench *b)
{
	setup_stream(b, b->op->packets < ROUND ? b->op->packets : ROUND);
}

/* Two packets, the second of which arrives first unless a leaf of the ring ends between them. */
static void pair_put(struct bench *b, unsigned n)
{
	const struct tern_lane *lane = &b->t[COST_SOURCE]->lane[COST_DESTINATION];
	const uint64_t words[] = { 1, 2, 3, 4 };
	tern_stream *s = b->stream;
	char *first = lane->tail, line[TERN_LINE];
	COST_MARK();
	tern_stream_put(s, n, words);
	tern_stream_put(s, n, words);
	COST_MARK();
	if (lane->tail != first + 2 * TERN_LINE)
		return;
	memcpy(line, first, sizeof line);
	memcpy(first, first + sizeof line, sizeof line);
	memcpy(first + sizeof line, line, sizeof line);
}

/* Figure 4: the packets, kept; those out of order put into order; the acknowledgements. */
void ordered_steps(struct bench *b)
{
	unsigned n = b->op->words / b->op->packets / 2;
	tern_stream *s = b->stream;
	for (unsigned left = b->op->packets, round; left; left -= round) {
		round = left < ROUND ? left : ROUND;
		bench_step(b, COST_SOURCE, COST_BASE);
		for (unsigned i = 0; i < round; i += 2)
			pair_put(b, n);
		bench_step(b, COST_DESTINATION, COST_BASE);
		bench_poll(b->t[COST_DESTINATION], round);
		bench_step(b, COST_SOURCE, COST_FAULT);
		COST_MARK();
		tern_stream_flush(s);
		COST_MARK();
	}
}
