/* SPDX-License-Identifier: BSD-3-Clause */
/* Order: packets are numbered; one that comes early is put aside until it is the next. */
#ifndef TERN_SERVICE_ORDER_H
#define TERN_SERVICE_ORDER_H

#include "service/service.h"

enum {
	ORDER_HELD = 2048, /* packets that may be early: as many as retry lets be under way; */
	ORDER_KEPT = 64,   /* and memory that is kept for the next ones */
};

struct early {
	unsigned char *bytes; /* kept for the next; NULL before the first */
	size_t len;
	bool here;
};

struct order {
	uint32_t next;     /* the number of the next packet to be sent */
	uint32_t expected; /* of the next one to be passed up */
	uint32_t holds;    /* how many are held, */
	uint32_t kept;     /* and how many of them, or of those that were, have memory */
	struct early held[ORDER_HELD];
};

static inline struct order *order_of(const struct path *p)
{
	return p->state[SERVICE_ORDER];
}

#endif
