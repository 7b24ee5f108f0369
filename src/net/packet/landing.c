/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records become messages. This reads bytes that came over a network, so it believes nothing: a
 * packet is looked through from end to end before anything of it is used, and is taken whole or not
 * at all.
 */
#include <string.h>

#include "net/packet/packet.h"
#include "net/packet/service.h"

enum {
	SINGLE = 2 + TERN_LINE_WORDS * sizeof(uint64_t)
}; /* bytes that a message of one line and without a payload has, at most */

struct record {
	unsigned stream, id, n;
	enum news news;                     /* NEWS_NONE for a message */
	uint64_t value;                     /* of the news */
	const unsigned char *words, *bytes; /* bytes: NULL without a payload */
	unsigned len, offset, here;
};

static bool get16(struct arrival *a, unsigned *value)
{
	uint16_t v;
	if (!header_take(a, &v, sizeof v))
		return false;
	*value = v;
	return true;
}

static bool news_read(struct arrival *a, unsigned kind, struct record *r)
{
	if (kind == NEWS_NONE || kind >= NEWS_KINDS || !header_take(a, &r->value, sizeof r->value))
		return false;
	r->news = (enum news)kind;
	return kind != NEWS_BARRIER || token_round(r->value) < ROUNDS_MAX;
}

/* The bytes that its payload may have: only requests of a program are longer than a short block. */
static unsigned record_most(const struct record *r)
{
	bool request = r->stream == STREAM_REQUESTS && r->id < TERN_HANDLER_MAX;
	return request ? TERN_REQUEST_MAX : TERN_PAYLOAD_MAX;
}

static bool payload_read(struct arrival *a, struct record *r)
{
	unsigned gap;
	if (!get16(a, &r->len) || !get16(a, &r->offset) || !get16(a, &r->here) || !get16(a, &gap) ||
	    !header_pull(a, gap))
		return false;
	if (r->len > record_most(r) || r->offset > r->len || r->here > r->len - r->offset ||
	    (!r->here && r->len))
		return false;
	return (r->bytes = header_pull(a, r->here)) != NULL;
}

/* The words of a message, and how many there are. */
static bool words_read(struct arrival *a, unsigned field, struct record *r)
{
	r->n = field;
	if (TERN_UNLIKELY(field == RECORD_WORDS_MORE) &&
	    (!get16(a, &r->n) || !words_double(r->n) || r->n > TERN_WORDS_MAX))
		return false;
	return (r->words = header_pull(a, r->n * sizeof(uint64_t))) != NULL;
}

/* The next record; false if the bytes are none. */
static bool record_read(struct arrival *a, struct record *r)
{
	unsigned head;
	*r = (struct record){ .news = NEWS_NONE };
	if (!get16(a, &head))
		return false;
	r->id = head % (1 << RECORD_WORDS_SHIFT);
	if (head & RECORD_IS_NEWS)
		return news_read(a, r->id, r);
	r->stream = head & RECORD_IS_REPLY ? STREAM_REPLIES : STREAM_REQUESTS;
	if (!words_read(a, head >> RECORD_WORDS_SHIFT & 7, r))
		return false;
	return !(head & RECORD_HAS_PAYLOAD) || payload_read(a, r);
}

static unsigned message_lines(unsigned n)
{
	return words_double(n) ? 2 : 1;
}

/* What a packet asks for, found out before anything is done. */
struct need {
	unsigned lines, blocks;
	unsigned width; /* lines of the message that was begun last */
	bool present;
	bool astray; /* it does not go on where the last left off */
	bool open;   /* a payload of which more is to come */
	uint32_t len, got;
};

static bool need_add(struct need *need, const struct record *r)
{
	bool first = !need->present;
	need->present = true;
	if (need->astray)
		return true;
	if (r->offset) {
		if (first && (!need->open || r->len != need->len || r->offset != need->got))
			return need->astray = true;
		if (!need->open || r->len != need->len || r->offset != need->got || r->n)
			return false;
	} else if (r->bytes) {
		need->blocks++;
		need->len = r->len;
	}
	need->got = r->offset + r->here;
	if (!r->offset)
		need->width = message_lines(r->n);
	need->open = r->bytes && need->got < r->len;
	need->lines += need->open ? 0 : need->width;
	return true;
}

/* The block of a place that was given. */
static struct block *place_block(const struct in *in, unsigned w, unsigned bit)
{
	unsigned i = w * 64 + bit;
	return in->large[w] >> bit & 1 ? &in->landing_large[i].block : &in->landing[i];
}

unsigned landing_free(const struct in *in)
{
	unsigned free = LANDING;
	for (unsigned w = 0; w < in->words; w++)
		for (uint64_t given = in->given[w]; given; given &= given - 1)
			free -= !block_is(place_block(in, w, (unsigned)__builtin_ctzll(given)),
					  BLOCK_FREE);
	return free;
}

