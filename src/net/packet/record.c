/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base write */
/*
 * Messages become records: a head of 16 bits, the words, and what a payload has in this packet. A payload
 * that does not fit goes on in the next packet, in a record without words. Lap and source are
 * not sent: the receiver knows both, and better.
 */
#include <string.h>

#include "net/packet/packet.h"

enum { HEAD = 2, PAYLOAD_HEAD = 6, WORTHWHILE = 64 /* bytes of a payload that make a piece of it */ };

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

static void payload_put(struct path *p, struct packet *k, const char *data, size_t len, size_t offset,
			size_t here)
{
	put16(k, len);
	put16(k, offset);
	put16(k, here);
	if (payload_named(p, here))
		payload_name(k, data + offset, here);
	else
		put_bytes(k, data + offset, here);
}

/*
 * Writes the message at `at`, or as much of its payload as fits into `most` bytes; false if that is nothing.
 * `at` is passed if all of it was written.
 */
static bool message_put(struct path *p, struct packet *k, unsigned stream, struct place *at,
			const tern_msg *m, size_t most)
{
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	unsigned n = at->offset ? 0 : tern_msg_words(m);
	size_t len, need = HEAD + n * sizeof(uint64_t), left = most - record_used(k), here = 0;
	const char *data = tern_msg_data(m, &len);
	if (data) {
		need += PAYLOAD_HEAD;
		size_t rest = len - at->offset, some = rest < WORTHWHILE ? rest : WORTHWHILE;
		if (left < need + some)
			return false;
		here = rest < left - need ? rest : left - need;
		if (payload_named(p, here) && k->parts + 2 > PACKET_PARTS)
			return false;
	} else if (left < need) {
		return false;
	}
	put16(k, (head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS | n << RECORD_WORDS_SHIFT |
			 (stream == STREAM_REPLIES ? RECORD_IS_REPLY : 0) | (data ? RECORD_HAS_PAYLOAD : 0));
	put_bytes(k, m->word, n * sizeof(uint64_t));
	if (data)
		payload_put(p, k, data, len, at->offset, here);
	if (data && at->offset + here < len)
		at->offset += (uint32_t)here;
	else
		place_pass(at, m);
	return true;
}

/* Whether a payload may be begun at its receiver. */
/* cost: flow status */
static bool message_allowed(struct out *o, const struct place *at, const tern_msg *m)
{
	if (at->offset || !tern_msg_data(m, NULL))
		return true;
	if (o->blocks >= o->allowed)
		return false;
	o->blocks++;
	return true;
}

static void stream_write(struct path *p, struct packet *k, unsigned stream, size_t most)
{
	struct out *o = &p->out[stream];
	struct slice *s = &k->flight.slice;
	s->from[stream] = s->to[stream] = o->next;
	const tern_msg *m;
	while (o->base && k->records < PACKET_RECORDS && (m = place_look(o, &o->next))) {
		uint64_t blocks = o->blocks;
		if (!message_allowed(o, &o->next, m))
			break;
		if (!message_put(p, k, stream, &o->next, m, most)) {
			o->blocks = blocks;
			break;
		}
		k->records++;
		s->messages[stream] += o->next.offset == 0;
	}
	s->to[stream] = o->next;
}

static void news_put(struct path *p, struct packet *k)
{
	const struct slice *s = &k->flight.slice;
	(void)p;
	if (!s->news)
		return;
	put16(k, RECORD_IS_NEWS | s->news);
	put16(k, s->round);
	put_bytes(k, &s->generation, sizeof s->generation);
}

/* The news whose turn it is; a wish for credit is fulfilled by any packet. */
static void news_choose(struct path *p, struct slice *s)
{
	if (!p->wishes)
		return;
	s->news = (uint8_t)__builtin_ctz(p->wishes);
	p->wishes &= p->wishes - 1;
	if (s->news == NEWS_ASK)
		s->generation = p->confirm.asked;
	if (s->news == NEWS_CONFIRM)
		s->generation = p->confirm.answer;
	if (s->news != NEWS_BARRIER)
		return;
	s->round = p->token & 0xff;
	s->generation = p->token >> 8;
}

bool record_write(struct path *p, struct packet *k, size_t most)
{
	news_choose(p, &k->flight.slice);
	news_put(p, k);
	stream_write(p, k, STREAM_REPLIES, most);
	stream_write(p, k, STREAM_REQUESTS, most);
	return record_used(k) > 0;
}

/* The bytes of a record that carries a payload up to `offset`, and of what the packet has already. */
static size_t record_until(const struct packet *k, const struct place *at, const tern_msg *m, uint32_t offset)
{
	unsigned n = at->offset ? 0 : tern_msg_words(m);
	return record_used(k) + HEAD + n * sizeof(uint64_t) + PAYLOAD_HEAD + offset - at->offset;
}

/*
 * Counts messages and does not compare places: a place before a turn, or a padded rest of a line, and the one behind it
 * are the same, and which of the two a slice has depends on what had been written when it was made.
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
	news_put(p, k);
	stream_again(p, k, STREAM_REPLIES);
	stream_again(p, k, STREAM_REQUESTS);
}

/* cost: fault control */
void record_acked(struct path *p, const struct slice *s)
{
	for (unsigned stream = 0; stream < STREAMS; stream++) {
		struct out *o = &p->out[stream];
		struct place at = s->from[stream];
		const tern_msg *m;
		for (unsigned n = s->messages[stream]; n && (m = place_look(o, &at)); n--) {
			const void *data = tern_msg_data(m, NULL);
			place_pass(&at, m);
			if (data)
				block_set(block_of(data), BLOCK_FREE);
		}
		o->acked += s->messages[stream];
		if (o->base && !(p->net->services & PROVIDES_ROOM))
			atomic_store_explicit(o->freed, s->to[stream].leaf, memory_order_release);
	}
}
