/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocols of src/sequence: what a network costs that provides nothing, against one that provides everything. */
#include <tern/sequence.h>

#include "base/clock.h"
#include "tools/bench/words.h"
#include "tools/perf/perf.h"

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

static void stream_take(tern *t, uint32_t rank, unsigned id, const uint64_t *words, unsigned n, void *arg)
{
	(void)t, (void)rank, (void)id, (void)arg;
	raw_sink += n ? words[0] : 1;
}

static int sequence_open_test(struct player *p)
{
	int rc = words_register(p->t);
	if (!rc)
		rc = tern_sequence_on(p->t, KIND, block_accept, block_end, NULL);
	return rc ? rc : tern_stream_on(p->t, KIND, stream_take, NULL);
}

/* Both ranks: the first sends, by send(), and the other serves until all of it has come. */
static uint64_t timed(struct player *p, int (*send)(struct player *p, enum tern_way way, unsigned group),
		      enum tern_way way, unsigned group)
{
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 1;
	}
	uint64_t began = clock_ns();
	p->rc = send(p, way, group);
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return clock_ns() - began;
}

static int blocks_send(struct player *p, enum tern_way way, unsigned group)
{
	int rc = 0;
	(void)group;
	for (uint64_t i = 0; i < p->count && !rc; i++)
		rc = tern_sequence_send(p->t, 1, KIND, from, p->size, way);
	return rc;
}

static int packets_send(struct player *p, enum tern_way way, unsigned group)
{
	const uint64_t words[TERN_STREAM_WORDS] = { 1, 2, 3, 4 };
	tern_stream *s;
	int rc = tern_stream_open(p->t, 1, KIND, way, group, &s);
	if (rc)
		return rc;
	for (uint64_t i = 0; i < p->count && !rc; i++)
		rc = tern_stream_put(s, p->size, words);
	int closed = tern_stream_close(s);
	return rc ? rc : closed;
}

static double block_full(struct player *p)
{
	return (double)timed(p, blocks_send, TERN_WAY_FULL, 0) / (double)p->count;
}

static double block_plain(struct player *p)
{
	return (double)timed(p, blocks_send, TERN_WAY_PLAIN, 0) / (double)p->count;
}

static double stream_full(struct player *p)
{
	return (double)timed(p, packets_send, TERN_WAY_FULL, 1) / (double)p->count;
}

static double stream_group(struct player *p)
{
	return (double)timed(p, packets_send, TERN_WAY_FULL, GROUP) / (double)p->count;
}

static double stream_plain(struct player *p)
{
	return (double)timed(p, packets_send, TERN_WAY_PLAIN, 0) / (double)p->count;
}

const struct test test_block = {
	.name = "block",
	.purpose = "a block by tern_sequence_send, the full protocol",
	.size_name = "bytes",
	.size_most = BLOCK_MOST,
	.sizes = { 3, { 64, 4096, 65536 } },
	.unit = "ns",
	.ranks = 2,
	.cores = 2,
	.count = 200,
	.rounds = 31,
	.warm = 2,
	.open = sequence_open_test,
	.measure = block_full,
	.limit = { block_plain },
	.limit_name =
		"the same, plain: no handshake, offsets or acknowledgement; TERN_NET chooses the network",
};

#define STREAM_TEST                                                                                 \
	.size_name = "words", .size_most = TERN_STREAM_WORDS, .sizes = { 1, { 4 } }, .unit = "ns",  \
	.ranks = 2, .cores = 2, .count = 5000, .rounds = 31, .warm = 2, .open = sequence_open_test, \
	.limit = { stream_plain },                                                                  \
	.limit_name = "the same, plain: a packet is a message; TERN_NET chooses the network"

const struct test test_stream = {
	.name = "stream",
	.purpose = "a packet by tern_stream_put, each acknowledged",
	.measure = stream_full,
	STREAM_TEST,
};

const struct test test_stream_group = {
	.name = "stream-group",
	.purpose = "a packet by tern_stream_put, 16 acknowledged at once",
	.measure = stream_group,
	STREAM_TEST,
};
