/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of its own, messages of every kind, and what arrives compared with what was sent. */
#ifndef TERN_TEST_RING_PLAY_H
#define TERN_TEST_RING_PLAY_H

#include "ring/ring.h"

#include "lib/chance.h"
#include "lib/check.h"

enum { SOURCE = 0x1234, PEER = 7, HANDLER = 5 };

struct ring {
	_Alignas(64) char memory[(RING_LEAVES * REQUEST_LEAF_LINES + 16) * TERN_LINE];
	struct tern_lane lane;
	struct tern_inlet inlet;
	_Atomic uint64_t freed;
	_Atomic uint8_t heed;
	uint64_t sent, taken;    /* messages so far: the n-th follows from n */
	const tern_msg *handled; /* was taken last, and carries its payload */
};

static struct ring ring;
static char payload[TERN_LINE];

static inline void ring_open(uint32_t leaf_lines)
{
	memset(&ring, 0, sizeof ring);
	lane_open(&ring.lane, ring.memory, leaf_lines, &ring.freed, &ring.heed, SOURCE, PEER);
	inlet_open(&ring.inlet, ring.memory, leaf_lines, &ring.freed, SOURCE, TERN_KIND_REQUEST);
}

/* As if the ring had been in use for so many laps that their number is about to wrap. */
static inline void ring_age(unsigned laps_before_wrap)
{
	uint64_t lap = (UINT64_C(1) << (64 - TERN_LAP_SHIFT)) - laps_before_wrap;
	ring.lane.head = lap << TERN_LAP_SHIFT | (uint64_t)SOURCE << TERN_SRC_SHIFT;
	ring.inlet.expect = ring.lane.head;
}

/*
 * Kinds of messages: 0 to 8 words, and with a payload besides; then 0 to 6 words with a payload
 * behind them, where the ring takes it and has room for it, else with the same payload elsewhere.
 */
enum { KINDS = 2 * (TERN_WORDS_MAX + 1), ALL_KINDS = KINDS + TERN_LINE_WORDS + 1 };

/* Payloads of messages that may be in the ring: the n-th is that of message n. */
static uint64_t carried[4 * RING_LEAVES * REQUEST_LEAF_LINES][TERN_CARRY_MAX / 8];

static inline uint64_t *carried_of(uint64_t number)
{
	return carried[number % (sizeof carried / sizeof *carried)];
}

/* Each line of it begins like a header: of this lap, the next, the last one or none. */
static inline void carried_make(uint64_t number)
{
	uint64_t *words = carried_of(number);
	const uint64_t heads[] = { ring.lane.head, ring_next_lap(ring.lane.head),
				   ring_next_lap(ring_next_lap(ring.lane.head)), ~UINT64_C(0) };
	for (unsigned i = 0; i < TERN_CARRY_MAX / 8; i++)
		words[i] = chance_of(number, i);
	for (unsigned i = 0; i < TERN_CARRY_MAX / 8; i += TERN_LINE / 8)
		words[i] = heads[words[i] % 4] | HANDLER << TERN_ID_SHIFT | words[i] % 3;
}

static inline struct parcel parcel_make(unsigned kind, uint64_t number)
{
	unsigned n = kind < KINDS ? kind % (TERN_WORDS_MAX + 1) : kind - KINDS;
	uint64_t words[TERN_WORDS_MAX];
	for (unsigned i = 0; i < n; i++)
		words[i] = chance_of(number, i);
	struct parcel p = parcel_of(HANDLER, n, words);
	if (kind >= KINDS) {
		p.bits |= TERN_HEAD_PAYLOAD;
		p.payload = (const char *)carried_of(number);
		p.len = chance_of(number, 99) % (TERN_CARRY_MAX + 1);
	} else if (kind > TERN_WORDS_MAX) {
		p.bits |= TERN_HEAD_PAYLOAD;
		p.payload = payload;
		p.len = number % (TERN_PAYLOAD_MAX + 1);
	}
	return p;
}

