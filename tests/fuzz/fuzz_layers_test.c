/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of Tern's own layers with words and payloads that no good peer sends. Rank 1 sends them,
 * in one process with rank 0, which has all kinds of operations under way meanwhile: whatever
 * comes, it stays alive, and no code that it hands to its program is a positive one.
 */
#include "fuzz.h"
#include "lib/handed.h"

#include <tern/async.h>
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/mem.h>
#include <tern/send.h>
#include <tern/sequence.h>
#include <tern/thread.h>

#include "chan/pipe.h"
#include "core/layer.h"
#include "mem/mem.h"
#include "net/udp/udp.h"
#include "sequence/sequence.h"

enum { OPS = 32, HEAP = 1 << 16, SAY = 0 };

static tern *t[2];
static char *heap[2];
static tern_op op[OPS];
static char room[OPS][256];
static char block[HEAP];
static tern_stream *stream; /* of rank 0's, to rank 1 */
static unsigned ops;
static struct input {
	const uint8_t *bytes;
	size_t len;
} in;

static unsigned byte(void)
{
	return fuzz_byte(&in.bytes, &in.len);
}

/* -- Rank 1 ------------------------------------------------------------------------------- */

/* A word: some address, a small number, a name of a slot or a record, or just bytes. */
static uint64_t word(void)
{
	unsigned kind = byte(), low = byte();
	uint64_t bits = 0;
	switch (kind % 8) {
	case 0:
		return handed_addr(t[0], heap[0]) + low;
	case 1:
		return handed_addr(t[1], heap[1]) + low;
	case 2:
		return low;
	case 3:
		return low | (uint64_t)byte()
				     << 16; /* a record's name, or what a meta word begins with */
	case 4:
		return low | (uint64_t)byte() << 8; /* a slot's name */
	case 5:
		return low | (uint64_t)byte() << 32;
	case 6:
		return UINT64_MAX - low;
	default:
		for (unsigned i = 0; i < 8; i++)
			bits = bits << 8 | byte();
		return bits;
	}
}

struct message {
	unsigned id, n;
	uint64_t word[TERN_WORDS_MAX];
	const void *data;
	size_t len;
};

static struct message message_make(void)
{
	struct message m = { .id = byte() % HANDLERS_OWN };
	unsigned n = byte();
	m.n = n % (TERN_WORDS_MAX + 1);
	for (unsigned i = 0; i < m.n; i++)
		m.word[i] = word();
	if (n & 128)
		m.data = fuzz_part(&in.bytes, &in.len, &m.len);
	return m;
}

/* As the reply to a request of rank 0's. */
static void say(tern *at, const tern_msg *msg)
{
	(void)msg;
	struct message m = message_make();
	layer_reply(at->own, m.id, m.data, m.len, m.n, m.word);
}

static void message_send(void)
{
	struct message m = message_make();
	layer_request(t[1]->own, 0, m.id, m.data, m.len, m.n, m.word);
}

/* A description of scattered memory, mostly well-formed, behind a put's or a get's header. */
static void parts_send(void)
{
	uint64_t payload[64];
	unsigned n = 0;
	for (unsigned rows = 1 + byte() % 4; rows; rows--) {
		uint64_t count = byte() % 4 ? byte() % 4 : word();
		payload[n++] = word();
		payload[n++] = count << 16 | byte();
		if (count > 1)
			payload[n++] = byte() % 4 ? byte() : word();
	}
	size_t bytes = byte();
	const uint64_t arg[] = { word(), byte() % 4 ? n : word(), bytes };
	size_t len = n * sizeof *payload + bytes;
	memset(payload + n, 0, sizeof payload - n * sizeof *payload);
	layer_request(t[1]->own, 0, byte() % 2 ? MEM_PUT_PARTS : MEM_GET_PARTS, payload,
		      len < sizeof payload ? len : sizeof payload, 3, arg);
}

/* What rank 1 has in its heap, where rank 0 may be made to look for a channel's ring. */
static void heap_write(void)
{
	size_t at = (byte() << 8 | byte()) * 8 % (HEAP - 256), part;
	const uint8_t *from = fuzz_part(&in.bytes, &in.len, &part);
	memcpy(heap[1] + at, from, part);
}

/* -- Rank 0 ------------------------------------------------------------------------------- */

