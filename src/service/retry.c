/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every packet has a number; its receiver says which have come: all below `expected`, and a bit for
 * each of those above. That goes with whatever the receiver sends anyway, and in a packet of its
 * own when it has nothing to send, once for a group of packets. What was sent before something that
 * has been acknowledged, and has not come a quarter of a round trip later, is lost; and so is the
 * first of those under way when nothing comes at all. It is then sent again, under its number, made
 * anew from the rings.
 *
 * Invariants (models/retry.pml checks them).
 *  I1  first <= peer's expected <= next, and next - first <= RETRY_WINDOW.
 *  I2  A packet is passed up once: its bit is set, or `expected` is past it, from then on. One that
 *      is refused above leaves no trace.
 *  I3  A flight is forgotten only when its number is below what the peer expects.
 */
#include <string.h>

#include "base/memory.h"
#include "service/retry.h"

enum {
	GROUP = 16,          /* packets that one acknowledgement is for, at most, */
	HEAVY = 60 << 10,    /* and bytes, about half of what a sender has blocks for, */
	ACK_NS = 20000,      /* and how long the first may wait for something to go with */
	REORDER_NS = 100000, /* a packet overtaken may still be this late, at least */
	BACKOFF_MOST = 5,    /* doublings of the patience, */
	/* The cap, unless the round trip is longer: losses in a row may be chance. */
	BACKOFF_NS = 400000000,
	DARK = 3,             /* timeouts in a row after which nothing seems to come through */
	STAMP_SHIFT = 8,      /* a stamp counts 256 ns */
	SIZE_FIRST = 256,     /* places of a window, at first */
	ACK_WORDS = 4,        /* of bits in an acknowledgement, at most */
	ACK_ONLY = 1 << 7,    /* of `kind`: there is no packet, only what it acknowledges; */
	ACK_DOUBLED = 1 << 6, /* a packet came twice: it need not have been sent again */
	ACK_FLAGS = ACK_ONLY | ACK_DOUBLED,
};

struct header {
	uint8_t kind;    /* how many words follow, */
	uint8_t skipped; /* and how many are left out before them */
	uint32_t number, expected;
	uint32_t stamp; /* when it was sent, by its sender's clock; never 0 */
	uint32_t echo;  /* the stamp of what it acknowledges; 0: it acknowledges nothing new */
} __attribute__((packed));

static uint32_t stamp_of(uint64_t now)
{
	uint64_t ticks = now >> STAMP_SHIFT;
	return (uint32_t)(ticks + wrap_clock(ticks)) | 1;
}

static void retry_open(struct path *p)
{
	/*
	 * Without memory there is no window, and nothing is ready to be sent; opening is tried
	 * again then.
	 */
	p->transit.window = memory_new(SIZE_FIRST, sizeof *p->transit.window);
	p->transit.size = SIZE_FIRST;
}

static void retry_begin(struct path *p)
{
	p->transit.first = p->transit.next = retry_of(p)->expected = (uint32_t)wrap_first(32, 0);
	retry_open(p);
}

/* A way that is long and fast has more under way; without memory it stays as it is. */
static void window_grow(struct transit *r)
{
	struct transit more = { .window = memory_new(2 * (size_t)r->size, sizeof *r->window),
				.size = 2 * r->size };
	if (!more.window)
		return;
	for (uint32_t i = r->first; i != r->next; i++)
		*flight_at(&more, i) = *flight_at(r, i);
	memory_free(r->window);
	r->window = more.window;
	r->size = more.size;
}

static void retry_close(struct path *p)
{
	memory_free(p->transit.window);
	p->transit = (struct transit){ 0 };
}

static void retry_stop(struct path *p)
{
	p->transit.first =
		p->transit.next; /* blocks and lines of what was under way belong to others now */
	p->transit.lost = 0;
	p->transit.timer = 0;
}

/* -- What has come here ----------------------------------------------------------------- */

static bool came(const struct retry *r, uint32_t number)
{
	return r->came[number % RETRY_WINDOW / 64] >> number % 64 & 1;
}

static void came_set(struct retry *r, uint32_t number, bool value)
{
	uint64_t bit = UINT64_C(1) << number % 64;
	uint64_t *word = &r->came[number % RETRY_WINDOW / 64];
	*word = value ? *word | bit : *word & ~bit;
	r->above += value ? 1 : -1u;
}

