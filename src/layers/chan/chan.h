/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel layer's state in an endpoint, shared by its files. */
#ifndef TERN_CHAN_STATE_H
#define TERN_CHAN_STATE_H

#include <tern/chan.h>
#include <tern/mem.h>

#include "chan/pipe.h"
#include "core/messages.h"
#include "layers.h"

extern const struct layer chan_layer;

/* Tern's own handlers of this layer. */
#define CHAN_MESSAGES(X)                                                      \
	X(CHAN_OFFER, on_offer)              /* a ring to read from */        \
	X(CHAN_WITHDRAW, on_offer_withdrawn) /* and not any more */           \
	X(CHAN_ANSWER, on_offer_answer)      /* to the offer */               \
	X(CHAN_STREAM, on_mirror_data)       /* what was put, for a mirror */ \
	X(CHAN_TELL, on_mirror_status)       /* how far a mirror's reader is */
enum chan_handler { CHAN_BEFORE = CHAN_HANDLERS - 1, CHAN_MESSAGES(LAYER_NUMBER) };
CHAN_MESSAGES(LAYER_HANDLER)

/*
 * What a rank is told of a ring: where it lies, how messages name it, and which of its readers is
 * meant.
 */
struct ring {
	tern_addr pipe;
	uint64_t serial;
	uint64_t reader;
};

/* Where a reader is; moving it gives nothing back until in_move(). */
struct cursor {
	struct tern_chan_line *line;
	intptr_t at;
	intptr_t end;  /* how far there is data, after a look that found some */
	uint64_t item; /* that is there, after a look that found one */
	uint64_t leaf;
};

enum { OFFER_UNSENT = -4096, OFFER_SENT = 1 };

/* A rank that reads from our ring. */
struct listener {
	uint32_t rank;
	bool lost;
	int offer;       /* OFFER_UNSENT, OFFER_SENT; then 0, or why it does not read */
	bool far;        /* it reads a mirror, and the rest is what feed.c knows of that: */
	bool ended;      /* the mirror was told how the ring ended */
	uint64_t mirror; /* its number; 0: not known yet */
	struct cursor sent;
};

/*
 * One end of a channel. Its block of TERN_CHAN_LEAF bytes is aligned to that, see chan_spill(); the
 * listeners of a sending end follow it.
 */
struct tern_chan {
	struct pipe *pipe;
	uint64_t leaf;      /* the number of the leaf where this end stands; 0: before the first */
	unsigned listeners; /* of a sending end */
	int trouble;        /* what tern_chan_trouble_() will say */
	struct listener *listener;

	struct chans *chans;
	struct tern_chan *next;
	uint64_t name;
	struct tern_chan_line *line; /* where the end was given back */
	intptr_t at;
	bool sends;
	bool owes;   /* it may have something to send: what was put, or how far a mirror's reader is
		      */
	bool closed; /* a sending end, kept until its readers are done */
	bool pinned; /* for ever: an offer of it is under way that nobody waited for */
	bool fixed;  /* a layer's: the program did not open it, and cannot close it */
	/* Of a sending end: called when a reader within this rank should look. */
	void (*wake)(struct endpoint *e, void *arg);
	void *wake_arg;

	/* Of a sending end. */
	uint64_t serial; /* the ring's name in messages, which no other of this rank ever has */
	struct tern_chan *next_named; /* in its bucket */
	void *memory;                 /* of the ring, as it was allocated */
	bool fills;                   /* a mirror, whose ring is private memory */

	/* And, if some of those who read there are far: */
	unsigned far;     /* listeners that are */
	tern_out real;    /* where it stands; what the program has stands at the spill, for ever */
	unsigned burst;   /* times that something was sent at once, */
	uint64_t since;   /* after this time */
	uint64_t pressed; /* the leaf where that last was so because the one before was full */

	/* Of a receiving end. */
	struct ring ring; /* what was offered; of a mirror, too */
	bool offered;     /* and no tern_chan_from() has taken it yet */
	struct reader *reader;
	const struct tern_chan_line *stalled; /* where a get last found nothing */
	uint32_t from;                        /* who fills the ring; of a mirror, too */
	bool lost;                            /* it has left or died */
	struct tern_chan *mirror;             /* the end that fills it; NULL: the ring is mapped */
};

struct proc {
	tern_proc *fn;
	void *arg;
	bool reserved; /* for another layer, which runs it */
};

enum { BUCKETS = 64 };

struct chans {
	struct endpoint *e;
	struct tern_chan *first;
	struct await *awaits;             /* calls that wait for offers */
	uint64_t moved;                   /* grows with what ends send */
	uint64_t serial;                  /* of the ring, or mirror, that was made last */
	struct tern_chan *named[BUCKETS]; /* sending ends, by serial */
	bool owes;                        /* an end does */
	bool closing;                     /* nothing is told any more */
	struct proc proc[TERN_PROCS_MAX];
};

/* The endpoint that an end belongs to. */
static inline tern *chan_home(const struct tern_chan *c)
{
	return c->chans->e->t;
}

/*
 * The scope of a call of the program's. A channel that is NULL or closed is one whose endpoint
 * refuses.
 */
void chan_misused(tern_chan **c, const char *call);
static inline struct scope chan_scope(tern_chan **c, const char *call)
{
	if (TERN_UNLIKELY(!*c || (*c)->chans->e->forked))
		chan_misused(c, call);
	return scope_open(chan_home(*c));
}

