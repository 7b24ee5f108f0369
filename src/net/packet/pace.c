/* SPDX-License-Identifier: BSD-3-Clause */
/* The window of a peer and its round-trip times: see pace.h. */
#include "net/packet/pace.h"

enum {
	WINDOW_FIRST = 16,  /* packets, */
	WINDOW_LEAST = 4,   /* packets */
	BURST = 16,         /* packets that need no spreading, */
	BURST_NS = 500000,  /* if they are not spread further than that */
	LOSS_BORNE = 32,    /* one of so many may be lost without a queue, */
	LOSS_SEEN = 10,     /* and fewer than this say nothing, */
	LOSS_AMONG = 256,   /* so short rounds are taken together until they have so many packets */
	QUEUE_NS = 1000000, /* by which a queue makes round trips longer, at least: less may be the
			       hosts */
	LEAST_NS = 500000,  /* patience is at least this: a rank may have to wait for its core */
	FIRST_NS = 20000000,
	MOST_NS = 200000000,
	SHORT_NS = 5000000,          /* a round trip that is short */
	SAMPLE_MOST_NS = 1000000000, /* no way is longer: its peer was computing */
	MS = 1000000,
	SAMPLES = 8,          /* round trips that belong together */
	OPEN_MS_MOST = 60000, /* of opening as CUBIC does */
};
#define WINDOW_MOST ((size_t)4 << 20)

void pace_open(struct pace *p, size_t packet)
{
	*p = (struct pace){ .packet = packet, .enough = SIZE_MAX, .window = WINDOW_FIRST * packet };
}

bool pace_ready(struct pace *p, uint64_t now)
{
	if (p->flying >= p->window)
		return false;
	if (now < p->earliest) {
		p->held = true;
		p->late = 0;
		return false;
	}
	if (p->held)
		p->late = now - p->earliest;
	p->held = false;
	return true;
}

/*
 * Bytes in a round trip: more than the window, so that pacing alone never holds it back, and twice
 * that while it doubles.
 */
static size_t pace_rate(const struct pace *p)
{
	return p->window < p->enough ? 2 * p->window : p->window + p->window / 4;
}

/*
 * How long before its time a packet may be sent: so a burst leaves at once, but none that fills the
 * queue of a slow link.
 */
static uint64_t pace_burst(uint64_t each)
{
	uint64_t most = each * BURST < BURST_NS ? each * BURST : BURST_NS;
	return most > each * 2 ? most : each * 2;
}

/*
 * The time from which the rate counts. A sender that had packets and no core catches up: otherwise
 * it sends one burst each time it runs, whatever its window is.
 */
static uint64_t pace_from(const struct pace *p, uint64_t now)
{
	uint64_t burst = pace_burst(p->packet * p->smooth / pace_rate(p));
	uint64_t most = burst > p->late ? burst : p->late;
	return p->earliest + most >= now ? p->earliest : now - burst;
}

void pace_sent(struct pace *p, size_t bytes, uint64_t now)
{
	p->flying += bytes;
	p->sent++;
	if (!p->smooth || (p->window <= BURST * p->packet && p->smooth <= BURST_NS))
		return;
	p->earliest = pace_from(p, now) + bytes * p->smooth / pace_rate(p);
}

/* -- The window -------------------------------------------------------------------------- */

/* Whether all round trips lately take longer than they must: one may have waited for a core. */
static bool queue_seen(const struct pace *p)
{
	uint64_t lately = p->low[0] < p->low[1] ? p->low[0] : p->low[1];
	return lately > p->least + p->least / 64 + QUEUE_NS;
}

static uint64_t cube_root(uint64_t x)
{
	uint64_t root = 0;
	for (uint64_t bit = UINT64_C(1) << 20; bit; bit >>= 1)
		if ((root + bit) * (root + bit) * (root + bit) <= x)
			root += bit;
	return root;
}

/*
 * The window of CUBIC: 0.4 packets for each cubed second before or after the time when it is at its
 * peak again.
 */
static size_t window_cubic(const struct pace *p, uint64_t now)
{
	uint64_t ms = (now - p->since + p->smooth) / MS;
	ms = ms < OPEN_MS_MOST ? ms : OPEN_MS_MOST;
	uint64_t off = ms > p->until_peak ? ms - p->until_peak : p->until_peak - ms;
	uint64_t bytes = off * off * off / 1000 * 4 * p->packet / 10000000;
	if (ms > p->until_peak)
		return p->peak + bytes;
	return p->peak > bytes ? p->peak - bytes : 0;
}

/*
 * By half a packet a round at least, with which it gets as much as TCP Reno, that opens by one and
 * halves; at most by half of itself, and by an eighth before there was a loss.
 */
