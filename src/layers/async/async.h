/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layer of work handed over: its state in an endpoint, shared by its files.
 *
 * There is one queue, of things that have turns (struct work), and everything stands in it:
 * functions of the program, chains that have something to send, chains in which something has come,
 * the internal buffer, writes that must be told of. A poll gives the first of them one turn and
 * puts it last. So between two turns messages are handled, and n things advance together, each by a
 * turn in n polls.
 *
 * Nothing waits in a turn, whoever runs it: it stands under a hold, so that a send without room
 * comes back, and `turn` of the endpoint makes channels and waits come back too. So a turn is as
 * short as the code that it calls, and two ranks that fill each other's chains cannot stop each
 * other: the queue of each goes on to drain what the other has put.
 */
#ifndef TERN_ASYNC_STATE_H
#define TERN_ASYNC_STATE_H

#include <tern/async.h>

#include "base/pool.h"
#include "chan/chan.h"
#include "core/messages.h"
#include "layers.h"

extern const struct layer async_layer;

/* Tern's own handlers of this layer. */
#define ASYNC_MESSAGES(X)                                                       \
	X(ASYNC_OPEN, on_chain_open)     /* a chain to drain */                 \
	X(ASYNC_OPENED, on_chain_opened) /* the reply: 0, or why not */         \
	X(ASYNC_BEGUN, on_message_begun) /* a message has begun in the chain */ \
	X(ASYNC_RAISE, on_raise)         /* what was written has landed: raise your flag */
enum async_handler { ASYNC_BEFORE = ASYNC_HANDLERS - 1, ASYNC_MESSAGES(LAYER_NUMBER) };
ASYNC_MESSAGES(LAYER_HANDLER)

enum { CHAIN_NAME = 0 }; /* that errors give a chain: it is no name of the program's */

/* Something that has turns. It stands in the queue once at most. */
struct work {
	struct work *next;
	tern_async_turn *fn;
	void *arg;
	bool queued;       /* or having its turn */
	struct task *task; /* of which it is; NULL: it stays when it has no more to do */
};

/* Something that is carried on until its handle is over; a function of the program's, and no more.
 */
struct task {
	struct record record;
	struct pool_of *pool; /* of which it is */
	struct work work;
	tern_op *op;
};

/* A write that needs care when it has landed, or whose bytes are kept here. */
struct write {
	struct task task;
	tern_op landed;
	uint64_t value;
	tern_addr flag;
};

/* A message to be sent. */
struct order {
	struct record record;
	struct order *next;
	tern_filler *fill;
	void *arg;
	unsigned id;
	tern_op *op;
};

/* The way to a rank, and the messages that wait for it, the one that is being sent first. */
struct chain {
	struct work work;
	struct async *a;
	uint32_t rank;
	tern_chan *chan; /* NULL: none yet */
	enum { CHAIN_MADE, CHAIN_OFFERED, CHAIN_OPEN } state;
	enum { STAGE_NAME, STAGE_TELL, STAGE_FILL, STAGE_END } stage; /* of the first message */
	int error;                                                    /* of its filler */
	struct order *first, *last;
};

struct drainer {
	tern_drainer *fn;
	void *arg;
};

/* Where messages come in, from a rank or from the own program. */
struct intake {
	struct work work;
	struct async *a;
	tern_chan *chan;               /* NULL: none */
	const struct drainer *running; /* the message's procedure; NULL between messages */
	bool passing;                  /* what is left of a message is dropped */
	tern_incoming message;
};

struct async {
	struct endpoint *e;
	struct work *first, *last;
	uint32_t works; /* in the queue */
	uint32_t vain;  /* turns in which nothing could be done, since the last in which something
			   was */
	uint64_t moved; /* turns of chains in which something was put */
	struct pool_of tasks, orders, writes;
	struct drainer drainer[TERN_PROCS_MAX];
	struct intake internal; /* for the own program */
	tern_chan *to,
		*from;   /* the program's ends of the internal buffer; NULL until it is asked for */
	tern_chan *back; /* the processor's sending end */
	struct async_peer {
		struct chain chain;
		struct intake intake;
	} peer[]; /* one a rank */
};

static inline struct async *async_of(tern *t)
{
	return t->own->layer[LAYER_ASYNC];
}

/* What a turn returns when it wants another. */
static inline bool turn_goes_on(int rc)
{
	return rc == 1 || rc == -EAGAIN;
}

/* -- async.c -- */
/* What every call begins with that waits if it has no handle. */
int async_enter(struct endpoint *e, const tern_op *op, const char *what);

/* -- queue.c -- */
void queue_push(struct async *a, struct work *w); /* unless it stands there */
unsigned queue_progress(void *state);
/* A task whose memory is of `p` is queued for the first time. */
void task_begin(struct async *a, struct pool_of *p, struct task *k, tern_async_turn *fn, void *arg,
		tern_op *op);

/* -- chain.c -- */
void chain_lost(struct async *a, uint32_t rank);

/* -- intake.c -- */
void intake_look(struct async *a, uint32_t rank);
void intake_open(struct async *a, struct intake *n, tern_chan *c, uint32_t src);

#endif