/* Sends as tern_request() does: inline where it can. False without room. */
static inline bool ring_send_parcel(const struct parcel *p)
{
	const uint64_t *w = p->word;
	bool plain = !(p->bits & TERN_HEAD_PAYLOAD);
	if (plain && words_double(p->n) && tern_lane_double_(&ring.lane, HANDLER, p->n, w))
		return true;
	if (!plain || words_double(p->n) ||
	    !tern_lane_write_(&ring.lane, HANDLER, p->n, w[0], w[1], w[2], w[3], w[4], w[5])) {
		if (!lane_ready(&ring.lane))
			return false;
		lane_put(&ring.lane, p);
	}
	return true;
}

static inline bool ring_send(unsigned kind)
{
	struct parcel p = parcel_make(kind, ring.sent);
	if (kind >= KINDS) {
		carried_make(ring.sent);
		p.carried = lane_carries(&ring.lane, p.len);
	}
	bool sent = ring_send_parcel(&p);
	ring.sent += sent;
	return sent;
}

/* The next message as the poll would find it; NULL if nothing is there. */
static inline const tern_msg *ring_take(void)
{
	struct tern_inlet *in = &ring.inlet;
	if (ring.handled) {
		size_t len;
		tern_msg_data(ring.handled, &len);
		message_clear(ring.handled, (const char *)ring.handled + carry_bytes(len));
		ring.handled = NULL;
	}
	for (;;) {
		const tern_msg *m = inlet_at(in);
		uint64_t x = atomic_load_explicit(&m->head, memory_order_acquire) ^ in->expect;
		if (x >> TERN_LAP_SHIFT)
			return NULL;
		if (inlet_control(in, x) || inlet_grown(in, x))
			continue;
		CHECK_IS(x >> TERN_SRC_SHIFT, 0);
		CHECK_IS(head_double(x), words_double(x & TERN_HEAD_WORDS));
		CHECK_IS(x >> TERN_ID_SHIFT & 1023, HANDLER);
		in->cursor += message_bytes(inlet_at(in), x);
		if (message_carries(m, x))
			ring.handled = m;
		else if (!(x & TERN_HEAD_PIECE))
			CHECK(message_before(in->cursor) == m);
		return m;
	}
}

static inline bool message_is(const tern_msg *m, unsigned kind, uint64_t number)
{
	struct parcel p = parcel_make(kind, number);
	size_t len;
	const void *data = tern_msg_data(m, &len);
	bool good = tern_msg_count(m) == p.n && tern_msg_src(m) == SOURCE && len == p.len;
	good = good && (kind < KINDS ? data == p.payload : !memcmp(data, p.payload, len));
	for (unsigned i = 0; i < p.n; i++)
		good = good && tern_msg_word(m, i) == p.word[i];
	return good;
}

static inline bool ring_receive(unsigned kind)
{
	const tern_msg *m = ring_take();
	return m && message_is(m, kind, ring.taken++);
}

/* Bursts that reach from nothing to a full ring, read in bursts as uneven. */
static inline void random_mix(uint32_t leaf_lines, unsigned bursts, struct chance *c)
{
	enum { MOST = 4 * RING_LEAVES * REQUEST_LEAF_LINES };
	static uint8_t kinds[MOST];
	for (unsigned b = 0; b < bursts; b++) {
		unsigned range = chance_one_in(c, 4) ? ALL_KINDS : chance_one_in(c, 2) ? KINDS : 2;
		for (unsigned n = chance_below(c, 4 * leaf_lines * RING_LEAVES); n; n--) {
			unsigned kind = chance_below(c, range);
			uint64_t number = ring.sent;
			if (!ring_send(kind))
				break;
			kinds[number % MOST] = (uint8_t)kind;
		}
		uint64_t keep = chance_one_in(c, 3)
					? 0
					: chance_below(c, (uint32_t)(ring.sent - ring.taken) + 1);
		while (ring.sent - ring.taken > keep)
			REQUIRE(ring_receive(kinds[ring.taken % MOST]));
		REQUIRE(keep || !ring_take());
		REQUIRE(inlet_arrived(&ring.inlet) == inlet_has(&ring.inlet));
	}
}

static inline unsigned fill(unsigned kind)
{
	unsigned n = 0;
	while (ring_send(kind))
		n++;
	return n;
}

#endif