static void came_note(struct retry *r, uint32_t number)
{
	if (number == r->expected && !r->above) {
		r->expected++;
		return;
	}
	if (!r->above || (int32_t)(number - r->highest) > 0)
		r->highest = number;
	came_set(r, number, true);
	while (came(r, r->expected)) {
		came_set(r, r->expected, false);
		r->expected++;
	}
}

/*
 * 64 bits, from that of `number` on. Beyond the window is the one of `expected`, which has not
 * come.
 */
static uint64_t came_word(const struct retry *r, uint32_t number)
{
	unsigned at = number % RETRY_WINDOW / 64, by = number % 64;
	return by ? r->came[at] >> by | r->came[(at + 1) % RETRY_WORDS] << (64 - by) : r->came[at];
}

/* Which words of the bits above `expected` are told: all, or the first and the last few
 * alternately. */
static void came_choose(struct retry *r, struct header *h)
{
	unsigned all = r->above ? (r->highest - r->expected + 63) / 64 : 0;
	unsigned words = all < ACK_WORDS ? all : ACK_WORDS;
	h->kind |= (uint8_t)words;
	h->skipped = (uint8_t)(r->high ? all - words : 0);
	r->high = all > words && !r->high;
}

/* -- Down ------------------------------------------------------------------------------- */

static void header_write(struct path *p, struct packet *k, uint32_t number, uint8_t kind)
{
	struct retry *r = retry_of(p);
	struct header h = { .kind = (uint8_t)(kind | (r->doubled ? ACK_DOUBLED : 0)),
			    .number = number,
			    .expected = r->expected,
			    .stamp = stamp_of(p->net->now),
			    .echo = r->echo };
	came_choose(r, &h);
	unsigned words = h.kind & ~(unsigned)ACK_FLAGS;
	for (unsigned i = words; i--;) {
		uint64_t word = came_word(r, r->expected + 1 + (h.skipped + i) * 64);
		header_put(k, &word, sizeof word);
	}
	header_put(k, &h, sizeof h);
	p->transit.unacked = 0;
	r->heavy = 0;
	r->echo = 0;
	r->doubled = false;
}

static void retry_down(struct path *p, struct packet *k)
{
	struct transit *r = &p->transit;
	struct flight *f = &k->flight;
	if (!k->again)
		f->number = r->next++;
	header_write(p, k, f->number, 0);
	f->state = FLIGHT_FLYING;
	f->sent = p->net->now;
	f->bytes = (uint32_t)((size_t)(k->end - k->at) + k->named);
	*flight_at(r, f->number) = *f;
	pace_sent(&r->pace, f->bytes, f->sent);
	if (!r->timer)
		r->timer = f->sent + pace_patience(&r->pace);
}

static void ack_send(struct path *p)
{
	struct packet *k = post_begin(p);
	header_write(p, k, 0, ACK_ONLY);
	post_end(k);
}

/* -- Up --------------------------------------------------------------------------------- */

/* What an acknowledgement tells that was not known. */
struct landed {
	unsigned flights;
	uint64_t newest; /* when the last of them was sent, ns */
};

static void flight_landed(struct path *p, uint32_t number, struct landed *l)
{
	struct transit *r = &p->transit;
	struct flight *f = flight_at(r, number);
	if (f->state == FLIGHT_LANDED)
		return;
	l->flights++;
	if (f->state == FLIGHT_LOST)
		r->lost--; /* it was only late */
	else
		pace_landed(&r->pace, f->bytes, p->net->now);
	f->state = FLIGHT_LANDED;
	record_landed(p, &f->slice);
	/* When it was sent again a moment ago, it is the first one that has come. */
	bool first = p->net->now - f->sent < r->pace.least / 8 * 7;
	l->newest = f->sent > l->newest && !first ? f->sent : l->newest;
}

static void flight_lose(struct transit *r, struct flight *f, uint64_t now)
{
	f->state = FLIGHT_LOST;
	r->lost++;
	pace_lost(&r->pace, f->bytes, f->sent, now);
}

/* Those that were sent long enough before one that has landed. */
static void flights_overtaken(struct transit *r, uint64_t newest, uint64_t now)
{
	uint64_t slack = r->pace.smooth / 4 > REORDER_NS ? r->pace.smooth / 4 : REORDER_NS;
	for (uint32_t i = r->first; i != r->next; i++) {
		struct flight *f = flight_at(r, i);
		if (f->state == FLIGHT_FLYING && f->sent + slack < newest)
			flight_lose(r, f, now);
	}
}