static inline struct chans *chans_of(tern *t)
{
	return t->own->layer[LAYER_CHAN];
}

/*
 * The line to which puts go while the next leaf is not free: the last one of the end's own block,
 * and standing at its last word. So a put ends in tern_chan_next_leaf_(), which waits for the leaf
 * and lays the value down there; readers never see this line.
 */
static inline struct tern_chan_line *chan_spill(struct tern_chan *c)
{
	return (struct tern_chan_line *)(void *)((char *)c + TERN_CHAN_LEAF) - 1;
}

/* What became of a rank, in words, by the code that says so. */
static inline const char *chan_fate(int code)
{
	return code == -ESHUTDOWN    ? "left"
	       : code == -EOWNERDEAD ? "died"
				     : "been given up, as it does not answer";
}

static inline size_t words_of(size_t bytes)
{
	return bytes / 8 + (bytes % 8 != 0);
}

/* -- chan.c -- */
/* NULL with a sentence. A sending end has listeners. */
struct tern_chan *chan_new(struct chans *s, uint64_t name, unsigned listeners);
void chan_free(struct tern_chan *c);
/* The sending end of that serial; NULL if there is none. */
struct tern_chan *chan_named(struct chans *s, uint64_t serial);
void chans_sweep(
	struct chans *s); /* frees the sending ends that are closed and whose readers are done */
struct wait;
/* 0 where waiting is allowed; else why not. In a turn, where everything is tried again, -EAGAIN. */
int chan_may_wait(struct endpoint *e, const char *what);
/* wait_until(), but -EAGAIN in a turn. */
int chan_until(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
	       struct wait *w);
/* 0, -ESHUTDOWN or -EOWNERDEAD, no sentence. */
int chan_check(struct chans *s, uint32_t rank);
/* The end may have something to send: `now`, or in a later poll. A mirror may be gone then. */
void chan_owes(struct tern_chan *c, bool now);

/* -- out.c -- */
/*
 * A sending end with a ring of this rank's heap: `n` listeners. Its first leaf is entered. Ends
 * that are done with are freed first.
 */
int out_open(struct chans *s, uint64_t name, const uint32_t *rank, unsigned n,
	     struct tern_chan **c);
void out_close(struct tern_chan *c, enum pipe_state state);
/* Makes its listeners, and enters the first leaf of its ring. */
void out_begin(struct tern_chan *c, const uint32_t *rank);
bool out_listens(const struct tern_chan *c, unsigned i);
/* The rank of listener `i` will read; `mirror` is what it has, if it is far. */
void out_expect(struct tern_chan *c, unsigned i, uint64_t mirror);
/* How many leaves may have been entered by now; 0 when nobody reads any more. */
uint64_t out_limit(const struct tern_chan *c);
int out_gone(const struct tern_chan *c); /* nobody reads: the code, with a sentence */
/* Ends the line with an item; never waits. Not for the spill. */
void out_mark(tern_out *o, uint64_t item);
/* Puts as many of these bytes as there is room for; how many. Never waits. */
size_t out_fill(tern_out *o, const void *data, size_t len);
/* Goes on in the next leaf if it stands at the spill: false if that is not free. */
bool out_next_leaf(tern_out *o);

/* -- in.c -- */
/*
 * The receiving end of a ring: in the memory of rank `from`, which fills it, or a mirror, which is
 * made. 0 or a code; no sentence: for a handler.
 */
int in_open(struct chans *s, uint32_t from, uint64_t name, struct ring ring,
	    struct tern_chan **out);
void in_close(struct tern_chan *c, enum reader_state state);
struct cursor in_cursor(const tern_in *i);
void in_move(tern_in *i, const struct cursor *k);
/* What lies at the cursor: an enum tern_chan_kind, or -EBADMSG with a sentence. */
int in_see(struct tern_chan *c, struct cursor *k);
void in_pass(struct cursor *k);         /* the rest of the line */
int in_over(const struct tern_chan *c); /* why nothing more comes: the code, with a sentence */
/* Waits until there is something: 0 if it is data, else what gets return. */
int in_wait(tern_in *i, struct cursor *k);

/* -- proc.c -- */
/* Lets tern_chan_call() name a procedure that another layer runs. */
void proc_reserve(struct chans *s, unsigned id);
/*
 * Waits until a procedure comes: where, and as `item` its number; -EPROTO if data waits there, or
 * what gets return.
 */
int proc_waits(tern_in *i, struct cursor *k);

/* -- feed.c -- */
/*
 * What travels to a mirror: words, each of which is an item as in a ring, or one of these, in the
 * place of an item's kind.
 */
enum {
	STREAM_DATA = 0,                     /* above it: how many words of data follow */
	STREAM_OVER = 255,                   /* above it: the ring's state */
	STREAM_WORDS = TERN_PAYLOAD_MAX / 8, /* of a message */
};
/* Something was put for listeners that are far: sends it, at once or with what follows. */
void feed_push(struct tern_chan *c, bool at_once);
bool feed_send(struct tern_chan *c); /* under a hold; true if something is left */

/* -- mirror.c -- */
/* The end that fills a mirror of what is offered. NULL: no memory. */
struct tern_chan *mirror_open(struct chans *s, uint32_t from, uint64_t name, struct ring ring);
/*
 * How far its reader is, under a hold; true if that is to be told another time. Else, if the reader
 * has ended, the mirror is gone.
 */
bool mirror_tell(struct tern_chan *m);

#endif