uint64_t landing_allowed(const struct in *in)
{
	return in->landed + landing_free(in);
}

unsigned landing_lines(const struct in *in)
{
	uint64_t used = in->fill.leaf - atomic_load_explicit(in->freed, memory_order_acquire);
	unsigned others = (unsigned)(RING_LEAVES - 1 - used) * ring_leaf_room(in->fill.leaf_lines);
	if (in->fill.tail >= in->fill.end)
		return others;
	return others + (unsigned)((in->fill.end - in->fill.tail) / TERN_LINE);
}

static bool need_met(const struct path *p, const struct need *need, unsigned stream)
{
	const struct in *in = &p->in[stream];
	if (need->blocks && need->blocks > landing_free(in))
		return false;
	const struct service *flow = p->net->flow;
	/*
	 * With credits its sender has counted, and better than this, which takes every piece for a
	 * line.
	 */
	return !need->lines || (flow && flow->grants) || need->lines <= landing_lines(in);
}

static bool packet_good(struct path *p, struct arrival a, struct need *need)
{
	struct record r;
	for (unsigned stream = 0; stream < STREAMS; stream++)
		need[stream] = (struct need){ .open = p->in[stream].open != NULL,
					      .got = p->in[stream].got,
					      .width = message_lines(p->in[stream].parcel.n),
					      .len = (uint32_t)p->in[stream].parcel.len };
	while (a.len) {
		if (!record_read(&a, &r))
			return false;
		if (r.news != NEWS_NONE)
			continue;
		if (r.stream == STREAM_REPLIES && !p->in[STREAM_REPLIES].fill.base)
			return false; /* nothing was asked */
		if (!need_add(&need[r.stream], &r))
			return false;
	}
	return true;
}

/* The first that is free, which the caches have most likely. */
static struct block *block_land(struct in *in, size_t len)
{
	unsigned w = 0;
	for (; w < LANDING_WORDS; w++) {
		for (uint64_t given = in->given[w]; given; given &= given - 1)
			if (block_is(place_block(in, w, (unsigned)__builtin_ctzll(given)),
				     BLOCK_FREE))
				in->given[w] &= ~(given & -given);
		if (in->given[w] != UINT64_MAX)
			break;
	}
	if (w == LANDING_WORDS)
		return NULL;
	unsigned bit = (unsigned)__builtin_ctzll(~in->given[w]);
	in->given[w] |= UINT64_C(1) << bit;
	in->large[w] &= ~(UINT64_C(1) << bit);
	in->large[w] |= (uint64_t)(len > TERN_PAYLOAD_MAX) << bit;
	in->words = w < in->words ? in->words : w + 1;
	return place_block(in, w, bit);
}

/*
 * A payload that is whole, and lies as a block does, needs no other place: its line is laid over
 * what came before it, which has been read. NULL if it does not.
 */
static struct block *block_stay(struct arrival *a, const struct record *r)
{
	struct pinned *pinned = a->pinned;
	uintptr_t at = (uintptr_t)r->bytes;
	if (!pinned || r->here < r->len || r->len <= PACKET_COPY || at % TERN_LINE ||
	    pinned->n == PINNED_MOST || at - (uintptr_t)a->floor < offsetof(struct block, data))
		return NULL;
	a->floor = r->bytes + r->len;
	return pinned->block[pinned->n++] = block_of(r->bytes);
}

void landing_forget(struct in *in)
{
	if (in->open)
		block_set(in->open, BLOCK_FREE);
	in->open = NULL;
	in->got = 0;
}

uint64_t landing_begun(const struct in *in)
{
	return lane_count(&in->fill) + (in->open != NULL);
}

/* The first record of a message: what will be put into the ring. */
static bool message_begin(struct in *in, struct arrival *a, const struct record *r)
{
	struct parcel *p = &in->parcel;
	*p = (struct parcel){ .bits = (uint64_t)r->id << TERN_ID_SHIFT | r->n, .n = r->n };
	memcpy(p->word, r->words, r->n * sizeof(uint64_t));
	landing_forget(in); /* its rest was lost, on a network where nothing is sent again */
	if (!r->bytes)
		return true;
	struct block *b = block_stay(a, r);
	in->open = b ? b : block_land(in, r->len);
	if (!in->open)
		return false;
	block_set(in->open, BLOCK_SENT);
	in->landed++;
	p->bits |= TERN_HEAD_PAYLOAD;
	p->payload = in->open->data;
	p->len = r->len;
	return true;
}

