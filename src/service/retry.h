/* SPDX-License-Identifier: BSD-3-Clause */
/* Retry: what is not acknowledged is sent again. */
#ifndef TERN_SERVICE_RETRY_H
#define TERN_SERVICE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "service/pace.h"

enum {
	RETRY_WINDOW = 2048,
	RETRY_WORDS = RETRY_WINDOW / 64,
};

struct flight;
struct path;

struct retry {
	struct flight *window; /* by number; */
	uint32_t size;         /* how many there are places for, a power of two up to RETRY_WINDOW */
	uint32_t first, next;  /* numbers that may be under way: [first, next) */
	uint32_t lost;         /* of those, how many are to be sent again */
	uint32_t tries;        /* timeouts in a row, */
	uint64_t overdue;      /* and when the first of them was, ns */
	uint64_t timer;        /* when the first is taken for lost, ns; 0: nothing is under way */
	struct pace pace;
	struct {
		bool waits; /* a plain acknowledgement that has come and was put off */
		uint32_t expected, echo;
		uint64_t when; /* ns */
	} heard;

	uint32_t expected;          /* the lowest number that has not come */
	uint64_t came[RETRY_WORDS]; /* of those above it, by number, */
	uint32_t above;             /* how many have, */
	uint32_t highest;           /* and the last of them */
	bool high;                  /* the next acknowledgement begins with the last of them */
	unsigned unacked;           /* packets that have come and not been acknowledged */
	size_t heavy;               /* bytes of those */
	uint64_t since;             /* when the first of those came, ns */
	uint32_t echo;              /* the stamp of the last one */
	bool doubled;               /* one of them had come before */
};

/* Takes in the acknowledgement that was put off, if there is one. */
void retry_hear(struct path *p);

#endif