static void window_open(struct pace *p, size_t bytes, uint64_t now)
{
	size_t cubic = p->peak ? window_cubic(p, now) : p->window + p->window / 8;
	size_t least = p->window + p->packet / 2, most = p->window + p->window / 2;
	size_t to = cubic > least ? cubic : least;
	p->window += ((to < most ? to : most) - p->window) * bytes / p->window;
}

static void window_close(struct pace *p, size_t to, uint64_t now)
{
	size_t least = WINDOW_LEAST * p->packet;
	p->peak = p->window;
	p->window = to > least ? to : least;
	p->enough = p->window;
	p->closed = p->since = p->used = now;
	p->lost = 0;
	p->until_peak = cube_root((p->peak - (p->window < p->peak ? p->window : p->peak)) /
				  p->packet * UINT64_C(2500000000));
}

/*
 * To seven tenths, as CUBIC does; to a half on a short way: there the queue is most of the round
 * trip, and TCP's bursts meet its end more often than what is paced.
 */
static void window_yield(struct pace *p, uint64_t now)
{
	window_close(p, p->least < SHORT_NS ? p->window / 2 : p->window / 10 * 7, now);
}

void pace_landed(struct pace *p, size_t bytes, uint64_t now)
{
	if (p->flying * 2 > p->window) { /* a window that is not used proves nothing */
		if (p->window < p->enough)
			p->window += bytes;
		else
			window_open(p, bytes, now);
		p->window = p->window < WINDOW_MOST ? p->window : WINDOW_MOST;
	} else {
		p->since += now - p->used; /* nor does the time */
	}
	p->used = now;
	p->flying = p->flying > bytes ? p->flying - bytes : 0;
}

void pace_lost(struct pace *p, size_t bytes, uint64_t sent, uint64_t now)
{
	p->flying = p->flying > bytes ? p->flying - bytes : 0;
	if (sent <= p->closed || !p->smooth)
		return; /* the window was closed for it; or the peer is far, and it is under way */
	p->lost++;
	if (queue_seen(p))
		window_yield(p, now);
}

void pace_round(struct pace *p, uint32_t acked, uint32_t next, uint64_t now)
{
	if ((int32_t)(acked - p->round_end) < 0)
		return;
	bool many = p->lost >= LOSS_SEEN && p->lost * LOSS_BORNE > p->sent;
	if (many)
		window_yield(p, now);
	p->round_end = next;
	if (many || p->sent >= LOSS_AMONG)
		p->sent = p->lost = 0;
}

/*
 * It begins anew, and opens quickly up to half of what it was. Before there was an answer the peer
 * may only be far.
 */
void pace_timeout(struct pace *p, uint64_t now)
{
	size_t least = WINDOW_LEAST * p->packet;
	if (!p->smooth || p->window <= least)
		return;
	window_close(p, p->window / 2, now);
	p->window = least;
}

void pace_undo(struct pace *p, const struct pace *before)
{
	p->lost = before->lost;
	if (p->window >= before->window)
		return;
	p->window = before->window;
	p->enough = before->enough;
	p->peak = before->peak;
	p->closed = before->closed;
	p->since = before->since;
	p->until_peak = before->until_peak;
}

/* -- Round trips ------------------------------------------------------------------------- */

/* Of the last group of samples, and of the one before it. */
static void low_note(struct pace *p, uint64_t ns)
{
	if (++p->samples % SAMPLES == 0) {
		p->low[1] = p->low[0];
		p->low[0] = ns;
	}
	p->low[0] = ns < p->low[0] ? ns : p->low[0];
}

void pace_sampled(struct pace *p, uint64_t ns)
{
	ns = ns < SAMPLE_MOST_NS ? ns : SAMPLE_MOST_NS;
	uint64_t off = ns > p->smooth ? ns - p->smooth : p->smooth - ns;
	if (!p->smooth) {
		p->smooth = p->least = p->low[0] = p->low[1] = ns;
		p->spread = ns / 2;
		return;
	}
	p->least = ns < p->least ? ns : p->least;
	low_note(p, ns);
	p->spread += off / 4 - p->spread / 4;
	p->smooth += ns / 8 - p->smooth / 8;
	if (p->window < p->enough && queue_seen(p))
		p->enough = p->window; /* more would only wait longer */
}

uint64_t pace_patience(const struct pace *p)
{
	if (!p->smooth)
		return FIRST_NS;
	uint64_t more = 4 * p->spread < MOST_NS ? 4 * p->spread : MOST_NS;
	/*
	 * The answer to what was sent again a quarter of a round trip later must not be too late.
	 */
	uint64_t ns = p->smooth + (more > p->smooth ? more : p->smooth);
	return ns < LEAST_NS ? LEAST_NS : ns;
}
