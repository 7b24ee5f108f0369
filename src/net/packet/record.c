/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages become records: a head of 16 bits, the words (behind their number, where that is more
 * than 6), and what a payload has in this packet. A
 * payload that does not fit goes on in the next packet, in a record without words. Lap and source
 * are not sent: the receiver knows both, and better.
 */
#include <string.h>

#include "net/packet/packet.h"
#include "net/packet/service.h"

enum {
	HEAD = 2,
	PAYLOAD_HEAD = 8,
	WORTHWHILE = 64,              /* bytes of a payload that make a piece of it */
	LARGE = 2 * TERN_PAYLOAD_MAX, /* datagrams that take any payload whole, and may have room */
};

/* -- Walking along a ring over its control lines -------------------------------------------- */

/* Over a credit line, or the rest of a line that is padded, as the ring's consumer would go. */
static bool place_control(const struct out *o, struct place *p, uint64_t difference)
{
	/* Nobody asks which leaves this has passed: an acknowledgement frees them. */
	_Atomic uint64_t nobody;
	struct tern_inlet in = { .cursor = p->cursor,
				 .expect = p->expect,
				 .leaf = p->leaf,
				 .base = o->base,
				 .leaf_lines = o->leaf_lines,
				 .freed = &nobody };
	if (!inlet_control(&in, difference))
		return false;
	p->cursor = in.cursor;
	p->expect = in.expect;
	p->leaf = in.leaf;
	return true;
}

const tern_msg *place_look_on(const struct out *o, struct place *p)
{
	for (;;) {
		const tern_msg *m = (const tern_msg *)(const void *)p->cursor;
		uint64_t x = atomic_load_explicit(&m->head, memory_order_acquire) ^ p->expect;
		if (x >> TERN_LAP_SHIFT)
			return NULL;
		if (!(x & TERN_HEAD_CONTROL) || head_double(x))
			return m;
		if (!place_control(o, p, x))
			return NULL;
	}
}

/* -- Writing ---------------------------------------------------------------------------------- */

static void put16(struct packet *k, uint64_t value)
{
	uint16_t v = (uint16_t)value;
	memcpy(k->end, &v, sizeof v);
	k->end += sizeof v;
}

static void put_bytes(struct packet *k, const void *from, size_t len)
{
	memcpy(k->end, from, len);
	k->end += len;
}

/* Bytes of the packet behind PACKET_FRONT, wherever they lie. */
static size_t record_used(const struct packet *k)
{
	return (size_t)(k->end - k->bytes) - PACKET_FRONT + k->named;
}

static void payload_name(struct packet *k, const void *data, size_t len)
{
	struct iovec *last = &k->part[k->parts - 1];
	last->iov_len = (size_t)(k->end - (unsigned char *)last->iov_base);
	k->part[k->parts++] = (struct iovec){ (void *)(uintptr_t)data, len };
	k->part[k->parts++] = (struct iovec){ k->end, 0 };
	k->named += len;
}

static bool payload_named(const struct path *p, size_t here)
{
	return here > PACKET_COPY && !p->net->copies;
}

/*
 * Bytes to skip before a payload so that it begins a line of the datagram and has a whole line
 * before it that is not of another: then it can be a block where it lies. None when a packet is
 * sent again, which must not grow.
 */
static size_t payload_gap(const struct path *p, const struct packet *k, size_t need)
{
	size_t used = p->front + record_used(k);
	size_t gap = -(used + need) % TERN_LINE;
	if (k->again)
		return 0;
	return k->named && gap + need < TERN_LINE ? gap + TERN_LINE : gap;
}

/*
 * Whether the block of `data` lies behind the payload that the packet ends with. Then its record is
 * written into its own line, and both go in one part: many parts cost more than many bytes.
 */
static bool payload_follows(const struct packet *k, const char *data, size_t need)
{
	const struct iovec *last = &k->part[k->parts - 1], *named = last - 1;
	return k->parts > 1 && last->iov_base == k->end && need <= BLOCK_HEAD &&
	       (const char *)named->iov_base + named->iov_len + TERN_LINE == data;
}

/* What a record says of a payload, and where and how that is written. */
struct piece {
	const char *data;
	size_t len, offset, here, gap;
	bool follows;
};

static void payload_put(struct path *p, struct packet *k, const struct piece *w)
{
	put16(k, w->len);
	put16(k, w->offset);
	put16(k, w->here);
	put16(k, w->gap);
	if (w->follows) {
		k->part[k->parts - 2].iov_len += TERN_LINE + w->here;
		k->named += TERN_LINE + w->here;
		k->end = k->part[k->parts - 1].iov_base;
		return;
	}
	memset(k->end, 0, w->gap);
	k->end += w->gap;
	if (payload_named(p, w->here))
		payload_name(k, w->data + w->offset, w->here);
	else
		put_bytes(k, w->data + w->offset, w->here);
}