static void window_advance(struct path *p)
{
	struct transit *r = &p->transit;
	for (; r->first != r->next && flight_at(r, r->first)->state == FLIGHT_LANDED; r->first++)
		record_acked(p, &flight_at(r, r->first)->slice);
	pace_round(&r->pace, r->first, r->next, p->net->now);
	r->tries = 0;
	r->timer = r->first == r->next ? 0 : p->net->now + pace_patience(&r->pace);
}

/*
 * Whether the timeout before this acknowledgement was one for nothing: it is for a packet that was
 * sent before the timeout, or what was sent again had come. A peer that waits for a core answers
 * late and has lost nothing (as in RFC 3522 and RFC 3708).
 */
static void timeout_judge(struct transit *r, const struct header *h)
{
	uint32_t at = stamp_of(r->doubt);
	bool before = h->echo && (int32_t)(h->echo - at) < 0;
	r->doubt = 0;
	if (before || h->kind & ACK_DOUBLED)
		pace_undo(&r->pace, &r->before);
}

/*
 * When the packet was sent that the acknowledgement answers. None that has landed was sent later:
 * if one has been sent again meanwhile, its first sending has come.
 */
static uint64_t ack_sent(const struct header *h, uint64_t now)
{
	if (!h->echo)
		return now;
	return now - ((uint64_t)(uint32_t)(stamp_of(now) - h->echo) << STAMP_SHIFT);
}

/* `bits`: of its words. */
static void ack_take(struct path *p, const struct header *h, const unsigned char *bits,
		     unsigned words)
{
	struct transit *r = &p->transit;
	struct landed l = { 0 };
	uint32_t under_way = r->next - r->first, acked = h->expected - r->first;
	if (acked > under_way) {
		packet_count(p->net, PULSE_PACKETS_MALFORMED,
			     acked < UINT32_MAX / 2); /* else it is an old one that came late */
		return;
	}
	for (uint32_t i = 0; i < acked; i++)
		flight_landed(p, r->first + i, &l);
	uint32_t above = 1 + h->skipped * UINT32_C(64);
	for (uint32_t i = 0; i < words * 64 && acked + above + i < under_way; i++)
		if (bits[i / 8] >> i % 8 & 1)
			flight_landed(p, h->expected + above + i, &l);
	if (h->echo)
		pace_sampled(&r->pace, (uint64_t)(uint32_t)(stamp_of(p->net->now) - h->echo + 2)
					       << STAMP_SHIFT);
	if (!l.flights)
		return;
	if (r->doubt)
		timeout_judge(r, h);
	window_advance(p);
	uint64_t sent = ack_sent(h, p->net->now);
	flights_overtaken(r, l.newest < sent ? l.newest : sent, p->net->now);
}

/* False if it has fewer bits than it says, or too many. */
static bool ack_up(struct path *p, struct arrival *a, const struct header *h)
{
	unsigned words = h->kind & ~(unsigned)ACK_FLAGS;
	const unsigned char *bits =
		words <= ACK_WORDS ? header_pull(a, words * sizeof(uint64_t)) : NULL;
	if (!bits)
		return false;
	ack_take(p, h, bits, words);
	return true;
}

/*
 * Takes in what a packet acknowledged whose handler went first. The time since then is added to
 * the echo, so that the round trip is measured without it.
 */
static void ack_take_kept(struct path *p, struct retry *r, uint64_t now)
{
	uint32_t since = (uint32_t)((now - r->kept) >> STAMP_SHIFT);
	struct header h = { .expected = r->kept_expected, .echo = r->kept_echo + since };
	r->kept = 0;
	ack_take(p, &h, NULL, 0);
}

static bool retry_ready(struct path *p)
{
	struct transit *r = &p->transit;
	if (!r->window || r->lost) /* what is lost goes first: others wait for it */
		return false;
	if (r->next - r->first == r->size && r->size < RETRY_WINDOW)
		window_grow(r);
	return r->next - r->first < r->size && pace_ready(&r->pace, p->net->now);
}

