/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocols of src/layers/sequence: what a network costs that provides nothing, against one
 * that provides everything.
 */
#include <tern/sequence.h>

#include "lab/bench/words.h"
#include "lab/perf/perf.h"

enum { KIND = 1, GROUP = 16, BLOCK_MOST = 1 << 20 };

static char there[BLOCK_MOST], from[BLOCK_MOST];

static void *block_accept(tern *t, uint32_t rank, unsigned id, size_t len, void *arg)
{
	(void)t, (void)rank, (void)id, (void)arg;
	return len <= sizeof there ? there : NULL;
}

static void block_end(tern *t, uint32_t rank, unsigned id, void *data, size_t len, void *arg)
{
	(void)t, (void)rank, (void)id, (void)data, (void)arg;
	raw_sink += len;
}

static void stream_take(tern *t, uint32_t rank, unsigned id, unsigned n, const uint64_t *words,
			void *arg)
{
	(void)t, (void)rank, (void)id, (void)arg;
	raw_sink += n ? words[0] : 1;
}

static int sequence_open_test(struct bench_rank *p)
{
	int rc = tern_sequence_on(p->t, KIND, block_accept, block_end, NULL);
	return rc ? rc : tern_stream_on(p->t, KIND, stream_take, NULL);
}

static REPEATS(blocks_send,
	       tern_sequence_send(p->t, 1, KIND, from, p->size, (enum tern_way)p->way));

/*
 * The way is how many packets are acknowledged at once; 0: the plain protocol, which knows
 * no acknowledgement.
 */
static int packets_send(struct bench_rank *p)
{
	const uint64_t words[TERN_STREAM_WORDS] = { 1, 2, 3, 4 };
	tern_stream *s;
	int rc = tern_stream_open(p->t, 1, KIND, p->way ? TERN_WAY_FULL : TERN_WAY_PLAIN,
				  (unsigned)p->way, &s);
	if (rc)
		return rc;
	for (uint64_t i = 0; i < p->count && !rc; i++)
		rc = tern_stream_put(s, p->size, words);
	int closed = tern_stream_close(s);
	return rc ? rc : closed;
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test sequence_tests[] = {
	{ "block", "a block by tern_sequence_send, the full protocol", "ns", "bytes", 0, BLOCK_MOST,
	  .sizes = { 3, { 64, 4096, 65536 } }, .count = 200, .rounds = 31,
	  .open = sequence_open_test, .measure = { blocks_send, PHASE_HANDLED, TERN_WAY_FULL },
	  .limit = { { blocks_send, PHASE_HANDLED, TERN_WAY_PLAIN } },
	  .limit_name =
		  "the same, plain: no handshake, offsets or acknowledgement; TERN_NET chooses the "
		  "network" },
	{ "stream", "a packet by tern_stream_put, each acknowledged", "ns", "words", 0,
	  TERN_STREAM_WORDS, .sizes = { 1, { 4 } }, .count = 5000, .rounds = 31,
	  .open = sequence_open_test, .measure = { packets_send, PHASE_HANDLED, 1 },
	  .limit = { { packets_send, PHASE_HANDLED } },
	  .limit_name = "the same, plain: a packet is a message; TERN_NET chooses the network" },
	{ "stream-group", "a packet by tern_stream_put, 16 acknowledged at once", "ns",
	  .like = "stream", .measure.way = GROUP },
	{ .like = NULL },
};
