/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: fault control */
#include "service/pace.h"

enum {
	WINDOW_FIRST = 16, /* packets, */
	WINDOW_LEAST = 4,  /* packets */
	BURST = 16,        /* packets that need no spreading */
	LOSS_BORNE = 16,   /* one of so many may be lost */
	LOSS_SEEN = 4,     /* and fewer than this say nothing */
	LEAST_NS = 500000, /* patience is at least this: a rank may have to wait for its core */
	FIRST_NS = 20000000,
	MOST_NS = 200000000,
};
#define WINDOW_MOST ((size_t)4 << 20)

void pace_open(struct pace *p, size_t packet)
{
	*p = (struct pace){ .packet = packet, .enough = SIZE_MAX, .window = WINDOW_FIRST * packet };
}

bool pace_ready(const struct pace *p, uint64_t now)
{
	return p->flying < p->window && now >= p->earliest;
}

void pace_sent(struct pace *p, size_t bytes, uint64_t now)
{
	p->flying += bytes;
	p->sent++;
	if (p->window <= BURST * p->packet || !p->smooth)
		return;
	/* A window a round trip, and a quarter more, so that pacing alone never holds the window back. */
	uint64_t interval = bytes * p->smooth / (p->window + p->window / 4);
	uint64_t burst = BURST * p->packet * p->smooth / (p->window + p->window / 4);
	uint64_t from = p->earliest + burst > now ? p->earliest : now - burst;
	p->earliest = from + interval;
}

static void window_open(struct pace *p, size_t bytes)
{
	if (p->window < p->enough)
		p->window += bytes;
	else
		p->window += bytes * p->packet / p->window;
	if (p->window > WINDOW_MOST)
		p->window = WINDOW_MOST;
}

static void window_close(struct pace *p, size_t to)
{
	size_t least = WINDOW_LEAST * p->packet;
	p->window = to > least ? to : least;
	p->enough = p->window;
}

void pace_landed(struct pace *p, size_t bytes)
{
	if (p->flying * 2 > p->window) /* a window that is not used proves nothing */
		window_open(p, bytes);
	p->flying = p->flying > bytes ? p->flying - bytes : 0;
}

void pace_lost(struct pace *p, size_t bytes)
{
	p->flying = p->flying > bytes ? p->flying - bytes : 0;
	p->lost++;
}

void pace_round(struct pace *p, uint32_t acked, uint32_t next)
{
	if ((int32_t)(acked - p->round_end) < 0)
		return;
	if (p->lost >= LOSS_SEEN && p->lost * LOSS_BORNE > p->sent)
		window_close(p, p->window / 3 * 2);
	p->round_end = next;
	p->sent = p->lost = 0;
}

void pace_timeout(struct pace *p)
{
	window_close(p, p->window / 2);
}

void pace_sampled(struct pace *p, uint64_t ns)
{
	uint64_t off = ns > p->smooth ? ns - p->smooth : p->smooth - ns;
	if (!p->smooth) {
		p->smooth = ns;
		p->spread = ns / 2;
		return;
	}
	p->spread += off / 4 - p->spread / 4;
	p->smooth += ns / 8 - p->smooth / 8;
}

uint64_t pace_patience(const struct pace *p)
{
	if (!p->smooth)
		return FIRST_NS;
	uint64_t ns = p->smooth + 4 * p->spread;
	return ns < LEAST_NS ? LEAST_NS : ns < MOST_NS ? ns : MOST_NS;
}