/*
 * How much of a payload goes into `left` bytes behind a record that needs `need`; false if that is
 * nothing.
 */
static bool payload_fit(const struct path *p, const struct packet *k, struct piece *w, size_t need,
			size_t left)
{
	size_t rest = w->len - w->offset, some = rest < WORTHWHILE ? rest : WORTHWHILE;
	if (left < need + some)
		return false;
	w->here = rest < left - need ? rest : left - need;
	if (w->here < w->len && !w->offset && k->records && p->most > LARGE)
		return false; /* it goes whole in the next, and need not be put together */
	if (!payload_named(p, w->here))
		return true;
	if (w->here == w->len) { /* a piece is put together elsewhere, and may lie anywhere */
		w->follows = payload_follows(k, w->data, need);
		w->gap = w->follows ? TERN_LINE - need : payload_gap(p, k, need);
		if (left >= need + w->gap + w->len && w->follows)
			return true;
		w->follows = false;
		w->gap = left >= need + w->gap + w->len ? w->gap : 0;
	}
	return k->parts + 2 <= PACKET_PARTS;
}

/* What a record needs for its head and `n` words. */
static size_t words_need(unsigned n)
{
	return HEAD + n * sizeof(uint64_t) + (words_double(n) ? sizeof(uint16_t) : 0);
}

/* How many there are, and those of the first line; the others follow. */
static __attribute__((noinline)) void words_put_double(struct packet *k, const tern_msg *m,
						       unsigned n)
{
	put16(k, n);
	put_bytes(k, m->word, sizeof m->word);
	put_bytes(k, m[1].word, (n - TERN_LINE_WORDS) * sizeof(uint64_t));
}

