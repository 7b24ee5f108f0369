/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base read */
/*
 * Records become messages. This reads bytes that came over a network, so it believes nothing: a packet
 * is looked through from end to end before anything of it is used, and is taken whole or not at all.
 */
#include <string.h>

#include "net/packet/packet.h"
#include "service/service.h"

struct record {
	unsigned stream, id, n;
	enum news news; /* NEWS_NONE for a message */
	unsigned round;
	uint64_t generation;
	const unsigned char *words, *bytes; /* bytes: NULL without a payload */
	unsigned len, offset, here;
};

static bool get16(struct arrival *a, unsigned *value)
{
	uint16_t v;
	const void *from = header_pull(a, sizeof v);
	if (!from)
		return false;
	memcpy(&v, from, sizeof v);
	*value = v;
	return true;
}

/* cost: protection control */
static bool news_read(struct arrival *a, unsigned kind, struct record *r)
{
	unsigned round;
	const void *generation;
	if (kind == NEWS_NONE || kind >= NEWS_KINDS || !get16(a, &round) || round >= ROUNDS_MAX ||
	    !(generation = header_pull(a, sizeof r->generation)))
		return false;
	r->news = (enum news)kind;
	r->round = round;
	memcpy(&r->generation, generation, sizeof r->generation);
	return true;
}

/* cost: protection control */
static bool payload_read(struct arrival *a, struct record *r)
{
	if (!get16(a, &r->len) || !get16(a, &r->offset) || !get16(a, &r->here))
		return false;
	if (r->len > TERN_PAYLOAD_MAX || r->offset > r->len || r->here > r->len - r->offset ||
	    (!r->here && r->len))
		return false;
	return (r->bytes = header_pull(a, r->here)) != NULL;
}

/* The next record; false if the bytes are none. */
/* cost: protection control */
static bool record_read(struct arrival *a, struct record *r)
{
	unsigned head;
	*r = (struct record){ .news = NEWS_NONE };
	if (!get16(a, &head))
		return false;
	r->id = head % (1 << RECORD_WORDS_SHIFT);
	if (head & RECORD_IS_NEWS)
		return news_read(a, r->id, r);
	r->n = head >> RECORD_WORDS_SHIFT & 7;
	r->stream = head & RECORD_IS_REPLY ? STREAM_REPLIES : STREAM_REQUESTS;
	if (r->n > TERN_WORDS_MAX || !(r->words = header_pull(a, r->n * sizeof(uint64_t))))
		return false;
	return !(head & RECORD_HAS_PAYLOAD) || payload_read(a, r);
}

/* What a packet asks for, found out before anything is done. */
struct need {
	unsigned lines, blocks;
	bool open; /* a payload of which more is to come */
	uint32_t len, got;
};

/* cost: protection control */
static bool need_add(struct need *need, const struct record *r)
{
	if (r->offset) {
		if (!need->open || r->len != need->len || r->offset != need->got || r->n)
			return false;
	} else if (r->bytes) {
		need->blocks++;
		need->len = r->len;
	}
	need->got = r->offset + r->here;
	need->open = r->bytes && need->got < r->len;
	need->lines += !need->open;
	return true;
}

unsigned landing_free(const struct in *in)
{
	unsigned free = 0;
	for (unsigned i = 0; i < LANDING; i++)
		free += (unsigned)block_is(&in->landing[i], BLOCK_FREE);
	return free;
}

/* Lines that the ring surely has room for. */
static unsigned landing_lines(const struct in *in)
{
	uint64_t used = in->fill.leaf - atomic_load_explicit(in->freed, memory_order_acquire);
	if (in->fill.tail >= in->fill.end)
		return (unsigned)(RING_LEAVES - 1 - used) * (in->fill.leaf_lines - 1);
	return (unsigned)(RING_LEAVES - 1 - used) * (in->fill.leaf_lines - 1) +
	       (unsigned)((in->fill.end - in->fill.tail) / TERN_LINE);
}

/* cost: flow status */
static bool need_met(const struct path *p, const struct need *need, unsigned stream)
{
	const struct in *in = &p->in[stream];
	if (need->blocks && need->blocks > landing_free(in))
		return false;
	/* With credits its sender has counted, and better than this, which takes every message for a line. */
	return !need->lines || p->net->services & PROVIDES_ROOM || need->lines <= landing_lines(in);
}

/* cost: protection control */
static bool packet_good(struct path *p, struct arrival a, struct need *need)
{
	struct record r;
	for (unsigned stream = 0; stream < STREAMS; stream++)
		need[stream] = (struct need){ .open = p->in[stream].open != NULL,
					      .got = p->in[stream].got,
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

static struct block *block_land(struct in *in)
{
	for (unsigned i = 0; i < LANDING; i++) {
		struct block *b = &in->landing[(in->landed + i) % LANDING];
		if (block_is(b, BLOCK_FREE)) {
			block_set(b, BLOCK_SENT);
			in->landed++;
			return b;
		}
	}
	return NULL;
}

/* The first record of a message: what will be put into the ring. */
static bool message_begin(struct in *in, const struct record *r)
{
	struct parcel *p = &in->parcel;
	*p = (struct parcel){ .bits = (uint64_t)r->id << TERN_ID_SHIFT | r->n, .n = r->n };
	memcpy(p->word, r->words, r->n * sizeof(uint64_t));
	if (in->open)
		block_set(in->open,
			  BLOCK_FREE); /* its rest was lost, on a network where nothing is sent again */
	in->open = NULL;
	in->got = 0;
	if (!r->bytes)
		return true;
	in->open = block_land(in);
	if (!in->open)
		return false;
	p->bits |= TERN_HEAD_PAYLOAD;
	p->payload = in->open->data;
	p->len = r->len;
	return true;
}

static bool message_take(struct path *p, const struct record *r)
{
	struct in *in = &p->in[r->stream];
	if (!r->offset && !message_begin(in, r))
		return false;
	if (r->here)
		memcpy(in->open->data + r->offset, r->bytes, r->here);
	in->got = r->offset + r->here;
	if (r->bytes && in->got < r->len)
		return true;
	if (!lane_ready(&in->fill))
		return false;
	lane_put(&in->fill, &in->parcel);
	in->open = NULL;
	circle_add(p->net->net.site, in->inlet);
	return true;
}

static void news_take(struct path *p, const struct record *r)
{
	if (r->news == NEWS_BARRIER)
		barrier_token(p->net, r->round, r->generation);
	if (r->news == NEWS_ASK) { /* what was sent before it lies in our rings by now */
		p->confirm.answer = r->generation;
		p->wishes |= 1u << NEWS_CONFIRM;
	}
	if (r->news == NEWS_CONFIRM && r->generation == p->confirm.asked) {
		p->confirm.landed = p->confirm.asked - 1;
		p->confirm.asked = 0;
	}
}

bool landing_take(struct path *p, const struct arrival *a)
{
	struct need need[STREAMS];
	struct arrival rest = *a;
	struct record r;
	path_serve(p);
	if (!packet_good(p, *a, need)) {
		p->net->counts.malformed++;
		return true; /* sending it again would not make it better */
	}
	for (unsigned stream = 0; stream < STREAMS; stream++)
		if (!need_met(p, &need[stream], stream)) {
			p->net->counts.refused++;
			return false;
		}
	while (rest.len && record_read(&rest, &r)) {
		if (r.news != NEWS_NONE)
			news_take(p, &r);
		if (r.news == NEWS_NONE && !message_take(p, &r)) {
			p->net->counts.malformed++; /* it sent more than it was allowed to */
			break;
		}
	}
	path_stir(p);
	return true;
}