static void mem_begin(unsigned what, tern_op *o, char *to)
{
	tern_addr there = handed_addr(t[1], heap[1]);
	static const size_t rows[2] = { 4, 3 };
	static const ptrdiff_t apart[2] = { 16, 80 };
	static tern_part far[OPS], near[OPS]; /* they belong to the operation */
	switch (what % 7) {
	case 5:
		far[ops - 1] = (tern_part){ { .addr = there + byte() }, 8, 2, rows, apart };
		near[ops - 1] = (tern_part){ .base = to, .run = 96 };
		if (byte() & 1)
			(void)!tern_put_parts_start(t[0], &far[ops - 1], 1, &near[ops - 1], 1, o);
		else
			(void)!tern_get_parts_start(t[0], &near[ops - 1], 1, &far[ops - 1], 1, o);
		break;
	case 0:
		(void)!tern_get_start(t[0], to, there + byte(), byte(), o);
		break;
	case 1:
		(void)!tern_put_start(t[0], there + byte(), to, byte(), o);
		break;
	case 2:
		(void)!tern_amo_start(t[0], there, (enum tern_amo)(byte() % 7), 1,
				      (uint64_t *)(void *)to, o);
		break;
	case 3:
		(void)!tern_get_when_start(t[0], to, there, byte(),
					   &(tern_when){ .flag = there + 512, .least = 1 + byte() },
					   o);
		break;
	case 4:
		(void)!tern_block_get_start(t[0], to, 8, 1,
					    &(tern_block){ .name = byte() % 3,
							   .offset = byte(),
							   .stride = byte(),
							   .run = 8,
							   .count = byte() % 32 },
					    o);
		break;
	default:
		(void)!tern_async_get_start(t[0], to, there, byte(), o);
	}
}

static void msg_begin(unsigned what, tern_op *o, char *at)
{
	uint32_t id = byte() % 4;
	unsigned flags = byte();
	if (what & 1)
		(void)!tern_recv_start(t[0],
				       &(tern_match){ .rank = flags & 4 ? TERN_RANK_ANY : 1,
						      .flags = flags & 1 ? TERN_RECV_UPTO : 0,
						      .id = id },
				       at, byte(), NULL, o);
	else
		(void)!tern_send_start(t[0], 1, id, at, byte(), flags & 1 ? TERN_SEND_SYNC : 0, o);
}

static int filler(tern *at, tern_out *out, void *arg)
{
	(void)at, (void)out, (void)arg;
	return 0;
}

/*
 * The steps of a block's sender without its waits, or a packet of a stream: OPS of them are fewer
 * than a window.
 */
static void sequence_begin(unsigned what)
{
	struct sequence *q = sequence_of(t[0]);
	static const unsigned shifts[] = { SHIFT_LINE2, SHIFT_LINE4, SHIFT_PAYLOAD };
	unsigned shape = byte();
	struct shipment s = shipment_of(q, 1, shape % 3, heap[0], HEAP / 2, shifts[shape / 3 % 3]);
	static const unsigned questions[] = { SEQUENCE_ASK, SEQUENCE_END, 0 };
	if (what & 1) {
		(void)!tern_stream_put(stream, what % 5, (uint64_t[TERN_STREAM_WORDS]){ 0 });
		return;
	}
	s.out->busy = true;
	if (byte() % 2)
		shipment_number(&s);
	unsigned question = questions[byte() % 3];
	if (!question)
		shipment_plain(&s);
	(void)!(question == SEQUENCE_END ? shipment_say(&s, question) : shipment_ask(&s));
	(void)!shipment_packet(&s, byte() % 4);
}

static void layer_begin(unsigned what, tern_op *o)
{
	switch (what % 5) {
	case 4:
		sequence_begin(what / 5);
		break;
	case 0:
		(void)!tern_async_send_start(t[0], 1, 0, filler, NULL, o);
		break;
	case 1:
		(void)!tern_buf_send_start(t[0], 1, byte() % 3, room[0], byte(), TERN_BUF_NOWAIT,
					   o);
		break;
	case 2:
		(void)!tern_spawn(t[0], 1, 0, NULL, NULL, 1, 2);
		break;
	default:
		(void)!tern_request(t[0], 1, SAY, 0);
	}
}