/* The head of a record, and the words. */
static void words_put(struct packet *k, unsigned stream, const tern_msg *m, unsigned n,
		      unsigned payload)
{
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	unsigned field = words_double(n) ? RECORD_WORDS_MORE : n;
	put16(k, (head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS | field << RECORD_WORDS_SHIFT |
			 (stream == STREAM_REPLIES ? RECORD_IS_REPLY : 0) | payload);
	if (TERN_UNLIKELY(words_double(n)))
		words_put_double(k, m, n);
	else
		put_bytes(k, m->word, n * sizeof(uint64_t));
	if (stream < k->class)
		k->class = (enum packet_class)stream;
}

/* A message without a payload; false if `left` bytes are not enough. */
static bool plain_put(struct packet *k, unsigned stream, struct place *at, const tern_msg *m,
		      size_t left)
{
	unsigned n = tern_msg_count(m);
	if (left < words_need(n))
		return false;
	words_put(k, stream, m, n, 0);
	place_pass(at, m);
	return true;
}

/*
 * Writes the message at `at`, or as much of its payload as fits into `most` bytes; false if that is
 * nothing. `at` is passed if all of it was written.
 */
static bool message_put(struct path *p, struct packet *k, unsigned stream, struct place *at,
			const tern_msg *m, size_t most)
{
	size_t left = most - record_used(k);
	struct piece w = { .offset = at->offset };
	w.data = tern_msg_data(m, &w.len);
	if (!w.data)
		return plain_put(k, stream, at, m, left);
	unsigned n = at->offset ? 0 : tern_msg_count(m);
	if (!payload_fit(p, k, &w, words_need(n) + PAYLOAD_HEAD, left))
		return false;
	if (w.follows)
		k->end = block_of(w.data)->head;
	words_put(k, stream, m, n, RECORD_HAS_PAYLOAD);
	payload_put(p, k, &w);
	if (w.offset + w.here < w.len)
		at->offset += (uint32_t)w.here;
	else
		place_pass(at, m);
	return true;
}

/* Whether a message, and a payload, may be begun at its receiver. */
static bool message_allowed(struct out *o, const struct place *at, const tern_msg *m)
{
	if (at->offset)
		return true;
	if (o->sent >= o->may)
		return false;
	if (TERN_UNLIKELY(o->by_line) && words_double(tern_msg_count(m)) && o->sent >= --o->may)
		return false;
	if (!tern_msg_data(m, NULL))
		return true;
	if (o->blocks >= o->allowed)
		return false;
	o->blocks++;
	return true;
}

/* Writes messages from o->next on, as many as fit and may be sent. */
static void stream_fill(struct path *p, struct packet *k, unsigned stream, size_t most)
{
	struct out *o = &p->out[stream];
	struct slice *s = &k->flight.slice;
	const tern_msg *m;
	while (k->records < p->net->records && (m = place_look(o, &o->next))) {
		uint64_t blocks = o->blocks;
		if (!message_allowed(o, &o->next, m)) {
			k->full |= k->records >
				   0; /* the next packet may have an allowance of its own */
			break;
		}
		if (!message_put(p, k, stream, &o->next, m, most)) {
			o->blocks = blocks;
			k->full = true;
			break;
		}
		k->records++;
		s->messages[stream] += o->next.offset == 0;
		o->sent += o->next.offset == 0;
	}
	k->full |= k->records == p->net->records;
}

static inline void stream_write(struct path *p, struct packet *k, unsigned stream, size_t most)
{
	struct out *o = &p->out[stream];
	struct slice *s = &k->flight.slice;
	if (o->base)
		place_settle(o, &o->next);
	s->from[stream] = o->next;
	s->begin[stream] = (uint32_t)o->sent;
	if (o->base && place_has(&o->next))
		stream_fill(p, k, stream, most);
	s->to[stream] = (struct until){ o->next.leaf, o->next.offset };
}

static void news_put(struct packet *k)
{
	const struct slice *s = &k->flight.slice;
	if (!s->news)
		return;
	put16(k, RECORD_IS_NEWS | s->news);
	put_bytes(k, &s->value, sizeof s->value);
}

/* The news that is told next; a wish of flow's is fulfilled by any packet. */
static void news_choose(struct path *p, struct slice *s)
{
	if (!p->pending_control)
		return;
	s->news = (uint8_t)__builtin_ctz(p->pending_control);
	p->pending_control &= p->pending_control - 1;
	s->value = s->news == NEWS_ASK       ? p->confirm.asked
		   : s->news == NEWS_CONFIRM ? p->confirm.answer
					     : p->token;
}

bool record_write(struct path *p, struct packet *k, size_t most)
{
	news_choose(p, &k->flight.slice);
	news_put(k);
	stream_write(p, k, STREAM_REPLIES, most);
	stream_write(p, k, STREAM_REQUESTS, most);
	return record_used(k) > 0;
}

/*
 * The bytes of a record that carries a payload up to `offset`, and of what the packet has already.
 */
static size_t record_until(const struct packet *k, const struct place *at, const tern_msg *m,
			   uint32_t offset)
{
	unsigned n = at->offset ? 0 : tern_msg_count(m);
	return record_used(k) + words_need(n) + PAYLOAD_HEAD + offset - at->offset;
}

/*
 * Counts messages and does not compare places: a place before a credit line, or a padded rest of a
 * line, and the one behind it are the same, and which of the two a slice has depends on what had
 * been written when it was made.
 */
static void stream_again(struct path *p, struct packet *k, unsigned stream)
{
	const struct slice *s = &k->flight.slice;
	const struct out *o = &p->out[stream];
	struct place at = s->from[stream];
	const tern_msg *m;
	for (unsigned n = s->messages[stream]; n && (m = place_look(o, &at)); n--)
		message_put(p, k, stream, &at, m, DATAGRAM_MAX);
	if (s->to[stream].offset > at.offset && (m = place_look(o, &at)))
		message_put(p, k, stream, &at, m, record_until(k, &at, m, s->to[stream].offset));
}

void record_again(struct path *p, struct packet *k)
{
	news_put(k);
	stream_again(p, k, STREAM_REPLIES);
	stream_again(p, k, STREAM_REQUESTS);
}

/*
 * Gives back the blocks of messages that end in the packet: of those that also begin in it, or of
 * the one that does not.
 */
static void blocks_free(struct path *p, const struct slice *s, unsigned stream, bool whole)
{
	const struct out *o = &p->out[stream];
	struct place at = s->from[stream];
	const tern_msg *m;
	for (unsigned n = s->messages[stream]; n && (m = place_look(o, &at)); n--) {
		const void *data = tern_msg_data(m, NULL);
		bool begun = at.offset == 0;
		place_pass(&at, m);
		if (data && begun == whole)
			block_set(block_of(data), BLOCK_FREE);
	}
}

void record_landed(struct path *p, const struct slice *s)
{
	const struct service *flow = p->net->flow;
	if (flow && flow->keeps)
		return; /* it has come, but may have been refused */
	for (unsigned stream = 0; stream < STREAMS; stream++)
		blocks_free(p, s, stream, true);
}

void record_acked(struct path *p, const struct slice *s)
{
	const struct service *flow = p->net->flow;
	if (flow && flow->keeps)
		return; /* it has come, but may have been refused */
	for (unsigned stream = 0; stream < STREAMS; stream++) {
		struct out *o = &p->out[stream];
		if (s->from[stream].offset) /* a packet before this one had the rest of it */
			blocks_free(p, s, stream, false);
		o->acked += s->messages[stream];
		if (o->base && !(flow && flow->grants))
			atomic_store_explicit(o->freed, s->to[stream].leaf, memory_order_release);
	}
}
