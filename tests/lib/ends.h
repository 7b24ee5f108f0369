/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services between two ends without a network: the test carries each packet, loses it or brings it
 * twice, and sets the clock. So what is sent again, and when, is exact.
 */
#ifndef TERN_TESTS_ENDS_H
#define TERN_TESTS_ENDS_H

#include <tern/tern.h>

#include "check.h"
#include "service/order.h"
#include "service/retry.h"

extern const struct service order_service, retry_service;

enum { FLYING_MOST = 4096, MS = 1000000 };

struct end {
	struct packet_net *net;
	struct path *path;
	uint64_t got[FLYING_MOST]; /* what was passed up, in that order */
	unsigned count;
	bool refuses; /* whatever is passed up */
};

static struct end end[2];
static uint64_t now;
static unsigned asked_narrow, asked_dark;

/* A packet between the ends. */
struct carried {
	unsigned char bytes[256];
	size_t len;
	uint64_t due;
};

static inline void seal_nothing(struct packet_net *n, struct packet *k)
{
	(void)n, (void)k;
}

static const struct guard_ops guard = { .seal = seal_nothing };

static inline size_t narrow(struct wire *w, uint32_t rank, size_t had, bool dark)
{
	(void)w, (void)rank;
	asked_narrow++;
	asked_dark += dark;
	return had - 1;
}

static const struct wire_ops ops = { .narrow = narrow };

/* The number in the only record of a packet. */
static inline bool pass_up(struct path *p, struct arrival *a, unsigned level)
{
	struct end *e = &end[p->rank];
	CHECK_IS(level, 0);
	if (e->refuses)
		return false;
	REQUIRE(a->len >= 10 && e->count < FLYING_MOST);
	memcpy(&e->got[e->count++], a->at + 2, 8);
	return true;
}

static inline void end_close(struct end *e)
{
	for (unsigned i = 0; e->net && i < e->net->layers; i++) {
		e->net->layer[i]->close(e->path);
		free(e->path->state[e->net->layer[i]->kind]);
	}
	if (e->net)
		free(e->net->batch);
	free(e->net);
	free(e->path);
}

static inline void end_open(unsigned which, const struct service *high, const struct service *low)
{
	static struct pulse pulse[2];
	static struct wire wire = { .ops = &ops };
	static struct site site;
	struct end *e = &end[which];
	end_close(e);
	struct packet_net *n = calloc(1, sizeof *n);
	struct path *p = calloc(1, sizeof *p);
	REQUIRE(n && p);
	memset(&pulse[which], 0, sizeof pulse[which]);
	*e = (struct end){ .net = n, .path = p };
	n->wire = &wire;
	n->net.site = &site;
	n->guard = &guard;
	n->pulse = &pulse[which];
	n->batch = calloc(PACKET_BATCH, sizeof *n->batch);
	n->services = PROVIDES_RELIABLE;
	n->now = now;
	n->up[0] = pass_up;
	p->net = n;
	p->rank = which;
	p->most = 1400;
	pace_open(&p->transit.pace, 1400);
	p->transit.pace.window = 1 << 30;
	const struct service *all[] = { high, low };
	for (unsigned i = 0; i < 2 && all[i]; i++) {
		n->layer[n->layers++] = all[i];
		n->up[n->layers] = all[i]->up;
		p->state[all[i]->kind] = calloc(1, all[i]->bytes);
		all[i]->open(p);
	}
}

static inline void open_ends(const struct service *high, const struct service *low)
{
	now = 1000 * MS;
	end_open(0, high, low);
	end_open(1, high, low);
}

static inline void clock_set(uint64_t to)
{
	now = to;
	end[0].net->now = end[1].net->now = now;
}

static inline uint64_t counted(unsigned which, enum pulse_count what)
{
	return atomic_load(&end[which].net->pulse->count[what]);
}

static inline struct transit *transit(unsigned which)
{
	return &end[which].path->transit;
}

/* What an end has sent since it was asked last. */
static inline unsigned collect(unsigned which, struct carried *c, unsigned most)
{
	struct packet_net *n = end[which].net;
	unsigned filled = n->filled;
	REQUIRE(filled <= most);
	for (unsigned i = 0; i < filled; i++) {
		const struct packet *k = &n->batch[i];
		c[i].len = (size_t)(k->end - k->at) - DATAGRAM_HEAD;
		REQUIRE(c[i].len <= sizeof c[i].bytes);
		memcpy(c[i].bytes, k->at + DATAGRAM_HEAD, c[i].len);
	}
	n->filled = 0;
	return filled;
}

/* Sends the number in a packet of its own. */
static inline void send(unsigned which, uint64_t number, struct carried *c)
{
	struct packet *k = post_begin(end[which].path);
	memset(&k->flight, 0, sizeof k->flight);
	k->flight.slice.news = NEWS_BARRIER;
	k->flight.slice.value = number;
	record_again(end[which].path, k);
	service_down(k, 0);
	REQUIRE(collect(which, c, 1) == 1);
}

static inline bool bring(unsigned to, const struct carried *c)
{
	struct packet_net *n = end[to].net;
	struct arrival a = { .at = c->bytes, .len = c->len };
	return n->up[n->layers](end[to].path, &a, n->layers);
}

static struct carried letter[FLYING_MOST];

static inline void check_in_order(unsigned which, unsigned count)
{
	CHECK_IS(end[which].count, count);
	for (unsigned i = 0; i < end[which].count; i++)
		CHECK_IS(end[which].got[i], i);
}

#endif
