/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be counted: ways to get words from one rank to another. */
#ifndef TERN_LAB_COST_OPERATION_H
#define TERN_LAB_COST_OPERATION_H

#include <tern/mem.h>
#include <tern/sequence.h>

#include "lab/cost/cost.h"
#include "sequence/sequence.h"

enum { COST_SIGNAL = 40 }; /* of interrupts */

enum cost_form {
	COST_PACKET, /* one message that carries its words */
	COST_FINITE, /* from memory to memory, and the destination knows when all is there */
	COST_STREAM, /* packet after packet, from registers to handlers */
	COST_OTHER,
};

/* Both ends of what is counted, in one process. */
struct bench {
	const struct operation *op;
	tern *t[2]; /* by side */
	tern_addr there;
	char *local; /* the same place */
	tern_segment segment;
	tern_op handle;
	size_t bytes;
	struct shipment shipment; /* of a block, */
	tern_stream *stream;      /* and a stream */
	uint64_t taken;           /* messages handled at the destination */
	uint32_t *label;          /* of what follows; and of the play, 0 if it does not count */
	uint32_t play;
	int rc; /* of the first call that failed */
};

/*
 * One entry is one line of the table. send() starts one operation at the source; receive() ends
 * `n` of them at the destination, and finish(), if there is one, at the source. Each marks
 * what belongs to it. Unless `each`, several operations are sent before they are received.
 */
struct operation {
	const char *name, *what;
	enum cost_form form;
	unsigned words;                 /* of 32 bits, as the paper counts them */
	unsigned packets;               /* messages that it takes */
	void (*setup)(struct bench *b); /* NULL: nothing */
	void (*send)(struct bench *b);
	void (*receive)(struct bench *b, unsigned n); /* NULL: polls */
	void (*finish)(struct bench *b, unsigned n);
	/* Instead of the three: the steps of a protocol, each announced with bench_step(). */
	void (*steps)(struct bench *b);
	bool each;
	bool apart; /* never chosen as the best of its form: it leaves work to the program */
};

extern const struct operation operation_table[];
extern const size_t operation_count;

const struct operation *operation_named(const char *name); /* NULL: there is none */

/* What belongs to no line of a protocol, up to the next step, is `feature` of `side`. */
/* One poll, if it takes in n messages; a long sequence needs more. */
void bench_poll(tern *t, uint32_t n);
void bench_step(struct bench *b, enum cost_side side, enum cost_feature feature);

/* The study's protocols, in steps: lab/cost/protocol.c. */
void setup_block(struct bench *b);
void setup_ordered(struct bench *b);
void setup_grouped(struct bench *b);
void block_steps(struct bench *b);
void ordered_steps(struct bench *b);

void bench_receive(struct bench *b, unsigned n);
int bench_open(struct bench *b, const struct operation *o);
/* To the beginning of the ring, so that the end of a leaf falls where it did the last time. */
void bench_align(struct bench *b);

#endif