static bool message_take(struct path *p, struct arrival *a, const struct record *r)
{
	struct in *in = &p->in[r->stream];
	if (!r->offset && !message_begin(in, a, r))
		return false;
	if (r->here && in->open->data != (const char *)r->bytes)
		memcpy(block_bytes(in->open) + r->offset, r->bytes, r->here);
	in->got = r->offset + r->here;
	if (r->bytes && in->got < r->len)
		return true;
	if (!lane_ready(&in->fill))
		return false;
	lane_put(&in->fill, &in->parcel);
	in->open = NULL;
	pollset_add(p->net->net.site, in->inlet);
	return true;
}

static void news_take(struct path *p, const struct record *r)
{
	if (r->news == NEWS_BARRIER)
		barrier_token(p->net, r->value);
	if (r->news == NEWS_ASK) { /* what was sent before it lies in our rings by now */
		p->confirm.answer = r->value;
		p->pending_control |= 1u << NEWS_CONFIRM;
	}
	if (r->news == NEWS_LOST)
		silence_told(p);
	if (r->news == NEWS_CONFIRM && r->value == p->confirm.asked) {
		p->confirm.landed = p->confirm.asked - 1;
		p->confirm.asked = 0;
	}
}

/*
 * A packet that makes no sense. Sending it again would not make it better; where nobody does, what
 * was in it is lost, and whoever waits for it must hear of that.
 */
static __attribute__((noinline)) void packet_bad(struct path *p)
{
	packet_count(p->net, PULSE_PACKETS_MALFORMED, 1);
	if (p->net->confirms)
		silence_missed(p->net, p->rank);
}

/* What the packet says of itself, and those of its messages that are of `streams`. */
static void packet_put(struct path *p, struct arrival a, unsigned streams)
{
	struct record r;
	while (a.len && record_read(&a, &r)) {
		if (r.news != NEWS_NONE)
			news_take(p, &r);
		if (r.news != NEWS_NONE || !(streams >> r.stream & 1))
			continue;
		if (!message_take(p, &a, &r)) {
			packet_bad(p); /* it sent more than it was allowed to */
			break;
		}
	}
	path_mark_dirty(p);
}

/*
 * The common case of an answer: one message without a payload, and room for it. False if this is
 * not it.
 */
static bool landing_single(struct path *p, const struct arrival *a)
{
	uint16_t head;
	if (a->len < sizeof head)
		return false;
	memcpy(&head, a->at, sizeof head);
	unsigned n = head >> RECORD_WORDS_SHIFT & 7;
	if (head & (RECORD_IS_NEWS | RECORD_HAS_PAYLOAD) || n > TERN_LINE_WORDS ||
	    a->len != sizeof head + n * sizeof(uint64_t))
		return false;
	struct in *in = &p->in[head & RECORD_IS_REPLY ? STREAM_REPLIES : STREAM_REQUESTS];
	if (!in->fill.base || in->open)
		return false;
	uint64_t w[TERN_LINE_WORDS] = { 0 };
	memcpy(w, a->at + sizeof head, n * sizeof *w);
	if (!tern_lane_write_(&in->fill, head % (1 << RECORD_WORDS_SHIFT), n, w[0], w[1], w[2],
			      w[3], w[4], w[5]))
		return false;
	pollset_add(p->net->net.site, in->inlet);
	return true;
}

bool landing_take(struct path *p, struct arrival *a, unsigned level)
{
	(void)level; /* 0: nothing is above the records */
	struct need need[STREAMS];
	bool good;
	path_serve(p);
	if (TERN_LIKELY(a->len <= SINGLE) && landing_single(p, a))
		return true;
	good = packet_good(p, *a, need);
	for (unsigned stream = 0; stream < STREAMS; stream++)
		good &= !need[stream].astray;
	if (!good) {
		packet_bad(p);
		return true;
	}
	for (unsigned stream = 0; stream < STREAMS; stream++)
		if (!need_met(p, &need[stream], stream)) {
			packet_count(p->net, PULSE_PACKETS_REFUSED, 1);
			return false;
		}
	packet_put(p, *a, ~0u);
	return true;
}

struct landing landing_take_each(struct path *p, const struct arrival *a, unsigned wanted)
{
	struct need need[STREAMS];
	struct landing l = { 0 };
	path_serve(p);
	if (!packet_good(p, *a, need)) {
		packet_bad(p);
		return l;
	}
	for (unsigned stream = 0; stream < STREAMS; stream++) {
		unsigned bit = 1u << stream;
		l.present |= need[stream].present ? bit : 0;
		if (!need[stream].present || need[stream].astray || !(wanted & bit))
			continue;
		if (need_met(p, &need[stream], stream))
			l.taken |= bit;
		else
			l.full |= bit;
	}
	packet_count(p->net, PULSE_PACKETS_REFUSED, l.full != 0);
	packet_put(p, *a, l.taken);
	return l;
}