static bool retry_up(struct path *p, struct arrival *a, unsigned level)
{
	struct retry *r = retry_of(p);
	struct header h;
	if (!header_take(a, &h, sizeof h))
		return true;
	if (p->net->put_off && !r->kept && !h.kind && h.echo) {
		r->kept = p->net->now;
		r->kept_expected = h.expected;
		r->kept_echo = h.echo;
	} else if (!ack_up(p, a, &h)) {
		packet_count(p->net, PULSE_PACKETS_MALFORMED, 1);
		return true;
	}
	if (h.kind & ACK_ONLY)
		return true;
	uint32_t ahead = h.number - r->expected;
	size_t bytes = a->len;
	if (ahead < RETRY_WINDOW && !came(r, h.number)) {
		if (!service_up(p, a, level))
			return false;
		came_note(r, h.number);
	} else if (ahead >= RETRY_WINDOW && ahead < UINT32_MAX / 2) {
		return false; /* further than its sender may be */
	} else {
		packet_count(p->net, PULSE_PACKETS_DOUBLED, 1);
		r->doubled = true;
	}
	if (!p->transit.unacked++)
		r->since = p->net->now;
	r->heavy += bytes;
	r->echo = h.stamp;
	return true;
}

/* -- Time --------------------------------------------------------------------------------- */

/*
 * The first time, the first is taken for lost: it may be the tail of a burst, which says nothing of
 * the link. When nothing comes after that either, all are: what is counted as under way must not
 * keep the window shut that was closed for it. Not before there was any answer: the peer may be
 * far.
 */
static void timer_expire(struct path *p, uint64_t now)
{
	struct transit *r = &p->transit;
	uint32_t end = r->tries && r->pace.smooth ? r->next : r->first + 1;
	if (!r->tries) {
		r->before = r->pace;
		r->doubt = now;
	}
	for (uint32_t i = r->first; i != end; i++)
		if (flight_at(r, i)->state == FLIGHT_FLYING)
			flight_lose(r, flight_at(r, i), now);
	if (r->tries)
		pace_timeout(&r->pace, now);
	else
		r->overdue = now;
	r->tries += r->tries < BACKOFF_MOST;
	uint64_t patience = pace_patience(&r->pace),
		 most = patience > BACKOFF_NS ? patience : BACKOFF_NS;
	r->timer = now + (patience << r->tries < most ? patience << r->tries : most);
}

/* What was lost may have been too long for the way. */
static void way_ask(struct path *p)
{
	struct wire *w = p->net->wire;
	if (w->ops->narrow)
		p->most = w->ops->narrow(w, p->rank, p->most, p->transit.tries >= DARK);
}

static void lost_send(struct path *p)
{
	struct transit *r = &p->transit;
	way_ask(p);
	for (uint32_t i = r->first; r->lost && i != r->next; i++) {
		struct flight *f = flight_at(r, i);
		bool asks = i == r->first &&
			    r->tries; /* whether anything comes through, so it waits for nothing */
		if (!asks && !pace_ready(&r->pace, p->net->now))
			return;
		if (f->state != FLIGHT_LOST)
			continue;
		struct packet *k = post_begin(p);
		k->flight = *f;
		k->again = true;
		r->lost--;
		record_again(p, k);
		service_down(k, 0);
		packet_count(p->net, PULSE_PACKETS_AGAIN, 1);
	}
}

/* Not while it may go with an answer, or with news that are about to be sent. */
static bool ack_due(struct path *p, uint64_t now)
{
	const struct retry *r = retry_of(p);
	if (!p->transit.unacked || (p->pending_control && service_ready(p)))
		return false;
	return p->transit.unacked >= GROUP || r->heavy >= HEAVY || now - r->since >= ACK_NS ||
	       p->net->resting;
}

static uint64_t retry_tick(struct path *p, uint64_t now)
{
	struct transit *r = &p->transit;
	struct retry *here = retry_of(p);
	if (here->kept)
		ack_take_kept(p, here, now);
	if (!r->window)
		retry_open(p);
	if (r->timer && now >= r->timer)
		timer_expire(p, now);
	if (r->lost)
		lost_send(p);
	if (ack_due(p, now))
		ack_send(p);
	uint64_t due = r->timer ? r->timer : DUE_NEVER;
	uint64_t paced = r->lost || p->staged ? r->pace.earliest : DUE_NEVER;
	due = paced > now && paced < due ? paced : due;
	return r->unacked && here->since + ACK_NS < due ? here->since + ACK_NS : due;
}

const struct service retry_service = {
	.name = "retry",
	.kind = SERVICE_RETRY,
	.bytes = sizeof(struct retry),
	.open = retry_begin,
	.close = retry_close,
	.stop = retry_stop,
	.ready = retry_ready,
	.down = retry_down,
	.up = retry_up,
	.tick = retry_tick,
};
