/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that a message follows. Where this process can touch the target, the data is copied and the
 * message sent. Elsewhere both travel in one lane, in order: pieces of the data, and the last one
 * brings the message. So the message never waits for an answer, and its handler finds the data.
 *
 * What has not left yet is written down in a `struct follow`, which polls carry on. A request takes
 * one of FOLLOWS. A reply takes that of the rank it goes to: it is free, because no request of that
 * rank passes the gate while it is used (`owing` of the peer).
 */
#ifndef TERN_MEM_FOLLOW_H
#define TERN_MEM_FOLLOW_H

#include <stdbool.h>
#include <tern/mem.h>

#include "base/pool.h"

struct endpoint;
struct mem;

enum { FOLLOWS = 64 };

/* What is done with a word of the target's heap when the data is there; see signal.c. */
struct signal {
	tern_addr dst, word;
	unsigned what; /* an enum tern_amo, on 64 bits */
	uint64_t value;
};

struct follow {
	struct record record; /* of a request */
	struct follow *next;
	uint32_t rank; /* where it goes */
	bool reply;    /* the class of its messages */
	bool moves;    /* a transfer moves the data, and `move` tells of it */
	bool over;     /* the message has left, or never will */
	int error;
	tern_addr dst; /* where the rest of the data goes */
	const char *src;
	char *copy; /* of what had not left when the call returned; NULL: `local` is told */
	size_t left;
	tern_op move;
	tern_op *local; /* told when the source may be changed; NULL if nobody is */
	tern_op *op;    /* told when the target has the data; NULL if nobody is */
	tern_op *gone;  /* told when the message has left; NULL if nobody is */
	unsigned id, n;
	uint64_t word[TERN_WORDS_MAX];
	struct signal signal; /* instead of a message, if its word is an address */
};

struct follows {
	struct follow *first; /* under way */
	struct pool_of pool;  /* requests: FOLLOWS of them */
	struct follow *reply; /* one a rank; made with the first */
	uint64_t sent;        /* pieces and messages, so far */
	uint32_t invited;     /* ranks that wait for a first request from here */
};

void follow_close(struct mem *m);
/* This process can touch the target: the call does both. `msg`: a reply to it follows. */
int follow_now(tern *t, const tern_msg *msg, const tern_long *what, uint32_t rank);
/* Fills `f` with what the program has asked for; its handles count it from now on. */
void follow_fill(struct follow *f, const tern_long *what, uint32_t rank, bool reply);
/* Of a request for `op` that was sent, or not: `rc`. */
int follow_passed_on(struct follow *f, int rc);
/* Sends what there is room for, and lets polls carry on the rest. */
void follow_begin(struct mem *m, struct follow *f);
unsigned follow_progress(struct mem *m);
/*
 * Lets polls carry on what the program has asked for, with the signal `g` instead of a message if
 * that is not NULL; `gone` is told when it has left.
 */
int follow_written_down(struct mem *m, const tern_long *what, uint32_t rank, tern_op *gone,
			const struct signal *g);

/* -- signal.c -- */
int signal_step(struct mem *m, struct follow *f); /* -EAGAIN: not yet */

/* -- answer.c: messages of the reply class -- */
unsigned answer_invite(struct mem *m); /* sends first requests to ranks that asked for them */

#endif