/* What a program does with what has come. */
static void look(unsigned what)
{
	uint32_t src;
	size_t len;
	tern_envelope env;
	void *got = handed_buf(t[0], what % 3, TERN_BUF_NOWAIT, &src, &len);
	if (got)
		(void)!tern_buf_free(t[0], got);
	(void)!tern_probe(t[0], &(tern_match){ .rank = TERN_RANK_ANY, .id = what % 4 }, &env);
}

static void begin(void)
{
	unsigned what = byte();
	if (ops == OPS)
		return;
	tern_op *o = &op[ops];
	char *to = room[ops++];
	switch (what & 3) {
	case 0:
		mem_begin(what >> 2, o, to);
		break;
	case 1:
		msg_begin(what >> 2, o, to);
		break;
	case 2:
		layer_begin(what >> 2, o);
		break;
	default:
		look(what >> 2);
	}
}

/* -- The whole ------------------------------------------------------------------------------ */

static int drainer(tern *at, tern_incoming *m, void *arg)
{
	uint64_t value;
	(void)at, (void)arg;
	return tern_chan_get(m->in, &value, sizeof value);
}

static uint64_t thread(tern *at, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)at;
	return word[0];
}

static void *accept(tern *at, uint32_t from, unsigned id, size_t len, void *arg)
{
	(void)at, (void)from, (void)id, (void)arg;
	return len <= sizeof block ? block : NULL;
}

static void block_end(tern *at, uint32_t from, unsigned id, void *data, size_t len, void *arg)
{
	(void)at, (void)from, (void)id, (void)arg;
	REQUIRE(data == block && len <= sizeof block);
}

static void packet(tern *at, uint32_t from, unsigned id, unsigned n, const uint64_t *words,
		   void *arg)
{
	(void)at, (void)from, (void)id, (void)words, (void)arg;
	REQUIRE(n <= TERN_STREAM_WORDS);
}

static void sequences_open(void)
{
	for (int r = 0; r < 2; r++) {
		REQUIRE(tern_sequence_on(t[r], 0, accept, block_end, NULL) == 0);
		REQUIRE(tern_stream_on(t[r], 0, packet, NULL) == 0);
	}
	REQUIRE(tern_stream_open(t[0], 1, 0, TERN_WAY_FULL, 4, &stream) == 0);
}

static void job_open(bool udp)
{
	static uint64_t named[64];
	static void *where = named;
	char why[200];
	setenv("TERN_NET", udp && udp_ops.usable(why, sizeof why) ? "udp" : "auto", 1);
	setenv("TERN_GRACE", "1", 1);
	setenv("TERN_HEAP", "4M", 1);
	setenv("TERN_DELIVERY", "poll", 1);
	REQUIRE(tern_open_local(2, t) == 0);
	memset(op, 0, sizeof op);
	ops = 0;
	for (int r = 0; r < 2; r++) {
		REQUIRE((heap[r] = handed_alloc(t[r], HEAP)) != NULL);
		heap[r] += TERN_CHAN_LEAF - (uintptr_t)heap[r] % TERN_CHAN_LEAF;
		REQUIRE(tern_thread_on(t[r], 0, thread, NULL) == 0 &&
			tern_async_on(t[r], 0, drainer, NULL) == 0);
		REQUIRE(tern_buf_alloc(t[r], 0, 64, 4, 0) == 0);
		REQUIRE(tern_buf_alloc(t[r], 1, 64, 4, TERN_BUF_ORDER | TERN_BUF_SPILL) == 0);
		REQUIRE(tern_block_name(t[r], 1, &where, sizeof named) == 0);
	}
	sequences_open();
	REQUIRE(tern_on(t[1], SAY, say) == 0);
}

static void serve(void)
{
	for (int i = 0; i < 2; i++)
		for (int r = 0; r < 2; r++)
			(void)!tern_poll(t[r]);
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	in = (struct input){ bytes, len };
	job_open(byte() & 1);
	while (in.len) {
		unsigned what = byte();
		if (what % 4 == 0)
			begin();
		else if (what % 4 == 1)
			heap_write();
		else if (what % 8 == 2)
			parts_send();
		else
			message_send();
		serve();
	}
	for (unsigned i = 0; i < ops; i++)
		REQUIRE(op[i].error <= 0);
	REQUIRE(sequence_of(t[0])->out[1].verdict <= 0);
	for (int r = 1; r >= 0; r--)
		(void)!tern_close(t[r]);
}

FUZZ_TARGET(layers, 100)
