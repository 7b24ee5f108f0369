/* SPDX-License-Identifier: BSD-3-Clause */
/* Records that have come become messages of a ring again, in landing.c. */
#ifndef TERN_NET_PACKET_LANDING_H
#define TERN_NET_PACKET_LANDING_H

#include "base/wrap.h"
#include "net/net.h"
#include "net/packet/transit.h"
#include "net/packet/wire.h"

struct path;

enum {
	/* Blocks that payloads are sent from when a peer is far: those of a second at 16 Mbit/s,
	   and of 16 ms at 1 Gbit/s. */
	POOL_LONG = 256,
	LARGE_LONG = POOL_LONG / (TERN_REQUEST_MAX / TERN_PAYLOAD_MAX), /* as many bytes */
	/* Blocks where payloads land: more than a rank sends at once, so that some can come while
	   others are handled. */
	LANDING = 2 * POOL_LONG,
	LANDING_WORDS = LANDING / 64,
};

/* The network's end of a ring that the core reads. */
struct in {
	struct tern_lane fill;
	struct tern_inlet *inlet;
	_Atomic uint64_t *freed; /* by the core */
	/*
	 * LANDING places. Each is a short block and, of requests, a large one: whichever its
	 * payload needs. So a payload of any length takes one place, and one credit.
	 */
	struct block *landing;
	struct large_block *landing_large; /* NULL: of replies */
	/* A bit for each that may be in use: others surely are not, */
	uint64_t given[LANDING_WORDS];
	uint64_t large[LANDING_WORDS]; /* and a bit for those whose large block was given; */
	unsigned words;                /* and only so many words have ever had one */
	struct block *open;            /* a payload of which more is to come */
	uint32_t got;                  /* bytes of it */
	uint64_t landed;               /* payloads begun */
	struct parcel parcel;
};

/* A packet on its way in. */
struct arrival {
	const unsigned char *at;
	size_t len;
	const unsigned char *floor; /* bytes from here to `at` are needed no more, */
	struct pinned *pinned;      /* if payloads can stay where they are; NULL: they cannot */
};

/* Where payloads of a stream are counted from. */
static inline uint64_t payload_first(void)
{
	return wrap_first(32, 0);
}

bool landing_take(struct path *p, struct arrival *a, unsigned level); /* all, or nothing: false */
/* Of the streams `wanted`, a bit each, those that go on where the last left off and have room. */
struct landing {
	unsigned present, taken, full; /* streams in the packet; taken; without room */
};
struct landing landing_take_each(struct path *p, const struct arrival *a, unsigned wanted);
void landing_forget(struct in *in);            /* the payload of which more was to come */
uint64_t landing_begun(const struct in *in);   /* messages, since ever */
unsigned landing_lines(const struct in *in);   /* that the ring surely has room for */
unsigned landing_free(const struct in *in);    /* blocks */
uint64_t landing_allowed(const struct in *in); /* payloads that may be begun, since ever */

#endif
