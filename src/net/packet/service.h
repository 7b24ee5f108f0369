/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract of a service: what a network of packets may lack, each in a layer of its own. Those
 * in force stand one above the other between the rings and the wire:
 *
 *     records  ->  flow  ->  order  ->  retry  ->  guard  ->  wire
 *
 * On its way down each service that is in force writes a header in front of the packet; on its way
 * up each takes its own off and passes on what is left. Those that a wire provides are left out,
 * and TERN_SERVICE can put any of them in or out, to see what it costs. None knows the others: what
 * one has to know of what is under way stands in the path (struct transit).
 */
#ifndef TERN_NET_PACKET_SERVICE_H
#define TERN_NET_PACKET_SERVICE_H

#include "net/packet/packet.h"

#define DUE_NEVER UINT64_MAX

struct service {
	const char *name;
	enum service_kind kind;
	unsigned number; /* flow: what ranks tell each other of it (FLOW_SHIFT); never changed */
	size_t bytes;    /* of its state, path.state[kind]: zero when it is opened */
	bool grants;     /* flow: its receiver says which lines may be written again */
	/*
	 * Flow: its receiver may refuse; lines and blocks are kept until it says that it took them.
	 */
	bool keeps;
	void (*open)(struct path *p);
	void (*close)(struct path *p); /* may be NULL */
	/* Nothing is to be sent any more, nor again; may be NULL. What comes is still taken in. */
	void (*stop)(struct path *p);
	/* Whether another packet may be sent now; NULL: always. At most one service has this. */
	bool (*ready)(struct path *p);
	/* Flow: says how much of each stream the next packet may begin; may be NULL. */
	void (*budget)(struct path *p);
	/* Writes its header before k->at. k->again: the packet has been here before. */
	void (*down)(struct path *p, struct packet *k);
	/*
	 * Takes its header off and passes the rest on by service_up(), now, later, or not at all;
	 * `level` is its own place. False if the packet could not be taken in, as if it had never
	 * come; only its own sender can help, by sending it again.
	 */
	bool (*up)(struct path *p, struct arrival *a, unsigned level);
	/* Does what is due at `now`; when it wants to be called again. */
	uint64_t (*tick)(struct path *p, uint64_t now);
};

/* The services that a network may have, strategies of flow among them, in any order, then NULL. */
typedef const struct service *const service_list[];

/*
 * Of packet_net.services: the number of the strategy, above the bits of enum provides, so that both
 * ends must have the same.
 */
enum { FLOW_SHIFT = 4, FLOW_NUMBERS = 16 };

/* Whether TERN_SERVICE is understood, and agrees with TERN_FLOW: 0, or -EINVAL with a sentence. */
int service_judge(void);
/* Whether TERN_FLOW names one of the strategies: 0, or -EINVAL with a sentence. */
int strategies_judge(service_list all);

/* Fills the layers of `n`: what TERN_SERVICE says, or what the wire lacks. */
int service_choose(struct packet_net *n);

/* In words, what is added. */
enum { SERVICE_WORDS = 64 };
void service_words(service_list all, unsigned services, char text[SERVICE_WORDS]);

bool service_ready(struct path *p);
/* From `level` down to the wire; 0 is the highest. */
void service_down(struct packet *k, unsigned level);
uint64_t service_tick(struct path *p, uint64_t now);

/* How much further the low half `to` is than `from`; 0 if it is behind. */
static inline uint32_t further(uint64_t from, uint32_t to)
{
	uint32_t by = to - (uint32_t)from;
	return by < UINT32_MAX / 2 ? by : 0;
}

/*
 * Whether the header that flow writes is sure to be heard; then nothing of it needs a packet of its
 * own any more. One that is sent again may have come the first time, and its receiver does not look
 * at what it says now.
 */
static inline bool flow_tells(struct path *p, const struct packet *k)
{
	if (k->again)
		return false;
	p->pending_control &= ~(1u << NEWS_FLOW);
	return true;
}

/* -- Headers: little endian, unaligned -- */
static inline void header_put(struct packet *k, const void *header, size_t bytes)
{
	k->at -= bytes;
	memcpy(k->at, header, bytes);
}

/* NULL if there are not so many bytes. */
static inline const void *header_pull(struct arrival *a, size_t bytes)
{
	if (a->len < bytes)
		return NULL;
	const void *p = a->at;
	a->at += bytes;
	a->len -= bytes;
	return p;
}

/* False, and nothing in `header`, if there are not so many bytes. */
static inline bool header_take(struct arrival *a, void *header, size_t bytes)
{
	const void *from = header_pull(a, bytes);
	if (from)
		memcpy(header, from, bytes);
	return from;
}

/* What is left goes up from the service at `level`, whose header has been taken off. */
static inline bool service_up(struct path *p, struct arrival *a, unsigned level)
{
	return p->net->up[level - 1](p, a, level - 1);
}

#endif
