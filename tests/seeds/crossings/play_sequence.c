/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks and streams. Those of one rank to another keep their order. */
#include <stdatomic.h>

#include <tern/sequence.h>

#include "play.h"

enum { BLOCKS = 3, STREAMS = 4 };

/* What comes from a rank: which step, which one of it. */
static struct inflow {
	unsigned block_step, block_i, packet_step, packet_i;
	bool refused;
	_Atomic unsigned blocks, packets;
	char room[LONGEST_BLOCK]; /* no malloc(), in the middle of which an interrupt may come */
} inflow[RANKS_MOST];

static const struct step *now_from(enum kind kind, uint32_t from, unsigned *step, unsigned *i)
{
	for (; *step < program.steps; ++*step, *i = 0) {
		const struct step *s = &program.step[*step];
		if (s->kind == kind && s->from == from && s->to == me && *i < s->count)
			return s;
	}
	return NULL;
}

static enum tern_way way_of(const struct step *s)
{
	return s->form ? TERN_WAY_FULL : TERN_WAY_AUTO;
}

/* -- Blocks ----------------------------------------------------------------------------------- */

static const struct step *block_now(uint32_t src)
{
	return now_from(BLOCK, src, &inflow[src].block_step, &inflow[src].block_i);
}

/* Now and then there is no room at first: the sender asks again. */
static void *block_accept(tern *own, uint32_t src, unsigned id, size_t len, void *arg)
{
	const struct step nothing = { .kind = BLOCK, .from = src, .to = me };
	const struct step *s = block_now(src);
	(void)own, (void)id, (void)arg;
	if (!s) {
		wrong(&nothing, "a block came that nobody sends");
		return NULL;
	}
	number_is(s, "the length of a block", len, s->len);
	bool refuse = s->other && !inflow[src].refused;
	inflow[src].refused = refuse;
	return refuse ? NULL : inflow[src].room;
}

static void block_end(tern *own, uint32_t src, unsigned id, void *data, size_t len, void *arg)
{
	const struct step *s = block_now(src);
	(void)own, (void)arg;
	if (!s)
		return;
	number_is(s, "the kind of a block", id, BLOCKS);
	number_is(s, "the place of a block", (uintptr_t)data, (uintptr_t)inflow[src].room);
	if (number_is(s, "the length of a block", len, s->len))
		bytes_are(s, "a block", data, 0, len, message_number(s, inflow[src].block_i));
	inflow[src].block_i++;
	atomic_fetch_add(&inflow[src].blocks, 1);
}

static void block_send(const struct step *s, unsigned i)
{
	char *data = malloc(s->len + 1);
	content_fill(data, 0, s->len, message_number(s, i));
	code_is(s, "tern_sequence_send()",
		tern_sequence_send(t, s->to, BLOCKS, data, s->len, way_of(s)), 0);
	free(data);
}

/* -- Streams ---------------------------------------------------------------------------------- */

static void packet_come(tern *own, uint32_t src, unsigned id, unsigned n, const uint64_t *words,
			void *arg)
{
	const struct step nothing = { .kind = STREAM, .from = src, .to = me };
	struct inflow *in = &inflow[src];
	const struct step *s = now_from(STREAM, src, &in->packet_step, &in->packet_i);
	(void)own, (void)id, (void)arg;
	if (!s) {
		wrong(&nothing, "a packet came that nobody puts");
		return;
	}
	number_is(s, "the words of a packet", n, s->words % (TERN_STREAM_WORDS + 1));
	for (unsigned k = 0; k < n; k++)
		number_is(s, "a word of a packet", words[k],
			  content_of(message_number(s, in->packet_i), k));
	in->packet_i++;
	atomic_fetch_add(&in->packets, 1);
}

static void stream_send(const struct step *s)
{
	const unsigned groups[] = { 0, 1, 2, 7, TERN_STREAM_WINDOW / 2 };
	uint64_t word[TERN_STREAM_WORDS];
	tern_stream *out, *second;
	int rc = tern_stream_open(t, s->to, STREAMS, way_of(s), groups[s->other], &out);
	if (!code_is(s, "tern_stream_open()", rc, 0))
		return;
	code_is(s, "a stream that is open",
		tern_stream_open(t, s->to, STREAMS, way_of(s), 0, &second), -EEXIST);
	for (unsigned i = 0; i < s->count; i++) {
		for (unsigned k = 0; k < TERN_STREAM_WORDS; k++)
			word[k] = content_of(message_number(s, i), k);
		code_is(s, "tern_stream_put()",
			tern_stream_put(out, s->words % (TERN_STREAM_WORDS + 1), word), 0);
		if (i % 100 == 99)
			code_is(s, "tern_stream_flush()", tern_stream_flush(out), 0);
	}
	code_is(s, "tern_stream_close()", tern_stream_close(out), 0);
}

/* -- Both ------------------------------------------------------------------------------------- */

static int all_have_come(tern *own, void *arg)
{
	const struct step *until = arg;
	unsigned blocks[RANKS_MOST] = { 0 }, packets[RANKS_MOST] = { 0 };
	(void)own;
	for (unsigned k = 0; k < until->number; k++) {
		const struct step *s = &program.step[k];
		if (s->kind == BLOCK && s->to == me)
			blocks[s->from] += s->count;
		if (s->kind == STREAM && s->to == me)
			packets[s->from] += s->count;
	}
	for (uint32_t r = 0; r < program.ranks; r++)
		if (!step_has(gone, r) && (atomic_load(&inflow[r].blocks) < blocks[r] ||
					   atomic_load(&inflow[r].packets) < packets[r]))
			return 0;
	return 1;
}

void sequence_check(const struct step *s)
{
	struct step until = *s;
	code_is(s, "waiting for blocks and packets", tern_wait_until(t, all_have_come, &until), 0);
}

void sequence_play(const struct step *s)
{
	struct step until = *s;
	until.number++;
	for (unsigned i = 0; i < s->count && s->from == me && s->kind == BLOCK; i++)
		block_send(s, i);
	if (s->from == me && s->kind == STREAM)
		stream_send(s);
	if (s->to == me && waits_here(s))
		sequence_check(&until);
}

void sequence_open(void)
{
	const struct step s = { .kind = BLOCK };
	code_is(&s, "tern_sequence_on()",
		tern_sequence_on(t, BLOCKS, block_accept, block_end, NULL), 0);
	code_is(&s, "tern_stream_on()", tern_stream_on(t, STREAMS, packet_come, NULL), 0);
}
