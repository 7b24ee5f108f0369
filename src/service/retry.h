/* SPDX-License-Identifier: BSD-3-Clause */
/* Retry: what is not acknowledged is sent again. */
#ifndef TERN_SERVICE_RETRY_H
#define TERN_SERVICE_RETRY_H

#include "service/service.h"

enum {
	RETRY_WINDOW = 2048,
	RETRY_WORDS = RETRY_WINDOW / 64,
};

/* Beside what the path knows of what is under way (struct transit). */
struct retry {
	uint32_t expected;          /* the lowest number that has not come */
	uint64_t came[RETRY_WORDS]; /* of those above it, by number, */
	uint32_t above;             /* how many have, */
	uint32_t highest;           /* and the last of them */
	bool high;                  /* the next acknowledgement begins with the last of them */
	size_t heavy;               /* bytes of what has come and was not acknowledged */
	uint64_t since;             /* when the first of those came, ns */
	uint32_t echo;              /* the stamp of the last one */
	bool doubled;               /* one of them had come before */
	/* Of a single packet, whose handler goes first: what it acknowledges, and when it came. */
	uint32_t kept_expected, kept_echo;
	uint64_t kept; /* ns; 0: it has been taken in */
};

static inline struct retry *retry_of(const struct path *p)
{
	return p->state[SERVICE_RETRY];
}

#endif
